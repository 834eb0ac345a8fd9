/*
 * The pulse: a thread of ours that takes a snapshot of a process at a steady interval.
 *
 * Ticks stand on a grid from the first one on, so they do not drift. A tick that is late (the
 * machine was busy, the process was stopped) is taken once, and the slots that have passed by then
 * are counted as missed: they are never made up for. No two ticks begin closer together than half
 * an interval. A machine's sleep is no delay, because the monotonic clock stands still in it.
 */
#ifndef BP_PROBE_PULSE_H
#define BP_PROBE_PULSE_H

#include <pthread.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "platform/task.h"

typedef struct bp_pulse bp_pulse;

/*
 * Called at every tick, on the pulse's thread. `snapshot` has the names; it is the callee's to
 * take over (leaving it empty, as bp_history_add does), what is left in it is released afterwards.
 * NULL when it could not be taken: then `error` says why. After NO_PROCESS it is not called again.
 */
typedef void bp_pulse_beat(void *context, bp_task_snapshot *snapshot, const bugpack_error *error);

/*
 * Waits on the pulse's thread, which blocks every signal, until the monotonic clock shows
 * `deadline_ns`. It may return earlier at any time, and does when it has been woken, also when that
 * came before it began to wait; it is called again as long as there is something to wait for. It
 * may do other short work meanwhile, such as answering a signal that it takes with sigtimedwait(2).
 * A deadline of UINT64_MAX, once the process has ended, never comes: then there is only a wake.
 */
typedef void bp_pulse_wait(void *context, uint64_t deadline_ns);

/* Ends a wait, the present one or the next: called from other threads than the pulse's `thread`. */
typedef void bp_pulse_wake(void *context, pthread_t thread);

typedef struct bp_pulse_options {
    uint32_t interval_ms;
    /* The pulse slows down by whole slots so that, on average, it takes no more of one CPU than
     * this. A process with 10,000 threads is expensive to look at. 0: as often as asked for. */
    uint32_t cost_percent_max;
    bp_pulse_wait *wait; /* NULL: on a condition variable; otherwise `wake` must be there too */
    bp_pulse_wake *wake;
    void *wait_context;
} bp_pulse_options;

#define BP_PULSE_OPTIONS_INIT                                                                      \
    { 1000u, 1u, NULL, NULL, NULL }

/*
 * Starts the thread "bugpack-pulse"; the first tick comes at once. It looks at a clone of `task`
 * (platform/task.h), so the caller may use and close its own meanwhile. Errors: INVALID for options
 * that make no sense, those of bp_task_clone, and those of starting a thread.
 */
bugpack_status bp_pulse_start(const bp_task *task, const bp_pulse_options *options,
                              bp_pulse_beat *beat, void *context, bp_pulse **ret_pulse,
                              bugpack_error *error);

/*
 * Ends the thread and frees the pulse: waits for a tick that is under way and for nothing else.
 * When it returns, the callback is over for good. Not from the callback; not in a forked child,
 * which does not have the thread. NULL is fine.
 */
void bp_pulse_stop(bp_pulse *pulse);

/* What the pulse has done, and what that cost. */
typedef struct bp_pulse_cost {
    uint64_t tick_count;
    uint64_t failed_count; /* of them, those that gave no snapshot */
    uint64_t missed_count; /* slots of the grid without a tick: late, too slow, or too expensive */
    uint64_t cpu_ns;       /* CPU time of the thread in all ticks, the callback's included */
    uint64_t longest_ns;   /* the longest tick, by the monotonic clock */
} bp_pulse_cost;

/* Any thread. */
bp_pulse_cost bp_pulse_measure(bp_pulse *pulse);

/* One tick on the monotonic clock: its slot, when it began and ended, and its CPU time. */
typedef struct bp_pulse_tick {
    uint64_t slot_ns, began_ns, ended_ns, cpu_ns;
} bp_pulse_tick;

/* The slot of the next tick, and how many are left out before it. Pure; for the thread and tests.
 */
uint64_t bp_pulse_next_slot(const bp_pulse_tick *tick, uint64_t interval_ns,
                            uint32_t cost_percent_max, uint64_t *ret_missed_count);

#endif
