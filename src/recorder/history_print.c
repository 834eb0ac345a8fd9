/*
 * metrics-history.jsonl. Streamed, not built as trees: there may be a day of records.
 */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "recorder/history_record.h"
#include "ring/ring_reader.h"
#include "json/json.h"

/* More than the longest line: eight escaped names of 63 bytes, and numbers. */
static const size_t line_max_bytes = 64 * 1024;

static void append_uint(bp_buffer *line, const char *key, uint64_t value) {
    (void)bp_buffer_printf(line, "%s%llu", key, (unsigned long long)value);
}

/* Two decimals, as in runtime-metrics.json. */
static void append_percent(bp_buffer *line, double value) {
    (void)bp_buffer_append_text(line, ",\"cpu_percent\":");
    (void)bp_json_append_number(line, value, 2);
}

static void append_thread(bp_buffer *line, const bp_history_thread *thread) {
    append_uint(line, "{\"tid\":", thread->tid);
    (void)bp_buffer_append_text(line, ",\"name\":");
    (void)bp_json_append_string(line, thread->name, strnlen(thread->name, sizeof thread->name));
    append_percent(line, thread->cpu_percent);
    (void)bp_buffer_append_char(line, '}');
}

static void append_record(bp_buffer *line, const bp_history_record *record,
                          uint64_t wall_offset_ns) {
    char time[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(record->ended_ns + wall_offset_ns, time);
    (void)bp_buffer_printf(line, "{\"time\":\"%s\"", time);
    append_uint(line, ",\"monotonic_ns\":", record->ended_ns);
    append_uint(line, ",\"interval_ms\":", record->interval_ns / BP_NS_PER_MS);
    append_percent(line, record->cpu_percent);
    if (record->has_memory) {
        append_uint(line, ",\"rss_kb\":", record->rss_kb);
        append_uint(line, ",\"vm_size_kb\":", record->vm_size_kb);
    }
    append_uint(line, ",\"thread_count\":", record->thread_count);
    (void)bp_buffer_append_text(line, ",\"threads\":[");
    for (uint32_t i = 0; i < record->busy_count; i++) {
        if (i > 0) {
            (void)bp_buffer_append_char(line, ',');
        }
        append_thread(line, &record->threads[i]);
    }
    (void)bp_buffer_append_text(line, "]}\n");
}

bugpack_status bp_history_print(const bp_temp_file *records, uint64_t wall_offset_ns, bp_sink *sink,
                                void *context, uint64_t *ret_count, bugpack_error *error) {
    bp_buffer line;
    bp_ring_reader reader;
    bugpack_status status = BUGPACK_OK;
    uint64_t count = 0;
    bp_buffer_init(&line, line_max_bytes);
    bp_ring_reader_init(&reader, records);
    const void *payload = NULL;
    const bp_ring_record *found;
    while (status == BUGPACK_OK && (found = bp_ring_reader_next(&reader, &payload)) != NULL) {
        bp_history_record record;
        if (!bp_history_record_read(found->tag, payload, found->payload_bytes, &record)) {
            continue;
        }
        bp_buffer_clear(&line);
        append_record(&line, &record, wall_offset_ns);
        status = line.status != BUGPACK_OK ? line.status : sink(context, line.data, line.size);
        count++;
    }
    if (status == BUGPACK_OK && reader.offset < records->size) {
        status = BUGPACK_ERR_IO; /* the reader stops in the same way where it cannot read */
    }
    bp_ring_reader_release(&reader);
    bp_buffer_release(&line);
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "cannot write the metrics history");
    }
    *ret_count = count;
    return BUGPACK_OK;
}
