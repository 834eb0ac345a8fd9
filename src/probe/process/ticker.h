/*
 * Samples a process at a steady interval, called by a thread that keeps time.
 *
 * Ticks are on a grid from the first one on, so they do not drift. A late tick is taken once, and
 * the slots that have passed by then are left out. No two ticks begin closer together than half an
 * interval. The monotonic clock stops in sleep, so that is no delay.
 */
#ifndef BP_PROCESS_TICKER_H
#define BP_PROCESS_TICKER_H

#include <stdint.h>

#include <bugpack/error.h>

#include "platform/task.h"

typedef struct bp_ticker bp_ticker;

/*
 * Called at every tick. `snapshot` has the names; the callee may take it over (leaving it empty, as
 * bp_history_add does), else it is released afterwards. NULL when it could not be taken, for the
 * reason in `error`. After NO_PROCESS it is not called again.
 */
typedef void bp_ticker_sample(void *context, bp_task_snapshot *snapshot,
                              const bugpack_error *error);

/*
 * Samples a clone of `task` (platform/task.h), so the caller may use and close its own meanwhile.
 * Slots are left out so that, on average, sampling takes no more of one CPU than
 * `cost_percent_max`: a process with 10,000 threads is expensive to look at. 0: no bound. Errors as
 * bp_task_clone.
 */
bugpack_status bp_ticker_new(const bp_task *task, uint32_t interval_ms, uint32_t cost_percent_max,
                             bp_ticker_sample *sample, void *context, bp_ticker **ret_ticker,
                             bugpack_error *error);
void bp_ticker_free(bp_ticker *ticker); /* NULL is fine */

/* A bp_monitor_task: samples when a tick is due, the first time at once. */
uint64_t bp_ticker_tick(void *ticker, uint64_t now_ns);

/* Samples the same process beside the ticks, on the thread that calls them. `ret_snapshot` has the
 * names and is the caller's. Errors as bp_task_snapshot_take. */
bugpack_status bp_ticker_sample_now(void *ticker, bp_task_snapshot *ret_snapshot,
                                    bugpack_error *error);

/* One tick on the monotonic clock: its slot, when it began and ended, and its CPU time. */
typedef struct bp_tick {
    uint64_t slot_ns, began_ns, ended_ns, cpu_ns;
} bp_tick;

/* The slot of the next tick. Pure. */
uint64_t bp_ticker_next_slot(const bp_tick *tick, uint64_t interval_ns, uint32_t cost_percent_max);

#endif
