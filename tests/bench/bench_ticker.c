/*
 * What the metrics history costs its host: the CPU time of one tick (snapshot with names, record,
 * ring), by the number of threads.
 *
 *   bench_ticker THREADS     prints microseconds a tick
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "bench/idle_threads.h"
#include "process/ticker.h"
#include "recorder/history.h"
#include "support/check.h"

enum { tick_count = 200, tick_interval_ms = 10, window_ms = 2 * tick_interval_ms };

static void keep(void *history, bp_task_snapshot *snapshot, const bugpack_error *error) {
    (void)error;
    CHECK(snapshot != NULL);
    CHECK(bp_history_add(history, snapshot, NULL) == BUGPACK_OK);
}

int main(int argument_count, char **arguments) {
    unsigned long thread_count = argument_count == 2 ? strtoul(arguments[1], NULL, 10) : 0;
    if (thread_count < 1 || thread_count > 100000) {
        (void)fprintf(stderr, "usage: bench_ticker THREADS\n");
        return 2;
    }
    start_idle_threads((unsigned)thread_count);
    bp_ring *ring = NULL;
    bp_history *history = NULL;
    bp_task *task = NULL;
    bp_ticker *ticker = NULL;
    CHECK(bp_ring_new(bp_history_ring_bytes(3600), &ring, NULL) == BUGPACK_OK);
    CHECK(bp_history_new(ring, window_ms, &history, NULL) == BUGPACK_OK);
    CHECK(bp_task_open(0, false, &task, NULL) == BUGPACK_OK);
    CHECK(bp_ticker_new(task, tick_interval_ms, 0, keep, history, &ticker, NULL) == BUGPACK_OK);
    struct timespec before, after;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    for (unsigned i = 0; i < tick_count; i++) {
        bp_clock_sleep_until(bp_ticker_tick(ticker, bp_clock_monotonic_ns()));
    }
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    bp_ticker_free(ticker);
    double cpu_us = (double)(after.tv_sec - before.tv_sec) * 1e6 +
                    (double)(after.tv_nsec - before.tv_nsec) / 1e3;
    (void)printf("%.0f\n", cpu_us / tick_count);
    bp_history_free(history);
    bp_task_close(task);
    return 0;
}
