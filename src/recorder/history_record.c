#include "recorder/history_record.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "ring/ring_reader.h"
#include "json/json.h"

/* More than the longest line: eight escaped names of 63 bytes, and numbers. */
static const size_t line_max_bytes = 64 * 1024;

/* Printed as 0.00: not busy. */
static const double least_percent = 0.005;

/* The order of threads: by CPU, then by id. */
static bool is_busier(const bp_thread_metrics *a, const bp_thread_metrics *b) {
    return a->cpu_percent > b->cpu_percent || (a->cpu_percent == b->cpu_percent && a->tid < b->tid);
}

/* Keeps `busiest` sorted and drops the last one when it is full. */
static void insert(const bp_thread_metrics **busiest, uint32_t *count,
                   const bp_thread_metrics *thread) {
    uint32_t at = *count < BP_HISTORY_BUSIEST ? (*count)++ : BP_HISTORY_BUSIEST - 1;
    for (; at > 0 && is_busier(thread, busiest[at - 1]); at--) {
        busiest[at] = busiest[at - 1];
    }
    busiest[at] = thread;
}

void bp_history_record_make(const bp_metrics *metrics, uint64_t began_ns, uint64_t ended_ns,
                            bp_history_record *ret_record) {
    const bp_thread_metrics *busiest[BP_HISTORY_BUSIEST];
    uint32_t count = 0;
    for (size_t i = 0; i < metrics->thread_count; i++) {
        const bp_thread_metrics *thread = &metrics->threads[i];
        bool is_full = count == BP_HISTORY_BUSIEST;
        if (thread->cpu_percent >= least_percent &&
            (!is_full || is_busier(thread, busiest[BP_HISTORY_BUSIEST - 1]))) {
            insert(busiest, &count, thread);
        }
    }
    *ret_record = (bp_history_record){.ended_ns = ended_ns,
                                      .interval_ns = ended_ns - began_ns,
                                      .cpu_percent = metrics->cpu_percent,
                                      .rss_kb = metrics->rss_kb,
                                      .vm_size_kb = metrics->vm_size_kb,
                                      .thread_count = metrics->thread_count,
                                      .busy_count = count,
                                      .has_memory = metrics->has_memory};
    for (uint32_t i = 0; i < count; i++) {
        ret_record->threads[i].tid = busiest[i]->tid;
        ret_record->threads[i].cpu_percent = busiest[i]->cpu_percent;
        memcpy(ret_record->threads[i].name, busiest[i]->name, sizeof busiest[i]->name);
    }
}

size_t bp_history_record_bytes(const bp_history_record *record) {
    return offsetof(bp_history_record, threads) + record->busy_count * sizeof record->threads[0];
}

static bool is_percent(double value) {
    return isfinite(value) && value >= 0.0;
}

/* Reads a payload; false when it is of another kind or invalid. */
static bool read_record(uint32_t tag, const void *payload, size_t payload_bytes,
                        bp_history_record *ret_record) {
    const size_t header_bytes = offsetof(bp_history_record, threads);
    bp_history_record record = {0};
    if (tag != BP_HISTORY_TAG || payload_bytes < header_bytes || payload_bytes > sizeof record) {
        return false;
    }
    memcpy(&record, payload, payload_bytes);
    if (record.busy_count > BP_HISTORY_BUSIEST || record.has_memory > 1 || record.has_own > 1 ||
        bp_history_record_bytes(&record) != payload_bytes || !is_percent(record.cpu_percent)) {
        return false;
    }
    for (uint32_t i = 0; i < record.busy_count; i++) {
        const bp_history_thread *thread = &record.threads[i];
        if (!is_percent(thread->cpu_percent) ||
            memchr(thread->name, '\0', sizeof thread->name) == NULL) {
            return false;
        }
    }
    *ret_record = record;
    return true;
}

/* Streamed, not built as trees: there may be a day of records. */
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
    if (record->has_own) {
        append_uint(line, ",\"bugpack_kb\":", record->own_kb);
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
        if (!read_record(found->tag, payload, found->payload_bytes, &record)) {
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
