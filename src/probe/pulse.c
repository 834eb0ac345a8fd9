#include "probe/pulse.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/thread.h"

struct bp_pulse {
    bp_task *task;
    bp_pulse_options options;
    bp_pulse_beat *beat;
    void *context;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t woken; /* the own way to wait */
    bool is_stopping;     /* this and the cost: under the mutex */
    bp_pulse_cost cost;
};

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* When the CPU time of a tick has spread over so much time that it is within the limit. */
static uint64_t paid_ns(const bp_pulse_tick *tick, uint32_t cost_percent_max) {
    if (cost_percent_max == 0) {
        return 0;
    }
    uint64_t spread_ns = tick->cpu_ns > UINT64_MAX / 100 ? UINT64_MAX : tick->cpu_ns * 100;
    return add(tick->began_ns, spread_ns / cost_percent_max);
}

uint64_t bp_pulse_next_slot(const bp_pulse_tick *tick, uint64_t interval_ns,
                            uint32_t cost_percent_max, uint64_t *ret_missed_count) {
    uint64_t next_ns = add(tick->slot_ns, interval_ns);
    uint64_t earliest_ns = larger(tick->ended_ns, add(tick->began_ns, interval_ns / 2));
    earliest_ns = larger(earliest_ns, paid_ns(tick, cost_percent_max));
    uint64_t missed_count = 0;
    if (earliest_ns > next_ns) {
        uint64_t late_ns = earliest_ns - next_ns;
        missed_count = late_ns / interval_ns + (late_ns % interval_ns != 0);
        next_ns = missed_count > (UINT64_MAX - next_ns) / interval_ns
                      ? UINT64_MAX
                      : next_ns + missed_count * interval_ns;
    }
    *ret_missed_count = missed_count;
    return next_ns;
}

static uint64_t thread_cpu_ns(void) {
    struct timespec cpu = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (uint64_t)cpu.tv_sec * BP_NS_PER_SEC + (uint64_t)cpu.tv_nsec;
}

/* One tick of the slot in `tick`, whose other values it fills. */
static bugpack_status beat_once(bp_pulse *pulse, bp_pulse_tick *tick) {
    bp_task_snapshot snapshot = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t cpu_before_ns = thread_cpu_ns();
    tick->began_ns = bp_clock_monotonic_ns();
    bugpack_status status = bp_task_snapshot_take(pulse->task, true, &snapshot, &error);
    pulse->beat(pulse->context, status == BUGPACK_OK ? &snapshot : NULL, &error);
    bp_task_snapshot_release(&snapshot);
    tick->ended_ns = bp_clock_monotonic_ns();
    tick->cpu_ns = thread_cpu_ns() - cpu_before_ns;
    return status;
}

static void count_tick(bp_pulse_cost *cost, const bp_pulse_tick *tick, bugpack_status status,
                       uint64_t missed_count) {
    cost->tick_count++;
    cost->failed_count += status != BUGPACK_OK;
    cost->missed_count = add(cost->missed_count, missed_count);
    cost->cpu_ns += tick->cpu_ns;
    cost->longest_ns = larger(cost->longest_ns, tick->ended_ns - tick->began_ns);
}

/* Waits for the slot with the mutex held; false when the pulse is to stop. */
static bool wait_for_slot(bp_pulse *pulse, uint64_t slot_ns) {
    while (!pulse->is_stopping && bp_clock_monotonic_ns() < slot_ns) {
        if (pulse->options.wait == NULL) {
            (void)bp_condition_wait_until(&pulse->woken, &pulse->mutex, slot_ns);
        } else {
            (void)pthread_mutex_unlock(&pulse->mutex);
            pulse->options.wait(pulse->options.wait_context, slot_ns);
            (void)pthread_mutex_lock(&pulse->mutex);
        }
    }
    return !pulse->is_stopping;
}

static void *run(void *argument) {
    bp_pulse *pulse = argument;
    bp_thread_set_name("bugpack-pulse");
    uint64_t interval_ns = pulse->options.interval_ms * BP_NS_PER_MS;
    uint64_t slot_ns = bp_clock_monotonic_ns();
    (void)pthread_mutex_lock(&pulse->mutex);
    while (wait_for_slot(pulse, slot_ns)) {
        (void)pthread_mutex_unlock(&pulse->mutex);
        bp_pulse_tick tick = {.slot_ns = slot_ns};
        uint64_t missed_count;
        bugpack_status status = beat_once(pulse, &tick);
        slot_ns =
            bp_pulse_next_slot(&tick, interval_ns, pulse->options.cost_percent_max, &missed_count);
        if (status == BUGPACK_ERR_NO_PROCESS) {
            slot_ns = UINT64_MAX; /* only the stop is left to wait for */
            missed_count = 0;
        }
        (void)pthread_mutex_lock(&pulse->mutex);
        count_tick(&pulse->cost, &tick, status, missed_count);
    }
    (void)pthread_mutex_unlock(&pulse->mutex);
    return NULL;
}

static void pulse_free(bp_pulse *pulse) {
    bp_task_close(pulse->task);
    (void)pthread_cond_destroy(&pulse->woken);
    (void)pthread_mutex_destroy(&pulse->mutex);
    free(pulse);
}

static bugpack_status pulse_new(const bp_pulse_options *options, bp_pulse **ret_pulse,
                                bugpack_error *error) {
    bp_pulse *pulse = calloc(1, sizeof *pulse);
    if (pulse == NULL || pthread_mutex_init(&pulse->mutex, NULL) != 0) {
        free(pulse);
        return bp_fail_memory(error, "start the pulse");
    }
    bugpack_status status = bp_condition_init(&pulse->woken, error);
    if (status != BUGPACK_OK) {
        (void)pthread_mutex_destroy(&pulse->mutex);
        free(pulse);
        return status;
    }
    pulse->options = *options;
    *ret_pulse = pulse;
    return BUGPACK_OK;
}

bugpack_status bp_pulse_start(const bp_task *task, const bp_pulse_options *options,
                              bp_pulse_beat *beat, void *context, bp_pulse **ret_pulse,
                              bugpack_error *error) {
    if (options->interval_ms == 0 || (options->wait == NULL) != (options->wake == NULL)) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "a pulse needs an interval, and ways to wait and to wake or neither");
    }
    bp_pulse *pulse = NULL;
    bugpack_status status = pulse_new(options, &pulse, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    pulse->beat = beat;
    pulse->context = context;
    status = bp_task_clone(task, &pulse->task, error);
    if (status == BUGPACK_OK) {
        status = bp_thread_start(run, pulse, &pulse->thread, error);
    }
    if (status != BUGPACK_OK) {
        pulse_free(pulse);
        return status;
    }
    *ret_pulse = pulse;
    return BUGPACK_OK;
}

void bp_pulse_stop(bp_pulse *pulse) {
    if (pulse == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&pulse->mutex);
    pulse->is_stopping = true;
    (void)pthread_cond_signal(&pulse->woken);
    (void)pthread_mutex_unlock(&pulse->mutex);
    if (pulse->options.wake != NULL) {
        pulse->options.wake(pulse->options.wait_context, pulse->thread);
    }
    (void)pthread_join(pulse->thread, NULL);
    pulse_free(pulse);
}

bp_pulse_cost bp_pulse_measure(bp_pulse *pulse) {
    (void)pthread_mutex_lock(&pulse->mutex);
    bp_pulse_cost cost = pulse->cost;
    (void)pthread_mutex_unlock(&pulse->mutex);
    return cost;
}
