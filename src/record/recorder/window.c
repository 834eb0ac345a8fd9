#include "recorder/window.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/thread.h"

/* The share of one CPU that samples for triggers may take. */
static const uint64_t cost_divisor = 10;

/* The time that a monitor stuck in /proc may cost a report. */
static const uint64_t patience_ns = 2 * BP_NS_PER_SEC;

struct bp_window {
    bp_windows *windows;
    atomic_uint reference_count;
    uint64_t asked_ns;
    size_t held_bytes;
    bp_window_result result; /* not changed once it is done */

    /* Under the lock. */
    uint64_t end_ns;     /* of a process that has ended: by then; else 0 */
    uint64_t cpu_ns;     /* then: all that it used, or 0 */
    uint64_t sampled_ns; /* when its sample was begun; 0: not yet */
    bool is_given_up;
    bool is_claimed; /* somebody computes, or has computed, the result */
    bool is_done;
};

void bp_windows_init(bp_windows *windows, bp_history *history, bp_monitor *monitor) {
    *windows = (bp_windows){.history = history, .monitor = monitor, .share_ns = BP_WINDOW_SHARE_NS};
    bp_condition_init(&windows->done);
    bp_lock_init(&windows->lock, BP_LOCK_WINDOWS);
}

void bp_windows_release(bp_windows *windows) {
    bp_window_release(windows->latest);
    (void)pthread_cond_destroy(&windows->done);
    bp_lock_destroy(&windows->lock);
}

bp_window *bp_window_retain(bp_window *window) {
    if (window != NULL) {
        atomic_fetch_add_explicit(&window->reference_count, 1, memory_order_relaxed);
    }
    return window;
}

void bp_window_release(bp_window *window) {
    if (window != NULL &&
        atomic_fetch_sub_explicit(&window->reference_count, 1, memory_order_acq_rel) == 1) {
        atomic_fetch_sub_explicit(&window->windows->held_bytes, window->held_bytes,
                                  memory_order_relaxed);
        bp_metrics_release(&window->result.metrics);
        free(window);
    }
}

/* The last window of a process is that of one whose sample is yet to come, too. */
bp_window *bp_windows_ask(bp_windows *windows, uint64_t now_ns, bool is_last, uint64_t cpu_ns) {
    bp_window *old = NULL;
    bp_window *made = NULL;
    bp_lock_acquire(&windows->lock);
    const bp_window *latest = windows->latest;
    bool is_to_come = latest != NULL && !latest->is_given_up && latest->sampled_ns == 0;
    bool has_just_come =
        latest != NULL && !latest->is_given_up && !is_last &&
        (now_ns < latest->sampled_ns || now_ns - latest->sampled_ns <= windows->share_ns);
    if (!is_to_come && !has_just_come) {
        old = windows->latest;
        windows->latest = NULL;
        if (atomic_load_explicit(&windows->held_bytes, memory_order_relaxed) <
            BP_WINDOWS_MAX_BYTES) {
            made = calloc(1, sizeof *made);
        }
        if (made != NULL) {
            made->windows = windows;
            made->asked_ns = now_ns;
            atomic_init(&made->reference_count, 1); /* ours */
            windows->latest = made;
            atomic_store_explicit(&windows->is_wake_due, true, memory_order_relaxed);
        }
    }
    if (is_last && windows->latest != NULL) {
        windows->latest->end_ns = now_ns;
        windows->latest->cpu_ns = cpu_ns;
    }
    bp_window *window = bp_window_retain(windows->latest);
    bp_lock_release(&windows->lock);
    bp_window_release(old);
    return window;
}

void bp_windows_wake(bp_windows *windows) {
    if (atomic_load(&windows->is_wake_due) && atomic_exchange(&windows->is_wake_due, false)) {
        bp_monitor_wake(windows->monitor);
    }
}

/* Nothing has changed since the process ended: its last counters are those of its end. */
static void move_to_end(uint64_t end_ns, uint64_t cpu_ns, bp_task_snapshot *end) {
    uint64_t first_ns = end->first_cpu * end->cpu_unit_ns;
    uint64_t late_ns = end->taken_ns > end_ns ? end->taken_ns - end_ns : 0;
    end->taken_ns -= late_ns;
    end->boottime_ns -= end->boottime_ns > late_ns ? late_ns : 0;
    end->uptime_ns -= end->uptime_ns > late_ns ? late_ns : end->uptime_ns;
    end->extra_ns = cpu_ns > first_ns ? cpu_ns - first_ns : 0;
}

/* A process that was not sampled while it lived: then all its counters were 0. */
static bugpack_status compute_whole_life(bp_task_snapshot *end, bp_metrics *ret_metrics,
                                         bugpack_error *error) {
    bp_task_snapshot birth = {.taken_ns = end->taken_ns - end->uptime_ns,
                              .boottime_ns = end->boottime_ns - end->uptime_ns,
                              .birth_unit_ns = end->birth_unit_ns,
                              .cpu_unit_ns = end->cpu_unit_ns};
    return bp_metrics_compute(&birth, end, ret_metrics, error);
}

/* Computes the result, once. `end` is NULL when there is no sample, for the reason in `why`. */
static void settle(bp_window *window, bp_task_snapshot *end, const bugpack_error *why) {
    bp_windows *windows = window->windows;
    bp_lock_acquire(&windows->lock);
    bool is_mine = !window->is_claimed;
    uint64_t end_ns = window->end_ns, cpu_ns = window->cpu_ns;
    window->is_claimed = true;
    bp_lock_release(&windows->lock);
    if (!is_mine) {
        return;
    }
    bp_window_result *result = &window->result;
    bugpack_error failure = BUGPACK_ERROR_INIT;
    bool is_other;
    bool is_last = end_ns != 0 && end != NULL;
    if (is_last) {
        move_to_end(end_ns, cpu_ns, end);
    }
    result->status =
        bp_history_compute(windows->history, end, is_last, &result->metrics, &is_other, &failure);
    bool has_begin = result->status != BUGPACK_ERR_IO;
    if (!has_begin && !is_other && is_last && end->has_uptime) {
        result->status = compute_whole_life(end, &result->metrics, &failure);
    }
    if (end == NULL || why->status != BUGPACK_OK) {
        result->error = *why; /* with a sample: that of a process which has ended since */
    } else if (is_other) {
        (void)bp_fail(&result->error, BUGPACK_ERR_NO_PROCESS, "the process began another program%s",
                      has_begin ? ", and the window with that" : "");
    }
    if (!has_begin && (end == NULL || is_other)) {
        result->status = result->error.status;
        result->is_other_program = end != NULL;
    } else if (result->status != BUGPACK_OK) {
        result->error = failure;
    }
    window->held_bytes =
        sizeof *window + result->metrics.thread_count * sizeof *result->metrics.threads;
    atomic_fetch_add_explicit(&windows->held_bytes, window->held_bytes, memory_order_relaxed);
    bp_lock_acquire(&windows->lock);
    window->is_done = true;
    (void)pthread_cond_broadcast(&windows->done);
    bp_lock_release(&windows->lock);
}

static void take_sample(bp_window *window, bp_window_sample *sample, void *context) {
    bp_windows *windows = window->windows;
    bp_task_snapshot snapshot = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t cpu_before_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    bp_lock_acquire(&windows->lock);
    window->sampled_ns = bp_clock_monotonic_ns();
    bp_lock_release(&windows->lock);
    bugpack_status status = sample(context, &snapshot, &error);
    settle(window, status == BUGPACK_OK ? &snapshot : NULL, &error);
    bp_task_snapshot_release(&snapshot);
    uint64_t cost_ns = cost_divisor * (bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before_ns);
    bp_lock_acquire(&windows->lock);
    windows->share_ns = cost_ns > BP_WINDOW_SHARE_NS ? cost_ns : BP_WINDOW_SHARE_NS;
    bp_lock_release(&windows->lock);
}

uint64_t bp_windows_serve(bp_windows *windows, uint64_t now_ns, bp_window_sample *sample,
                          void *context) {
    bp_lock_acquire(&windows->lock);
    bp_window *latest = windows->latest;
    bool is_pending = latest != NULL && latest->sampled_ns == 0 && !latest->is_given_up;
    bool is_last = is_pending && latest->end_ns != 0;
    bp_window *window = is_pending ? bp_window_retain(latest) : NULL;
    bp_lock_release(&windows->lock);
    if (window == NULL) {
        return UINT64_MAX;
    }
    uint64_t due_ns = is_last ? 0 : bp_history_ready_ns(windows->history, window->asked_ns);
    if (due_ns <= now_ns) {
        take_sample(window, sample, context);
        due_ns = UINT64_MAX;
    }
    bp_window_release(window);
    return due_ns;
}

const bp_window_result *bp_window_wait(bp_window *window, uint64_t until_ns) {
    bp_windows *windows = window->windows;
    bp_lock_acquire(&windows->lock);
    while (!window->is_done && bp_clock_monotonic_ns() < until_ns &&
           bp_lock_wait_until(&windows->lock, &windows->done, until_ns)) {}
    bool is_done = window->is_done;
    bp_lock_release(&windows->lock);
    return is_done ? &window->result : NULL;
}

uint64_t bp_window_deadline_ns(const bp_window *window) {
    return window->asked_ns + patience_ns;
}

const bp_window_result *bp_window_give_up(bp_window *window) {
    bp_windows *windows = window->windows;
    bugpack_error late = BUGPACK_ERROR_INIT;
    bp_lock_acquire(&windows->lock);
    window->is_given_up = !window->is_done;
    bp_lock_release(&windows->lock);
    (void)bp_fail(&late, BUGPACK_ERR_TIMEOUT, "the sample at the trigger was not taken in time");
    settle(window, NULL, &late);
    return bp_window_wait(window,
                          UINT64_MAX); /* another thread may compute; it waits for nothing */
}
