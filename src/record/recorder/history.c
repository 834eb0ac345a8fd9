#include "recorder/history.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "model/fields.h"
#include "platform/thread.h"
#include "ring/ring_reader.h"

/* A shorter window says more about the scheduler than about the process. */
static const uint64_t shortest_window_ns = 250 * BP_NS_PER_MS;

enum { REPORT_RUNS = 1, REPORT_RAN = 2 };

struct bp_history {
    bp_ring *ring;
    atomic_uint report; /* REPORT_…, since the last snapshot */
    bool counts_own;    /* of the writer, as the two that follow */
    uint64_t rings_kb, reports_kb;
    bp_known_uint file_count;     /* for the next record; of the writer, as what follows */
    bp_task_totals totals;        /* the newest; taken at 0: none yet */
    uint64_t window_ns, least_ns; /* of a window: its aim, and the shortest */
    bp_lock lock;                 /* of all below; nothing is taken inside */
    bp_task_snapshot held[BP_HISTORY_HELD_MAX]; /* oldest first; only the writer changes it */
    size_t held_count;
};

bugpack_status bp_history_new(bp_ring *ring, uint32_t window_ms, bp_history **ret_history,
                              bugpack_error *error) {
    bp_history *history = calloc(1, sizeof *history);
    if (history == NULL) {
        return bp_fail_memory(error, "make a metrics history");
    }
    bp_lock_init(&history->lock, BP_LOCK_HISTORY);
    history->ring = ring;
    uint64_t window_ns = window_ms * BP_NS_PER_MS;
    history->window_ns = window_ns > 0 ? window_ns : shortest_window_ns;
    history->least_ns = window_ns < shortest_window_ns ? window_ns : shortest_window_ns;
    *ret_history = history;
    return BUGPACK_OK;
}

void bp_history_free(bp_history *history) {
    if (history == NULL) {
        return;
    }
    for (size_t i = 0; i < history->held_count; i++) {
        bp_task_snapshot_release(&history->held[i]);
    }
    bp_ring_free(history->ring);
    bp_lock_destroy(&history->lock);
    free(history);
}

void bp_history_note_rings(bp_history *history, uint64_t used_bytes) {
    history->counts_own = true;
    history->rings_kb = used_bytes / 1024;
}

void bp_history_note_report(bp_history *history, bool begins) {
    atomic_store(&history->report, begins ? REPORT_RUNS | REPORT_RAN : REPORT_RAN);
}

/* Memory of the host that changed while a report was written cannot be told apart. */
static void count_own(bp_history *history, const bp_task_snapshot *before,
                      const bp_task_snapshot *newest, bp_history_record *record) {
    unsigned report = atomic_load(&history->report);
    uint64_t was_kb = before->rss_bytes / 1024, is_kb = newest->rss_bytes / 1024;
    unsigned ended = REPORT_RAN;
    (void)atomic_compare_exchange_strong(&history->report, &ended, 0);
    if (report != 0 && before->has_memory && newest->has_memory) {
        uint64_t sum_kb = history->reports_kb + is_kb;
        history->reports_kb = sum_kb > was_kb ? sum_kb - was_kb : 0;
    }
    record->has_own = history->counts_own && newest->has_memory;
    record->own_kb = history->rings_kb + history->reports_kb;
    record->own_kb = record->own_kb < is_kb ? record->own_kb : is_kb;
}

size_t bp_history_ring_bytes(size_t sample_count) {
    const size_t record_bytes = sizeof(bp_history_record) + 2 * BP_RING_FRAME_BYTES;
    const size_t most = ((size_t)1 << 30) / record_bytes * 9 / 10 - 16;
    const size_t least = 8; /* a ring refuses a record over a quarter of it */
    size_t count = sample_count < least ? least : sample_count > most ? most : sample_count;
    /* More for the chunk that is overwritten next, and for what is empty at the end of each. */
    return (count + count / 10 + 16) * record_bytes;
}

static void drop(bp_history *history, size_t at) {
    bp_task_snapshot_release(&history->held[at]);
    history->held_count--;
    memmove(history->held + at, history->held + at + 1,
            (history->held_count - at) * sizeof history->held[0]);
}

/*
 * Takes over the newest snapshot, and drops those that are not needed any more. All but the newest
 * two are at least an eighth of a window apart, so there are at most ten; the bound of the array is
 * a safeguard. The lock is held.
 */
static void hold_newest(bp_history *history, const bp_task_snapshot *newest) {
    const bp_task_snapshot *held = history->held;
    size_t count = history->held_count;
    bool is_large = newest->thread_count > BP_HISTORY_LARGE_BYTES / sizeof *newest->threads;
    uint64_t spacing_ns = is_large ? history->window_ns : history->window_ns / 8;
    if (count >= 2 && held[count - 1].taken_ns - held[count - 2].taken_ns < spacing_ns) {
        drop(history, count - 1);
    }
    history->held[history->held_count++] = *newest;
    /* The oldest goes when the second is closer to the beginning of every window that may still be
     * asked for. */
    while (
        history->held_count == BP_HISTORY_HELD_MAX ||
        (history->held_count >= 2 && newest->taken_ns - held[1].taken_ns >= history->window_ns)) {
        drop(history, 0);
    }
}

static bugpack_status append_to_ring(bp_history *history, bp_history_record *record,
                                     bugpack_error *error) {
    record->has_files = history->file_count.known;
    record->file_count = history->file_count.value;
    history->file_count = (bp_known_uint){.known = false};
    const struct iovec part = {.iov_base = record, .iov_len = bp_history_record_bytes(record)};
    return bp_ring_append(history->ring, BP_HISTORY_TAG, &part, 1) != 0
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_INVALID, "the ring of the history is too small");
}

void bp_history_note_files(bp_history *history, uint64_t file_count) {
    history->file_count = (bp_known_uint){true, file_count};
}

void bp_history_add_totals(bp_history *history, const bp_task_totals *totals) {
    const bp_task_totals before = history->totals;
    history->totals = *totals;
    if (before.taken_ns == 0 || totals->taken_ns <= before.taken_ns) {
        return;
    }
    uint64_t interval_ns = totals->taken_ns - before.taken_ns;
    bp_history_record record = {
        .ended_ns = totals->taken_ns,
        .interval_ns = interval_ns,
        .cpu_percent = bp_metrics_cpu_percent(before.cpu_ns, totals->cpu_ns, interval_ns),
        .rss_kb = totals->rss_bytes / 1024,
        .vm_size_kb = totals->vm_size_bytes / 1024,
        .thread_count = totals->thread_count,
        .has_memory = totals->has_memory};
    (void)append_to_ring(history, &record, NULL);
}

/* Without the lock: only the writer, which is the caller, changes the list. */
static bugpack_status append_record(bp_history *history, bp_task_snapshot *newest,
                                    bugpack_error *error) {
    if (history->held_count == 0) {
        return BUGPACK_OK;
    }
    bp_task_snapshot *before = &history->held[history->held_count - 1];
    if (newest->taken_ns <= before->taken_ns) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a snapshot is not newer than the last");
    }
    bp_metrics metrics = {0};
    bugpack_status status = bp_metrics_compute(before, newest, &metrics, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_history_record record;
    bp_history_record_make(&metrics, before->taken_ns, newest->taken_ns, &record);
    count_own(history, before, newest, &record);
    bp_metrics_release(&metrics);
    return append_to_ring(history, &record, error);
}

bugpack_status bp_history_add(bp_history *history, bp_task_snapshot *snapshot,
                              bugpack_error *error) {
    bp_task_snapshot newest = *snapshot;
    *snapshot = (bp_task_snapshot){0};
    if (newest.thread_count > 0) {
        /* The list grew by doubling: up to half of it is unused. */
        void *fitting = realloc(newest.threads, newest.thread_count * sizeof *newest.threads);
        newest.threads = fitting != NULL ? fitting : newest.threads;
    }
    bp_metrics_sort_threads(&newest); /* so that computing with it only reads */
    bugpack_status status = append_record(history, &newest, error);
    if (status != BUGPACK_OK) {
        bp_task_snapshot_release(&newest);
        return status;
    }
    bp_lock_acquire(&history->lock);
    hold_newest(history, &newest);
    bp_lock_release(&history->lock);
    return BUGPACK_OK;
}

/* The snapshot that begins a window which ends at `end`, or NULL. All from the newest one of
 * another program on are passed over: `ret_is_other` says whether one of them was meant. The lock
 * is held.
 */
static bp_task_snapshot *find_begin(bp_history *history, const bp_task_snapshot *end,
                                    uint64_t least_ns, bool *ret_is_other) {
    bp_task_snapshot *found = NULL;
    uint64_t closest_ns = UINT64_MAX;
    uint64_t image = end->image;
    bool is_other = false;
    *ret_is_other = false;
    for (size_t i = history->held_count; i-- > 0;) {
        bp_task_snapshot *begin = &history->held[i];
        uint64_t length_ns = end->taken_ns - begin->taken_ns;
        if (begin->taken_ns >= end->taken_ns) {
            continue;
        }
        image = image != 0 ? image : begin->image; /* a zombie has none any more */
        is_other = is_other || (begin->image != 0 && begin->image != image);
        uint64_t off_ns = length_ns > history->window_ns ? length_ns - history->window_ns
                                                         : history->window_ns - length_ns;
        if (length_ns >= least_ns && off_ns <= closest_ns) {
            closest_ns = off_ns;
            found = is_other ? found : begin;
            *ret_is_other = is_other;
        }
    }
    return found;
}

uint64_t bp_history_ready_ns(bp_history *history, uint64_t asked_ns) {
    bp_lock_acquire(&history->lock);
    uint64_t ready_ns =
        history->held_count > 0 ? history->held[0].taken_ns + history->least_ns : asked_ns;
    bp_lock_release(&history->lock);
    return ready_ns;
}

bugpack_status bp_history_compute(bp_history *history, bp_task_snapshot *end, bool may_be_short,
                                  bp_metrics *ret_metrics, bool *ret_is_other,
                                  bugpack_error *error) {
    bp_task_snapshot *begin = NULL;
    *ret_is_other = false;
    bp_lock_acquire(&history->lock);
    if (end == NULL && history->held_count > 0) {
        end = &history->held[history->held_count - 1];
    }
    if (end != NULL) {
        begin = find_begin(history, end, may_be_short ? 0 : history->least_ns, ret_is_other);
    }
    bugpack_status status = begin != NULL ? bp_metrics_compute(begin, end, ret_metrics, error)
                                          : bp_fail(error, BUGPACK_ERR_IO,
                                                    "there is no earlier sample to compare with");
    bp_lock_release(&history->lock);
    return status;
}

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
        if (thread->cpu_percent >= least_percent && !bp_thread_is_own(thread->name) &&
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
                                      .has_memory = metrics->has_memory,
                                      .has_threads = 1};
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
        record.has_files > 1 || record.has_threads > 1 ||
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

/* Percentages have two decimals, as in runtime-metrics.json. */
static void print_threads(bp_json *json, const bp_history_record *record) {
    bp_json_array_begin(json, "threads");
    for (uint32_t i = 0; i < record->busy_count; i++) {
        const bp_history_thread *thread = &record->threads[i];
        bp_json_object_begin(json, NULL);
        bp_json_add_uint(json, "tid", thread->tid);
        bp_model_add_name(json, "name", thread->name, sizeof thread->name);
        bp_json_add_number(json, "cpu_percent", thread->cpu_percent, 2);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void print_record(bp_buffer *line, const bp_history_record *record,
                         uint64_t wall_offset_ns) {
    bp_json json;
    bp_json_begin_as(&json, BP_JSON_RECORD, line);
    bp_model_add_time(&json, "time", record->ended_ns + wall_offset_ns);
    bp_json_add_uint(&json, "monotonic_ns", record->ended_ns);
    bp_json_add_uint(&json, "interval_ms", record->interval_ns / BP_NS_PER_MS);
    bp_json_add_number(&json, "cpu_percent", record->cpu_percent, 2);
    bp_model_add_known_uint(&json, "rss_kb", record->has_memory, record->rss_kb);
    bp_model_add_known_uint(&json, "vm_size_kb", record->has_memory, record->vm_size_kb);
    bp_model_add_known_uint(&json, "bugpack_kb", record->has_own, record->own_kb);
    bp_json_add_uint(&json, "thread_count", record->thread_count);
    bp_model_add_known_uint(&json, "file_count", record->has_files, record->file_count);
    if (record->has_threads) {
        print_threads(&json, record);
    }
    (void)bp_json_finish(&json, NULL); /* what may fail is the buffer */
}

bugpack_status bp_history_print(const bp_temp_file *records, uint64_t wall_offset_ns, bp_sink *sink,
                                void *context, bugpack_error *error) {
    bp_buffer line;
    bp_ring_reader reader;
    bugpack_status status = BUGPACK_OK;
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
        print_record(&line, &record, wall_offset_ns);
        status = line.status != BUGPACK_OK ? line.status : sink(context, line.data, line.size);
    }
    if (status == BUGPACK_OK && reader.offset < records->size) {
        status = BUGPACK_ERR_IO; /* the reader stops in the same way where it cannot read */
    }
    bp_ring_reader_release(&reader);
    bp_buffer_release(&line);
    return status == BUGPACK_OK ? status
                                : bp_fail(error, status, "cannot write the metrics history");
}
