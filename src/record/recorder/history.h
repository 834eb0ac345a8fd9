/*
 * Metrics history: one sample a second, recorded in a ring. A report shows them, and the window of
 * its metrics begins at one of them (recorder/window.h).
 */
#ifndef BP_RECORDER_HISTORY_H
#define BP_RECORDER_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/sink.h"
#include "base/temp_file.h"
#include "model/metrics.h"
#include "platform/task.h"
#include "ring/ring.h"

/*
 * Holds the snapshots of the newest window, and records one compact summary per interval. One
 * writer, the monitor; readers on any thread.
 *
 * A snapshot of 10,000 threads takes 860 KiB, so few are held: those of one window. Of more than
 * eight per window some are skipped. When one exceeds BP_HISTORY_LARGE_BYTES, at most three are
 * held, and a window may last from half to twice its time.
 */
typedef struct bp_history bp_history;

#define BP_HISTORY_BUSIEST 8 /* threads per record, by CPU */
#define BP_HISTORY_HELD_MAX 16
#define BP_HISTORY_LARGE_BYTES ((size_t)1024 * 1024)

/*
 * Takes ownership of `ring` on success. `window_ms` is what a window for runtime-metrics.json is to
 * span (the session's sample_window_ms); 0: about 250 ms, and no wait for it.
 */
bugpack_status bp_history_new(bp_ring *ring, uint32_t window_ms, bp_history **ret_history,
                              bugpack_error *error);
/* No other thread may be inside. NULL is fine. */
void bp_history_free(bp_history *history);

/* The size of a ring for `sample_count` records. */
size_t bp_history_ring_bytes(size_t sample_count);

/*
 * Takes a snapshot (with names) and empties `snapshot`, also on failure. From the second one on it
 * appends a record of the time since the previous one. NO_MEMORY; INVALID, with nothing changed,
 * for a snapshot that is not newer than the last, has another CPU unit, or does not fit into the
 * ring.
 */
bugpack_status bp_history_add(bp_history *history, bp_task_snapshot *snapshot,
                              bugpack_error *error);

/*
 * The open files of the process, for the next record of either kind. The writer.
 */
void bp_history_note_files(bp_history *history, uint64_t file_count);

/*
 * Adds totals that somebody has read between two snapshots. From the second ones on it appends a
 * record without threads, of the time since the previous ones. The writer.
 */
void bp_history_add_totals(bp_history *history, const bp_task_totals *totals);

/*
 * In a session about its own process: what the rings hold, before each snapshot is added. From then
 * on records also say how much of the memory is bugpack's: this, and all growth in intervals in
 * which a report was written, as bp_history_note_report says. The writer; any thread.
 */
void bp_history_note_rings(bp_history *history, uint64_t used_bytes);
void bp_history_note_report(bp_history *history, bool begins);

/* When the oldest snapshot will have been taken so long ago that a window can begin there: 250 ms,
 * or window_ms where that is less. Without a snapshot `asked_ns`. Any thread. */
uint64_t bp_history_ready_ns(bp_history *history, uint64_t asked_ns);

/*
 * Computes the metrics of a window that ends at `end`, or, where that is NULL, at the newest
 * snapshot. It begins at a snapshot that lies back as far as bp_history_ready_ns says: the one
 * whose window is closest to window_ms. `may_be_short`: at any, for a process that has ended. To be
 * called when the window ends: a few seconds later the snapshot has been dropped. It has no
 * snapshot of another program than the one at the end: `ret_is_other` says that this is why it is
 * shorter, or that there is none. IO without a snapshot to begin at; INVALID for different CPU
 * units; NO_MEMORY. Any thread.
 */
bugpack_status bp_history_compute(bp_history *history, bp_task_snapshot *end, bool may_be_short,
                                  bp_metrics *ret_metrics, bool *ret_is_other,
                                  bugpack_error *error);

/*
 * Prints metrics-history.jsonl from copied or recovered records, one object a line: `{"time": ISO,
 * "monotonic_ns", "interval_ms", "cpu_percent", "rss_kb", "vm_size_kb", "bugpack_kb",
 * "thread_count", "file_count", "threads":
 * [{"tid", "name", "cpu_percent"}…]}`, busiest first, at most BP_HISTORY_BUSIEST, none at 0. The
 * times are those of the snapshot that ended the interval; what is not known is left out. Invalid
 * records are skipped. `records` is flushed; the sink gets whole lines.
 * NO_MEMORY, IO where not all of `records` can be read, or the sink's error.
 */
bugpack_status bp_history_print(const bp_temp_file *records, uint64_t wall_offset_ns, bp_sink *sink,
                                void *context, bugpack_error *error);

/*
 * The record of one interval.
 *
 * The writing program reads it, or a later one on the same machine, so numbers have the machine's
 * own byte order and width. A change of the layout needs a new tag; readers skip unknown tags.
 */

#define BP_HISTORY_TAG 0x33545348u /* "HST3" */

typedef struct bp_history_thread {
    uint64_t tid;
    double cpu_percent;
    char name[64]; /* any bytes, NUL-terminated */
} bp_history_thread;

/* The payload. Only the first `busy_count` threads are written. */
typedef struct bp_history_record {
    uint64_t ended_ns; /* monotonic */
    uint64_t interval_ns;
    double cpu_percent;
    uint64_t rss_kb, vm_size_kb;
    uint64_t thread_count;
    uint32_t busy_count;
    uint8_t has_memory, has_own, has_files, has_threads; /* 0 or 1 */
    uint64_t own_kb; /* the part of rss_kb that may be bugpack's */
    uint64_t file_count;
    bp_history_thread threads[BP_HISTORY_BUSIEST];
} bp_history_record;

/* Fills a record from the metrics of an interval, busiest threads first. */
void bp_history_record_make(const bp_metrics *metrics, uint64_t began_ns, uint64_t ended_ns,
                            bp_history_record *ret_record);

/* The size of its payload. */
size_t bp_history_record_bytes(const bp_history_record *record);

#endif
