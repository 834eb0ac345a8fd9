/*
 * The history on made-up snapshots: which window it gives.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/history.h"
#include "support/made_snapshot.h"

#define SEC 1000000000ull

static bp_history *history;

static void make_history(uint32_t window_ms) {
    bp_ring *ring = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(eq(int, bp_ring_new(bp_history_ring_bytes(64), &ring, &error), BUGPACK_OK), "%s",
              error.message);
    cr_assert(eq(int, bp_history_new(ring, window_ms, &history, &error), BUGPACK_OK));
    cr_expect(eq(ptr, bp_history_ring(history), ring));
}

static void set_up(void) {
    make_history(2000);
}

static void tear_down(void) {
    bp_history_free(history);
}

TestSuite(history, .init = set_up, .fini = tear_down);

static bugpack_status add(uint64_t taken_ns, uint64_t process_cpu) {
    bp_task_snapshot snapshot = made_snapshot(taken_ns, process_cpu, NULL, 0);
    bugpack_status status = bp_history_add(history, &snapshot, NULL);
    cr_expect(eq(u64, snapshot.taken_ns, 0), "taken over in any case");
    return status;
}

/* Holds a window and computes its metrics. */
static bool window(bp_history *of, uint64_t until_ns, uint64_t max_age_ns, bp_metrics *ret_metrics,
                   uint64_t *ret_began_ns, uint64_t *ret_ended_ns) {
    bp_history_held held = {NULL, NULL};
    bool is_held = bp_history_hold(of, until_ns, max_age_ns, &held);
    if (is_held) {
        cr_assert(eq(int,
                     bp_history_held_compute(&held, ret_metrics, ret_began_ns, ret_ended_ns, NULL),
                     BUGPACK_OK));
    }
    bp_history_held_release(&held);
    return is_held;
}

/* Asks for a window and expects this one, in seconds. */
static void expect_window(uint64_t until_ns, uint64_t began_secs, uint64_t ended_secs) {
    bp_metrics metrics = {0};
    uint64_t began_ns = 0;
    uint64_t ended_ns = 0;
    cr_assert(window(history, until_ns, 60 * SEC, &metrics, &began_ns, &ended_ns));
    cr_expect(eq(u64, began_ns, began_secs * SEC));
    cr_expect(eq(u64, ended_ns, ended_secs * SEC));
    cr_expect(eq(u64, metrics.sample_window_ms, (ended_secs - began_secs) * 1000));
    bp_metrics_release(&metrics);
}

static void expect_no_window(uint64_t until_ns, uint64_t max_age_ns) {
    bp_metrics untouched, metrics;
    uint64_t began_ns = 42;
    uint64_t ended_ns = 43;
    memset(&untouched, 0x5a, sizeof untouched);
    metrics = untouched;
    cr_expect(not(window(history, until_ns, max_age_ns, &metrics, &began_ns, &ended_ns)));
    cr_expect(memcmp(&metrics, &untouched, sizeof metrics) == 0);
    cr_expect(eq(u64, began_ns, 42));
    cr_expect(eq(u64, ended_ns, 43));
}

Test(history, a_young_session_has_no_window) {
    expect_no_window(UINT64_MAX, UINT64_MAX);
    cr_assert(eq(int, add(10 * SEC, 0), BUGPACK_OK));
    expect_no_window(UINT64_MAX, UINT64_MAX);
    cr_assert(eq(int, add(12 * SEC - 1, 0), BUGPACK_OK));
    expect_no_window(UINT64_MAX, UINT64_MAX);
    cr_assert(eq(int, add(12 * SEC, 0), BUGPACK_OK));
    expect_window(12 * SEC, 10, 12);
}

Test(history, the_window_ends_at_the_newest_snapshot_not_after_the_trigger) {
    for (uint64_t secs = 10; secs <= 20; secs++) {
        cr_assert(eq(int, add(secs * SEC, 0), BUGPACK_OK));
    }
    expect_window(20 * SEC, 18, 20);
    expect_window(25 * SEC, 18, 20);
    expect_window(20 * SEC - 1, 17, 19);
    expect_window(19 * SEC, 17, 19);
    expect_no_window(19 * SEC - 1, UINT64_MAX);
}

Test(history, a_window_that_ended_too_long_ago_is_none) {
    for (uint64_t secs = 10; secs <= 13; secs++) {
        cr_assert(eq(int, add(secs * SEC, 0), BUGPACK_OK));
    }
    expect_no_window(15 * SEC, 2 * SEC - 1);
    bp_metrics metrics = {0};
    uint64_t began_ns, ended_ns;
    cr_assert(window(history, 15 * SEC, 2 * SEC, &metrics, &began_ns, &ended_ns));
    bp_metrics_release(&metrics);
}

Test(history, missed_samples_make_a_window_longer) {
    cr_assert(eq(int, add(10 * SEC, 0), BUGPACK_OK));
    cr_assert(eq(int, add(11 * SEC, 0), BUGPACK_OK));
    cr_assert(eq(int, add(71 * SEC, 15 * SEC), BUGPACK_OK));
    bp_metrics metrics = {0};
    uint64_t began_ns, ended_ns;
    cr_assert(window(history, 71 * SEC, 0, &metrics, &began_ns, &ended_ns));
    cr_expect(eq(u64, metrics.sample_window_ms, 60000));
    cr_expect(eq(dbl, metrics.cpu_percent, 25.0));
    bp_metrics_release(&metrics);
}

Test(history, many_short_intervals_keep_few_snapshots_and_the_shortest_windows) {
    uint64_t now_ns = SEC;
    for (unsigned i = 0; i < 5000; i++, now_ns += SEC / 100) {
        cr_assert(eq(int, add(now_ns, now_ns / 2), BUGPACK_OK));
    }
    now_ns -= SEC / 100;
    for (uint64_t until_ns = now_ns - SEC / 100; until_ns <= now_ns; until_ns += SEC / 100) {
        bp_metrics metrics = {0};
        uint64_t began_ns, ended_ns;
        cr_assert(window(history, until_ns, SEC / 2, &metrics, &began_ns, &ended_ns));
        cr_expect(ge(u64, metrics.sample_window_ms, 2000));
        cr_expect(le(u64, metrics.sample_window_ms, 2000 + 2000 / 8 + 10));
        cr_expect(eq(dbl, metrics.cpu_percent, 50.0));
        bp_metrics_release(&metrics);
    }
}

Test(history, large_snapshots_give_windows_up_to_twice_as_long) {
    const size_t count = BP_HISTORY_LARGE_BYTES / sizeof(bp_thread_counters) + 1;
    bp_thread_counters *threads = calloc(count, sizeof *threads);
    cr_assert(threads != NULL);
    for (uint64_t secs = 1; secs <= 20; secs++) {
        bp_task_snapshot snapshot = made_snapshot(secs * SEC, 0, threads, count);
        cr_assert(eq(int, bp_history_add(history, &snapshot, NULL), BUGPACK_OK));
        if (secs >= 3) {
            bp_metrics metrics = {0};
            uint64_t began_ns, ended_ns;
            cr_assert(window(history, secs * SEC, 0, &metrics, &began_ns, &ended_ns));
            cr_expect(eq(u64, ended_ns, secs * SEC));
            cr_expect(ge(u64, metrics.sample_window_ms, 2000));
            cr_expect(le(u64, metrics.sample_window_ms, 4000));
            bp_metrics_release(&metrics);
        }
    }
    free(threads);
}

Test(history, without_a_least_time_the_window_is_the_last_interval) {
    bp_history_free(history);
    make_history(0);
    cr_assert(eq(int, add(1 * SEC, 0), BUGPACK_OK));
    expect_no_window(1 * SEC, 0);
    for (uint64_t secs = 2; secs <= 6; secs++) {
        cr_assert(eq(int, add(secs * SEC, 0), BUGPACK_OK));
    }
    expect_window(6 * SEC, 5, 6);
    expect_window(6 * SEC - 1, 4, 5);
}

Test(history, a_held_window_outlives_its_history) {
    bp_thread_counters thread = {.tid = 7, .name = "seven"};
    for (uint64_t secs = 10; secs <= 12; secs++) {
        thread.cpu += SEC / 4;
        bp_task_snapshot snapshot = made_snapshot(secs * SEC, secs * SEC / 2, &thread, 1);
        cr_assert(eq(int, bp_history_add(history, &snapshot, NULL), BUGPACK_OK));
    }
    bp_history_held held = {NULL, NULL};
    cr_assert(bp_history_hold(history, 12 * SEC, 0, &held));
    for (uint64_t secs = 13; secs <= 30; secs++) {
        cr_assert(eq(int, add(secs * SEC, 0), BUGPACK_OK));
    }
    expect_no_window(12 * SEC, UINT64_MAX);
    bp_history_free(history);
    history = NULL;
    bp_metrics metrics = {0};
    uint64_t began_ns, ended_ns;
    cr_assert(
        eq(int, bp_history_held_compute(&held, &metrics, &began_ns, &ended_ns, NULL), BUGPACK_OK));
    cr_expect(eq(u64, began_ns, 10 * SEC));
    cr_expect(eq(u64, ended_ns, 12 * SEC));
    cr_expect(eq(dbl, metrics.cpu_percent, 50.0));
    cr_assert(eq(sz, metrics.thread_count, 1));
    cr_expect(eq(dbl, metrics.threads[0].cpu_percent, 25.0));
    cr_expect(eq(str, metrics.threads[0].name, "seven"));
    bp_metrics_release(&metrics);
    bp_history_held_release(&held);
    bp_history_held_release(&held);
}

Test(history, a_refused_snapshot_changes_nothing) {
    for (uint64_t secs = 10; secs <= 12; secs++) {
        cr_assert(eq(int, add(secs * SEC, 0), BUGPACK_OK));
    }
    cr_expect(eq(int, add(12 * SEC, 0), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, add(11 * SEC, 0), BUGPACK_ERR_INVALID));
    bp_task_snapshot ticks = made_snapshot(13 * SEC, 0, NULL, 0);
    ticks.cpu_unit_ns = 10000000;
    cr_expect(eq(int, bp_history_add(history, &ticks, NULL), BUGPACK_ERR_INVALID));
    expect_window(13 * SEC, 10, 12);
}

Test(history, the_size_of_its_ring_is_bounded) {
    cr_expect(ge(sz, bp_history_ring_bytes(0), 4096));
    cr_expect(lt(sz, bp_history_ring_bytes(600), bp_history_ring_bytes(601)));
    cr_expect(le(sz, bp_history_ring_bytes(SIZE_MAX), (size_t)1 << 30));
    cr_expect(lt(sz, bp_history_ring_bytes(3600), (size_t)3 << 20), "an hour");
}
