/*
 * Metrics history: a sample a second, kept in a ring, so that a report shows what the process cost
 * before anybody pressed a key, and needs to wait for nothing.
 */
#ifndef BP_RECORDER_HISTORY_H
#define BP_RECORDER_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/temp_file.h"
#include "model/metrics.h"
#include "platform/task.h"
#include "ring/ring.h"

/*
 * Keeps the snapshots of the newest window, and one compact record for each finished interval. It
 * does not sample by itself: whoever owns the thread gives it snapshots. One writer; readers any
 * thread.
 *
 * A snapshot of 10,000 threads takes 860 KiB, so few are kept: those of a window and one more, so
 * that a trigger just before the newest one has its window too. Where they come faster than eight
 * in a window, some are passed over; where one is larger than BP_HISTORY_LARGE_BYTES, three are
 * kept, and a window spans up to twice as long as it has to.
 */
typedef struct bp_history bp_history;

#define BP_HISTORY_BUSIEST 8 /* threads that a record keeps, by CPU */
#define BP_HISTORY_KEPT_MAX 16
#define BP_HISTORY_LARGE_BYTES ((size_t)1024 * 1024)

/*
 * `ring` is taken over, on success. `window_ms` is the least time that a window for
 * runtime-metrics.json must span (the session's sample_window_ms).
 */
bugpack_status bp_history_new(bp_ring *ring, uint32_t window_ms, bp_history **ret_history,
                              bugpack_error *error);
/* No other thread may be inside it; windows that are still held stay good. NULL is fine. */
void bp_history_free(bp_history *history);

/* How large the ring has to be for `sample_count` records. */
size_t bp_history_ring_bytes(size_t sample_count);

/*
 * Takes a snapshot over (with names), whatever comes of it: `snapshot` is empty afterwards. From
 * the second one on it appends a record of the time since the one before, however long that was:
 * a sample that was missed is a longer interval. Errors: NO_MEMORY, CLOSED, INVALID for a snapshot
 * that is not newer than the last, counts otherwise, or has no room in the ring. A snapshot that is
 * refused is a gap, but for one that comes after the close.
 */
bugpack_status bp_history_add(bp_history *history, bp_task_snapshot *snapshot,
                              bugpack_error *error);

/* The writer could not take a snapshot. Nothing is recorded for it but the count. */
void bp_history_add_gap(bp_history *history);
uint64_t bp_history_gap_count(bp_history *history);

/* Refuses all snapshots from now on. Windows and the ring can still be read. Any thread. */
void bp_history_close(bp_history *history);

/* The two snapshots of a window, held, so that time can pass until they are computed with. */
typedef struct bp_history_held {
    struct bp_shared_snapshot *before, *after;
} bp_history_held;

/*
 * Holds the window that ended at the newest snapshot not after `until_ns`, spanning at least
 * window_ms. False when there is none yet (the session is too young) or its end lies more than
 * `max_age_ns` before `until_ns`: then the caller samples itself. Costs a short lock and no more:
 * for the trigger itself, because a few seconds later the window has been dropped. Any thread.
 */
bool bp_history_hold(bp_history *history, uint64_t until_ns, uint64_t max_age_ns,
                     bp_history_held *ret_held);
/* Lets go of it, also after the history is gone; all zero is fine. */
void bp_history_held_release(bp_history_held *held);

/*
 * Computes the metrics of a held window, without any lock. `ret_began_ns`, `ret_ended_ns`: the
 * window's ends on the monotonic clock. NO_MEMORY. Any thread.
 */
bugpack_status bp_history_held_compute(const bp_history_held *held, bp_metrics *ret_metrics,
                                       uint64_t *ret_began_ns, uint64_t *ret_ended_ns,
                                       bugpack_error *error);

/* The three in one, for who needs the window at once. False also when there is no memory. */
bool bp_history_window(bp_history *history, uint64_t until_ns, uint64_t max_age_ns,
                       bp_metrics *ret_metrics, uint64_t *ret_began_ns, uint64_t *ret_ended_ns);

/* The ring, borrowed: to be copied when a report freezes it. */
bp_ring *bp_history_ring(bp_history *history);

/*
 * Writes metrics-history.jsonl from copied or salvaged records, one object a line: `{"time": ISO,
 * "monotonic_ns", "interval_ms", "cpu_percent", "rss_kb", "vm_size_kb", "thread_count", "threads":
 * [{"tid", "name", "cpu_percent"}…]}`, busiest first, at most BP_HISTORY_BUSIEST, none at 0. The
 * times are those of the snapshot that ended the interval; memory that was not known is left out.
 * A record that makes no sense (a file may be damaged or hostile) is passed over. `records` and
 * `out` are flushed by the caller, the one before and the other after. `ret_count`: the lines.
 * Errors: NO_MEMORY, IO (also when not all of `records` can be read); what was written by then
 * stays in `out`, in whole lines where it was not `out` that failed.
 */
bugpack_status bp_history_print(const bp_temp_file *records, uint64_t wall_offset_ns,
                                bp_temp_file *out, uint64_t *ret_count, bugpack_error *error);

#endif
