/*
 * Metrics history: a sample a second, kept in a ring, so that a report shows what the process cost
 * before anybody pressed a key, and needs to wait for nothing.
 */
#ifndef BP_RECORDER_HISTORY_H
#define BP_RECORDER_HISTORY_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/spool.h"
#include "model/metrics.h"
#include "platform/task.h"
#include "ring/ring.h"

/*
 * Keeps the snapshots of the newest window, and one compact record for each finished interval. It
 * does not sample by itself: whoever owns the thread gives it snapshots. One writer; readers any
 * thread.
 */
typedef struct bp_history bp_history;

#define BP_HISTORY_BUSIEST 8 /* threads that a record keeps, by CPU */

/*
 * `ring` is taken over. `window_ms` is the least time that a window for runtime-metrics.json must
 * span (the session's sample_window_ms): snapshots are kept until a newer one is that old.
 */
bugpack_status bp_history_new(bp_ring *ring, uint32_t window_ms, bp_history **ret_history,
                              bugpack_error *error);
void bp_history_free(bp_history *history);

/* How large the ring has to be for `sample_count` records. */
size_t bp_history_ring_bytes(size_t sample_count);

/* Takes a snapshot over (with names) and, from the second one on, appends a record. */
bugpack_status bp_history_add(bp_history *history, bp_task_snapshot *snapshot,
                              bugpack_error *error);
void bp_history_close(bp_history *history);

/*
 * The metrics of the window that ended at the newest snapshot not after `until_ns`, spanning at
 * least window_ms. False when there is none yet (the session is too young) or the newest one is
 * older than `max_age_ns`: then the caller samples itself. `ret_began_ns`, `ret_ended_ns`: the
 * window's ends on the monotonic clock.
 */
bool bp_history_window(bp_history *history, uint64_t until_ns, uint64_t max_age_ns,
                       bp_metrics *ret_metrics, uint64_t *ret_began_ns, uint64_t *ret_ended_ns);

/* The ring, borrowed: to be copied when a report freezes it. */
bp_ring *bp_history_ring(bp_history *history);

/*
 * Writes metrics-history.jsonl from copied or salvaged records, one object a line: `{"time": ISO,
 * "monotonic_ns", "interval_ms", "cpu_percent", "rss_kb", "vm_size_kb", "thread_count", "threads":
 * [{"tid", "name", "cpu_percent"}…]}`, busiest first, at most BP_HISTORY_BUSIEST, none at 0.
 */
bugpack_status bp_history_print(const bp_spool *records, uint64_t wall_offset_ns, bp_spool *out,
                                uint64_t *ret_count, bugpack_error *error);

#endif
