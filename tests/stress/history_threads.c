/*
 * A history that is sampled at full speed, and readers that hold windows, compute, copy the ring
 * and print meanwhile. Run under ThreadSanitizer too.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "probe/ticker.h"
#include "recorder/history.h"
#include "recorder/monitor.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { reader_count = 4, window_count = 200, print_count = 20, window_ms = 10 };

static bp_history *history;
static temp_dir dir;

static void keep(void *context, bp_task_snapshot *snapshot, const bugpack_error *error) {
    bugpack_error refused = BUGPACK_ERROR_INIT;
    (void)context;
    (void)error;
    CHECK(snapshot != NULL);
    CHECK(bp_history_add(history, snapshot, &refused) == BUGPACK_OK);
}

static void check_window(const bp_metrics *metrics, uint64_t began_ns, uint64_t ended_ns,
                         uint64_t until_ns) {
    CHECK(ended_ns <= until_ns && ended_ns - began_ns >= window_ms * BP_NS_PER_MS);
    CHECK(metrics->sample_window_ms == (ended_ns - began_ns) / BP_NS_PER_MS);
    CHECK(metrics->thread_count >= 1 && metrics->cpu_percent >= 0.0);
    for (size_t i = 1; i < metrics->thread_count; i++) {
        CHECK(metrics->threads[i - 1].tid < metrics->threads[i].tid);
    }
}

/* Holds a window, lets the writer drop its snapshots, and computes with it then. */
static void *read_windows(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < window_count;) {
        uint64_t until_ns = bp_clock_monotonic_ns();
        bp_history_held held = {NULL, NULL};
        if (!bp_history_hold(history, until_ns, UINT64_MAX, &held)) {
            bp_clock_sleep_until(until_ns + BP_NS_PER_MS);
            continue;
        }
        if (i % 8 == 0) {
            bp_clock_sleep_until(until_ns + 3 * window_ms * BP_NS_PER_MS);
        }
        bp_metrics metrics = {0};
        uint64_t began_ns, ended_ns;
        CHECK(bp_history_held_compute(&held, &metrics, &began_ns, &ended_ns, NULL) == BUGPACK_OK);
        check_window(&metrics, began_ns, ended_ns, until_ns);
        bp_metrics_release(&metrics);
        bp_history_held_release(&held);
        i++;
    }
    return NULL;
}

static void *print_records(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < print_count; i++) {
        bp_temp_file records = BP_TEMP_FILE_INIT;
        bp_temp_file out = BP_TEMP_FILE_INIT;
        bp_ring_view view;
        uint64_t count;
        CHECK(bp_temp_file_open(&records, dir.fd, 1 << 20, NULL) == BUGPACK_OK);
        CHECK(bp_temp_file_open(&out, dir.fd, 1 << 20, NULL) == BUGPACK_OK);
        CHECK(bp_ring_copy(bp_history_ring(history), bp_clock_monotonic_ns(), bp_temp_file_sink,
                           &records, &view, NULL) == BUGPACK_OK);
        CHECK(bp_temp_file_flush(&records, NULL) == BUGPACK_OK);
        CHECK(bp_history_print(&records, 0, bp_temp_file_sink, &out, &count, NULL) == BUGPACK_OK);
        CHECK(count == view.record_count);
        bp_temp_file_release(&records);
        bp_temp_file_release(&out);
    }
    return NULL;
}

int main(void) {
    bp_task *task = NULL;
    bp_ring *ring = NULL;
    bp_ticker *ticker = NULL;
    bp_monitor *monitor = NULL;
    const bp_ticker_options options = {.interval_ms = 1};
    CHECK(temp_dir_make(&dir));
    CHECK(bp_task_open(0, &task, NULL) == BUGPACK_OK);
    CHECK(bp_ring_new(bp_history_ring_bytes(64), &ring, NULL) == BUGPACK_OK);
    CHECK(bp_history_new(ring, window_ms, &history, NULL) == BUGPACK_OK);
    CHECK(bp_ticker_new(task, &options, keep, NULL, &ticker, NULL) == BUGPACK_OK);
    CHECK(bp_monitor_new(&monitor, NULL) == BUGPACK_OK);
    bp_monitor_add(monitor, bp_ticker_tick, ticker);
    pthread_t readers[reader_count], printer;
    CHECK(pthread_create(&printer, NULL, print_records, NULL) == 0);
    for (unsigned i = 0; i < reader_count; i++) {
        CHECK(pthread_create(&readers[i], NULL, read_windows, NULL) == 0);
    }
    for (unsigned i = 0; i < reader_count; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
    }
    CHECK(pthread_join(printer, NULL) == 0);
    bp_monitor_remove(monitor, bp_ticker_tick);
    bp_monitor_free(monitor);
    bp_ticker_free(ticker);
    bp_history_free(history);
    bp_task_close(task);
    temp_dir_remove(&dir);
    (void)printf("%d windows, none torn\n", reader_count * window_count);
    return 0;
}
