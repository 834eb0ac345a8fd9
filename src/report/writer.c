#include "report/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"

static const size_t reason_max_bytes = 200;

void bp_writer_init(bugpack_writer *writer, size_t limit_bytes) {
    *writer = (bugpack_writer){.temp_file = BP_TEMP_FILE_INIT};
    bp_buffer_init(&writer->content, limit_bytes);
}

void bp_writer_release(bugpack_writer *writer) {
    bp_buffer_release(&writer->content);
    bp_temp_file_release(&writer->temp_file);
}

void bp_writer_stamp(bugpack_writer *writer, bp_instant began) {
    writer->line.captured_wall_ns = began.wall_ns;
    writer->line.duration_ns = bp_clock_monotonic_ns() - began.monotonic_ns;
}

void bp_writer_set_channel(bugpack_writer *writer, const char *channel) {
    (void)snprintf(writer->report_channel, sizeof writer->report_channel, "%s",
                   channel == NULL ? "" : channel);
}

const char *bugpack_report_channel(const bugpack_writer *writer) {
    return writer->report_channel[0] != '\0' ? writer->report_channel : NULL;
}

void bp_writer_refuse(bugpack_writer *writer, bp_artefact_status status, const char *format, ...) {
    bp_writer_release(writer);
    writer->line.status = status;
    writer->line.is_missing = true;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(writer->line.reason, sizeof writer->line.reason, format, arguments);
    va_end(arguments);
}

void bp_writer_truncate(bugpack_writer *writer, bool is_missing, const char *format, ...) {
    writer->line.status = BP_ARTEFACT_TRUNCATED;
    writer->line.is_missing = is_missing;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(writer->line.reason, sizeof writer->line.reason, format, arguments);
    va_end(arguments);
}

static bool is_closed(bugpack_writer *writer) {
    return atomic_load_explicit(&writer->is_abandoned, memory_order_relaxed);
}

bugpack_status bugpack_write(bugpack_writer *writer, const void *bytes, size_t byte_count) {
    return is_closed(writer) ? BUGPACK_ERR_TIMEOUT
                             : bp_buffer_append(&writer->content, bytes, byte_count);
}

bugpack_status bugpack_printf(bugpack_writer *writer, const char *format, ...) {
    if (is_closed(writer)) {
        return BUGPACK_ERR_TIMEOUT;
    }
    va_list arguments;
    va_start(arguments, format);
    bugpack_status status = bp_buffer_vprintf(&writer->content, format, arguments);
    va_end(arguments);
    return status;
}

bugpack_status bugpack_write_json_string(bugpack_writer *writer, const void *text,
                                         size_t byte_count) {
    return is_closed(writer) ? BUGPACK_ERR_TIMEOUT
                             : bp_json_append_string(&writer->content, text, byte_count);
}

void bugpack_fail(bugpack_writer *writer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *reason = writer->line.reason;
    int length = vsnprintf(reason, sizeof writer->line.reason, format, arguments);
    va_end(arguments);
    reason[length < 0 ? 0 : bp_utf8_cut(reason, strlen(reason), reason_max_bytes)] = '\0';
}
