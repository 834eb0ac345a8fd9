/*
 * What the metrics history costs its host: the CPU time of one tick (snapshot with names, record,
 * ring), by the number of threads, as a share of one CPU at one tick a second.
 *
 *   bench_pulse THREADS     prints: microseconds a tick, percent of one CPU at 1 Hz, KiB kept
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/idle_threads.h"
#include "probe/pulse.h"
#include "recorder/history.h"
#include "support/check.h"

enum { tick_count = 200, tick_interval_ms = 10, window_ms = 2 * tick_interval_ms };

static atomic_uint ticks;

static void keep(void *history, bp_task_snapshot *snapshot, const bugpack_error *error) {
    (void)error;
    CHECK(snapshot != NULL);
    CHECK(bp_history_add(history, snapshot, NULL) == BUGPACK_OK);
    atomic_fetch_add(&ticks, 1);
}

int main(int argument_count, char **arguments) {
    unsigned long thread_count = argument_count == 2 ? strtoul(arguments[1], NULL, 10) : 0;
    if (thread_count < 1 || thread_count > 100000) {
        (void)fprintf(stderr, "usage: bench_pulse THREADS\n");
        return 2;
    }
    start_idle_threads((unsigned)thread_count);
    bp_ring *ring = NULL;
    bp_history *history = NULL;
    bp_task *task = NULL;
    bp_pulse *pulse = NULL;
    bp_pulse_options options = BP_PULSE_OPTIONS_INIT;
    options.interval_ms = tick_interval_ms;
    options.cost_percent_max = 0;
    CHECK(bp_ring_new(bp_history_ring_bytes(3600), &ring, NULL) == BUGPACK_OK);
    CHECK(bp_history_new(ring, window_ms, &history, NULL) == BUGPACK_OK);
    CHECK(bp_task_open(0, &task, NULL) == BUGPACK_OK);
    CHECK(bp_pulse_start(task, &options, keep, history, &pulse, NULL) == BUGPACK_OK);
    while (atomic_load(&ticks) <= tick_count) {
        bp_clock_sleep_until(bp_clock_monotonic_ns() + 50 * BP_NS_PER_MS);
    }
    bp_pulse_cost cost = bp_pulse_measure(pulse);
    bp_pulse_stop(pulse);
    double tick_us = (double)cost.cpu_ns / (double)cost.tick_count / 1000.0;
    size_t snapshot_bytes = (thread_count + 1) * sizeof(bp_thread_counters);
    size_t kept_count = snapshot_bytes > BP_HISTORY_LARGE_BYTES ? 3 : 4;
    (void)printf("%.0f %.3f %zu\n", tick_us, tick_us / 10000.0, kept_count * snapshot_bytes / 1024);
    bp_history_free(history);
    bp_task_close(task);
    return 0;
}
