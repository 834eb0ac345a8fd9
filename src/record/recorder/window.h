/*
 * The metrics windows of triggers. A trigger asks for a sample and goes on; the monitor takes it at
 * once, pairs it with one of the history, and computes.
 */
#ifndef BP_RECORDER_WINDOW_H
#define BP_RECORDER_WINDOW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/lock.h"
#include "model/metrics.h"
#include "platform/task.h"
#include "recorder/history.h"
#include "recorder/monitor.h"

/* Triggers this close together share one sample. Further apart they do where sampling is expensive:
 * it takes at most a tenth of one CPU. */
#define BP_WINDOW_SHARE_NS (50 * BP_NS_PER_MS)

/* The most memory of all windows of a session. Over it a trigger gets none. */
#define BP_WINDOWS_MAX_BYTES ((size_t)32 << 20)

/* Counted by references. All are released before the windows are. */
typedef struct bp_window bp_window;

/* The members are private. */
typedef struct bp_windows {
    bp_history *history;
    bp_monitor *monitor;
    atomic_size_t held_bytes;
    atomic_bool is_wake_due; /* a window was asked for, and the monitor does not know */
    bp_lock lock;            /* of what follows, and of each window's fields where they say so */
    pthread_cond_t done;
    bp_window *latest; /* NULL: none was asked for */
    uint64_t share_ns;
} bp_windows;

/* The result of a window. It ends at the sample of its trigger, or, where that one failed or came
 * too late, at the newest sample of the history, with the reason in `error`. */
typedef struct bp_window_result {
    bugpack_status status; /* not OK: there are no metrics, for the reason in `error` */
    bool is_other_program; /* then: the process had begun another program */
    bugpack_error error;
    bp_metrics metrics;
} bp_window_result;

/* Both are borrowed; `monitor` is what bp_windows_wake wakes. Without a history (NULL) nothing but
 * that and the release may be called. */
void bp_windows_init(bp_windows *windows, bp_history *history, bp_monitor *monitor);
void bp_windows_release(bp_windows *windows);

/*
 * Asks for a window that ends now; its sample is taken after bp_windows_wake. Waits for nothing.
 * NULL without memory, or when too much is held already. Any thread.
 *
 * `is_last`: the process has ended by `now_ns`. Its window ends then, whenever the sample is taken,
 * which need not wait for a length: it lasts as long as the process did, if that is shorter. Of
 * such a process, `cpu_ns` is all that it used, with the children it waited for; 0: not known.
 */
bp_window *bp_windows_ask(bp_windows *windows, uint64_t now_ns, bool is_last, uint64_t cpu_ns);

/* Wakes the monitor where a window was asked for since the last call: apart from asking, because it
 * is a system call, which a trigger leaves to a thread that it wakes anyway. Any thread. */
void bp_windows_wake(bp_windows *windows);

bp_window *bp_window_retain(bp_window *window); /* NULL stays NULL */
void bp_window_release(bp_window *window);      /* NULL is fine */

/* Takes a snapshot with names. */
typedef bugpack_status bp_window_sample(void *context, bp_task_snapshot *ret_snapshot,
                                        bugpack_error *error);

/* Takes the sample that was asked for when it is due, which is at once, except for a trigger right
 * after the history's first sample. Returns when it is; UINT64_MAX: none was asked for. Monitor. */
uint64_t bp_windows_serve(bp_windows *windows, uint64_t now_ns, bp_window_sample *sample,
                          void *context);

/* Waits for a window until `until_ns` (monotonic). Its result, borrowed; NULL: not yet. Any thread.
 */
const bp_window_result *bp_window_wait(bp_window *window, uint64_t until_ns);

/* When a sample that has not been taken is too late. */
uint64_t bp_window_deadline_ns(const bp_window *window);

/* Waits no longer: where there is no result yet, computes with what the history has. The result,
 * borrowed. Any thread. */
const bp_window_result *bp_window_give_up(bp_window *window);

#endif
