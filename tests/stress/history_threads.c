/*
 * A history that is sampled at full speed, and triggers that ask for windows, wait for them or give
 * them up, while others copy the ring and print. Run under ThreadSanitizer too.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "process/ticker.h"
#include "recorder/history.h"
#include "recorder/monitor.h"
#include "recorder/window.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { reader_count = 4, window_count = 200, print_count = 20, window_ms = 10 };

static bp_history *history;
static bp_ring *ring;
static bp_windows windows;
static temp_dir dir;

/* How long before its trigger a window ended at most, and the share of one CPU that allows it: an
 * expensive sample stands for ten times its cost. */
static _Atomic uint64_t earliest_ns, costliest_ns;

static void raise_to(_Atomic uint64_t *most, uint64_t value) {
    uint64_t seen = atomic_load(most);
    while (seen < value && !atomic_compare_exchange_weak(most, &seen, value)) {}
}

static void keep(void *context, bp_task_snapshot *snapshot, const bugpack_error *error) {
    bugpack_error refused = BUGPACK_ERROR_INIT;
    (void)context;
    (void)error;
    CHECK(snapshot != NULL);
    CHECK(bp_history_add(history, snapshot, &refused) == BUGPACK_OK);
}

static uint64_t sample(void *ticker, uint64_t now_ns) {
    uint64_t tick_ns = bp_ticker_tick(ticker, now_ns);
    uint64_t cpu_before_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t asked_ns =
        bp_windows_serve(&windows, bp_clock_monotonic_ns(), bp_ticker_sample_now, ticker);
    raise_to(&costliest_ns, 10 * (bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before_ns));
    return asked_ns < tick_ns ? asked_ns : tick_ns;
}

static void check_window(const bp_metrics *metrics) {
    CHECK(metrics->ended_ns - metrics->began_ns >= window_ms * BP_NS_PER_MS);
    CHECK(metrics->sample_window_ms == (metrics->ended_ns - metrics->began_ns) / BP_NS_PER_MS);
    CHECK(metrics->thread_count >= 1 && metrics->cpu_percent >= 0.0);
    for (size_t i = 1; i < metrics->thread_count; i++) {
        CHECK(metrics->threads[i - 1].tid < metrics->threads[i].tid);
    }
}

/* Some wait no longer than a busy monitor takes; some look at the result much later. */
static void *ask_for_windows(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < window_count; i++) {
        uint64_t triggered_ns = bp_clock_monotonic_ns();
        bp_window *window = bp_windows_ask(&windows, triggered_ns, false, 0);
        bp_windows_wake(&windows);
        CHECK(window != NULL);
        const bp_window_result *result = i % 4 == 1 ? NULL : bp_window_wait(window, UINT64_MAX);
        if (result == NULL) {
            result = bp_window_give_up(window);
        }
        if (i % 8 == 0) {
            bp_clock_sleep_until(triggered_ns + 3 * window_ms * BP_NS_PER_MS);
        }
        CHECK(result->status == BUGPACK_OK || i % 4 == 1);
        if (i % 4 != 1 && result->error.status != BUGPACK_ERR_TIMEOUT &&
            result->metrics.ended_ns < triggered_ns) {
            raise_to(&earliest_ns, triggered_ns - result->metrics.ended_ns);
        }
        if (result->status == BUGPACK_OK) {
            check_window(&result->metrics);
        }
        bp_window_release(window);
    }
    return NULL;
}

static void *print_records(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < print_count; i++) {
        bp_temp_file records = BP_TEMP_FILE_INIT;
        bp_temp_file out = BP_TEMP_FILE_INIT;
        bp_ring_view view;
        static char text[1 << 20];
        uint64_t count = 0;
        CHECK(bp_temp_file_open(&records, dir.fd, 1 << 20, NULL) == BUGPACK_OK);
        CHECK(bp_temp_file_open(&out, dir.fd, 1 << 20, NULL) == BUGPACK_OK);
        CHECK(bp_ring_copy(ring, bp_clock_monotonic_ns(), bp_temp_file_sink, &records, &view,
                           NULL) == BUGPACK_OK);
        CHECK(bp_temp_file_flush(&records, NULL) == BUGPACK_OK);
        CHECK(bp_history_print(&records, 0, bp_temp_file_sink, &out, NULL) == BUGPACK_OK);
        CHECK(bp_temp_file_flush(&out, NULL) == BUGPACK_OK);
        int64_t length = bp_temp_file_read(&out, 0, text, sizeof text);
        for (int64_t at = 0; at < length; at++) {
            count += text[at] == '\n';
        }
        CHECK(count == view.record_count);
        bp_temp_file_release(&records);
        bp_temp_file_release(&out);
    }
    return NULL;
}

int main(void) {
    bp_task *task = NULL;
    bp_ticker *ticker = NULL;
    bp_monitor *monitor = NULL;
    CHECK(temp_dir_make(&dir));
    CHECK(bp_task_open(0, false, &task, NULL) == BUGPACK_OK);
    CHECK(bp_ring_new(bp_history_ring_bytes(64), &ring, NULL) == BUGPACK_OK);
    CHECK(bp_history_new(ring, window_ms, &history, NULL) == BUGPACK_OK);
    CHECK(bp_ticker_new(task, 1, 0, keep, NULL, &ticker, NULL) == BUGPACK_OK);
    CHECK(bp_monitor_new(&monitor, NULL) == BUGPACK_OK);
    bp_windows_init(&windows, history, monitor);
    bp_monitor_add(monitor, sample, ticker);
    pthread_t readers[reader_count], printer;
    CHECK(pthread_create(&printer, NULL, print_records, NULL) == 0);
    for (unsigned i = 0; i < reader_count; i++) {
        CHECK(pthread_create(&readers[i], NULL, ask_for_windows, NULL) == 0);
    }
    for (unsigned i = 0; i < reader_count; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
    }
    CHECK(pthread_join(printer, NULL) == 0);
    bp_monitor_remove(monitor, sample);
    bp_monitor_free(monitor);
    CHECK(earliest_ns <= BP_WINDOW_SHARE_NS || earliest_ns <= costliest_ns);
    bp_ticker_free(ticker);
    bp_windows_release(&windows);
    bp_history_free(history);
    bp_task_close(task);
    temp_dir_remove(&dir);
    (void)printf("%d windows, none torn\n", reader_count * window_count);
    return 0;
}
