/*
 * The monitor: one thread of a session that does what is due at a time. It samples the process,
 * asks the triggers, and marks the session as alive.
 *
 * A task must be short and must not wait for the host. It may read files under /proc, close files,
 * and write a few bytes, but never sync.
 */
#ifndef BP_RECORDER_MONITOR_H
#define BP_RECORDER_MONITOR_H

#include <stdint.h>

#include <bugpack/error.h>

typedef struct bp_monitor bp_monitor;

/*
 * Does what is due at `now_ns` (monotonic) and returns when it wants to be called again at the
 * latest; UINT64_MAX: not before a wake. On the monitor's thread, one task at a time.
 */
typedef uint64_t bp_monitor_task(void *context, uint64_t now_ns);

#define BP_MONITOR_TASK_MAX 4

/* Starts the thread, of this name. NO_MEMORY, IO. */
#define BP_MONITOR_THREAD "bugpack-monitor"
bugpack_status bp_monitor_new(bp_monitor **ret_monitor, bugpack_error *error);

/* Ends the thread. All tasks have been removed. NULL is fine. */
void bp_monitor_free(bp_monitor *monitor);

/* Adds a task, which is called at once. At most BP_MONITOR_TASK_MAX. Any thread. */
void bp_monitor_add(bp_monitor *monitor, bp_monitor_task *task, void *context);

/* Removes the task, which is not running afterwards. An unknown one is fine. Any thread but the
 * monitor's. */
void bp_monitor_remove(bp_monitor *monitor, bp_monitor_task *task);

/* Calls every task soon, because something else may be due. Any thread. */
void bp_monitor_wake(bp_monitor *monitor);

#endif
