#include "report/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/bindings.h>

#include "base/status.h"
#include "base/utf8.h"
#include "json/json.h"

enum { piece_bytes = 64 * 1024, sequence_rest_bytes = 3 };

static const size_t reason_max_bytes = 200;

void bp_writer_init(bugpack_writer *writer, size_t limit_bytes) {
    *writer = (bugpack_writer){.sink = NULL};
    bp_buffer_init(&writer->content, limit_bytes);
}

void bp_writer_release(bugpack_writer *writer) {
    bp_buffer_release(&writer->content);
    if (writer->archive != NULL) {
        bp_archive_roll_back(writer->archive);
        writer->archive = NULL;
        writer->sink = NULL;
    }
}

/* Empties the content into the sink; a failure sticks to the content. */
static bugpack_status pass_on(bugpack_writer *writer, bool is_end) {
    bp_buffer *content = &writer->content;
    if (writer->sink == NULL || content->status != BUGPACK_OK || content->size == 0) {
        return content->status;
    }
    char rest[2 * sequence_rest_bytes];
    size_t count = content->size;
    if (writer->is_text && !is_end) {
        /* A sequence that began here may end in the next piece. */
        count = bp_utf8_cut(content->data, count, count - sequence_rest_bytes);
    }
    size_t rest_bytes = content->size - count;
    bp_buffer text;
    bp_buffer_init(&text, SIZE_MAX / 4);
    bugpack_status status =
        writer->is_text ? bp_utf8_encode(&text, content->data, count) : BUGPACK_OK;
    if (status == BUGPACK_OK) {
        status = writer->is_text
                     ? writer->sink(writer->sink_context, bp_buffer_text(&text), text.size)
                     : writer->sink(writer->sink_context, content->data, count);
    }
    bp_buffer_release(&text);
    if (status != BUGPACK_OK) {
        return content->status = status;
    }
    memcpy(rest, content->data + count, rest_bytes);
    bp_buffer_clear(content);
    content->max_size -= count;
    return bp_buffer_append(content, rest, rest_bytes);
}

bugpack_status bp_writer_sink(void *writer, const void *bytes, size_t byte_count) {
    return bugpack_write(writer, bytes, byte_count);
}

bool bp_writer_is_abandoned(const void *writer) {
    return atomic_load(&((const bugpack_writer *)writer)->is_abandoned);
}

bugpack_status bp_writer_flush(bugpack_writer *writer, bugpack_error *error) {
    bugpack_status status = pass_on(writer, true);
    bugpack_status archived =
        writer->archive != NULL ? bp_archive_check(writer->archive, error) : BUGPACK_OK;
    if (status == BUGPACK_OK || archived != BUGPACK_OK) {
        return archived;
    }
    return bp_fail(error, status, "what was written was not kept: %s", bugpack_status_name(status));
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

static bugpack_status check(bugpack_writer *writer) {
    if (atomic_load_explicit(&writer->is_abandoned, memory_order_relaxed)) {
        return BUGPACK_ERR_TIMEOUT;
    }
    if (writer->picture != BP_PICTURE_ANY) {
        return writer->content.status = BUGPACK_ERR_INVALID;
    }
    return BUGPACK_OK;
}

static bugpack_status pass_on_piece(bugpack_writer *writer) {
    return writer->content.size >= piece_bytes ? pass_on(writer, false) : writer->content.status;
}

bugpack_status bugpack_write(bugpack_writer *writer, const void *bytes, size_t byte_count) {
    const char *next = bytes;
    bugpack_status status = check(writer);
    while (status == BUGPACK_OK && byte_count > 0) {
        /* With a sink the content is never held whole, however much comes at once. */
        size_t count =
            writer->sink != NULL && byte_count > piece_bytes ? (size_t)piece_bytes : byte_count;
        (void)bp_buffer_append(&writer->content, next, count);
        status = pass_on_piece(writer);
        next += count;
        byte_count -= count;
    }
    return status == BUGPACK_OK ? writer->content.status : status;
}

bugpack_status bugpack_printf(bugpack_writer *writer, const char *format, ...) {
    bugpack_status status = check(writer);
    if (status != BUGPACK_OK) {
        return status;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)bp_buffer_vprintf(&writer->content, format, arguments);
    va_end(arguments);
    return pass_on_piece(writer);
}

bugpack_status bugpack_write_json_string(bugpack_writer *writer, const void *text,
                                         size_t byte_count) {
    bugpack_status status = check(writer);
    if (status != BUGPACK_OK) {
        return status;
    }
    (void)bp_json_append_string(&writer->content, text, byte_count);
    return pass_on_piece(writer);
}

BUGPACK_PRINTF(2, 0)
static void set_reason(bugpack_writer *writer, const char *format, va_list arguments) {
    char *reason = writer->line.reason;
    int length = vsnprintf(reason, sizeof writer->line.reason, format, arguments);
    reason[length < 0 ? 0 : bp_utf8_cut(reason, strlen(reason), reason_max_bytes)] = '\0';
}

void bugpack_truncate(bugpack_writer *writer, bool is_missing, const char *format, ...) {
    writer->line.status = BP_ARTEFACT_TRUNCATED;
    writer->line.is_missing = is_missing;
    va_list arguments;
    va_start(arguments, format);
    set_reason(writer, format, arguments);
    va_end(arguments);
}

int bugpack_fail(bugpack_writer *writer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set_reason(writer, format, arguments);
    va_end(arguments);
    return -1;
}

int bugpack_omit(bugpack_writer *writer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set_reason(writer, format, arguments);
    va_end(arguments);
    bp_writer_release(writer);
    writer->line.status = BP_ARTEFACT_OMITTED;
    return 0;
}

static const char *or_empty(const char *text) {
    return text == NULL ? "" : text;
}

int bugpack_fail_text(bugpack_writer *writer, const char *text) {
    return bugpack_fail(writer, "%s", or_empty(text));
}

void bugpack_truncate_text(bugpack_writer *writer, bool is_missing, const char *text) {
    bugpack_truncate(writer, is_missing, "%s", or_empty(text));
}

int bugpack_omit_text(bugpack_writer *writer, const char *text) {
    return bugpack_omit(writer, "%s", or_empty(text));
}
