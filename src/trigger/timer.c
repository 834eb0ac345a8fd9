#include "trigger/timer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/thread.h"

struct bp_timer {
    const char *name;
    bp_timer_tick *tick;
    void *context;
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    bool is_started, is_woken, is_stopping;
};

/* Sleeps with the mutex held, until the time or a change. */
static void sleep_until(bp_timer *timer, uint64_t next_ns) {
    while (!timer->is_stopping && !timer->is_woken) {
        if (next_ns == UINT64_MAX) {
            (void)pthread_cond_wait(&timer->changed, &timer->mutex);
        } else if (bp_clock_monotonic_ns() >= next_ns) {
            break;
        } else {
            (void)bp_condition_wait_until(&timer->changed, &timer->mutex, next_ns);
        }
    }
}

static void *run(void *argument) {
    bp_timer *timer = argument;
    bp_thread_set_name(timer->name);
    (void)pthread_mutex_lock(&timer->mutex);
    while (!timer->is_stopping) {
        timer->is_woken = false;
        (void)pthread_mutex_unlock(&timer->mutex);
        uint64_t next_ns = timer->tick(timer->context, bp_clock_monotonic_ns());
        (void)pthread_mutex_lock(&timer->mutex);
        sleep_until(timer, next_ns);
    }
    (void)pthread_mutex_unlock(&timer->mutex);
    return NULL;
}

bugpack_status bp_timer_new(const char *name, bp_timer_tick *tick, void *context,
                            bp_timer **ret_timer, bugpack_error *error) {
    bp_timer *timer = calloc(1, sizeof *timer);
    if (timer == NULL || pthread_mutex_init(&timer->mutex, NULL) != 0) {
        free(timer);
        return bp_fail_memory(error, "make a timer");
    }
    bugpack_status status = bp_condition_init(&timer->changed, error);
    if (status != BUGPACK_OK) {
        (void)pthread_mutex_destroy(&timer->mutex);
        free(timer);
        return status;
    }
    timer->name = name;
    timer->tick = tick;
    timer->context = context;
    *ret_timer = timer;
    return BUGPACK_OK;
}

bugpack_status bp_timer_start(bp_timer *timer, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    (void)pthread_mutex_lock(&timer->mutex);
    timer->is_woken = true;
    if (timer->is_stopping) {
        status = bp_fail(error, BUGPACK_ERR_CLOSED, "the timer was stopped");
    } else if (timer->is_started) {
        (void)pthread_cond_signal(&timer->changed);
    } else {
        status = bp_thread_start(run, timer, &timer->thread, error);
        timer->is_started = status == BUGPACK_OK;
    }
    (void)pthread_mutex_unlock(&timer->mutex);
    return status;
}

void bp_timer_wake(bp_timer *timer) {
    (void)pthread_mutex_lock(&timer->mutex);
    timer->is_woken = true;
    (void)pthread_cond_signal(&timer->changed);
    (void)pthread_mutex_unlock(&timer->mutex);
}

void bp_timer_stop(bp_timer *timer) {
    if (timer == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&timer->mutex);
    bool has_thread = timer->is_started && !timer->is_stopping;
    timer->is_stopping = true;
    (void)pthread_cond_signal(&timer->changed);
    (void)pthread_mutex_unlock(&timer->mutex);
    if (has_thread) {
        (void)pthread_join(timer->thread, NULL);
    }
}

void bp_timer_free(bp_timer *timer) {
    if (timer != NULL) {
        (void)pthread_cond_destroy(&timer->changed);
        (void)pthread_mutex_destroy(&timer->mutex);
        free(timer);
    }
}
