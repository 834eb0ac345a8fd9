/*
 * The history on made-up snapshots: which window it gives.
 */
#include "recorder/history.h"
#include "support/made_snapshot.h"
#include "unit/unit.h"

#define SEC 1000000000ull

static bp_history *history;
static uint64_t image; /* of the program that the next snapshots are of */
static bool is_other;  /* of the last window that was held */

static void make_history(uint32_t window_ms) {
    bp_ring *ring = NULL;
    cr_assert(eq(int, bp_ring_new(bp_history_ring_bytes(64), &ring, &failure), BUGPACK_OK), "%s",
              failure.message);
    cr_assert(eq(int, bp_history_new(ring, window_ms, &history, &failure), BUGPACK_OK));
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
    snapshot.image = image;
    bugpack_status status = bp_history_add(history, &snapshot, NULL);
    cr_expect(eq(u64, snapshot.taken_ns, 0), "taken over in any case");
    return status;
}

/* Where a window begins that ends at `end_ns`; 0: nowhere. */
static uint64_t begin_of(uint64_t end_ns) {
    CLEANUP(bp_metrics_release) bp_metrics metrics = {0};
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot end = made_snapshot(end_ns, 0, NULL, 0);
    end.image = image;
    bugpack_status status = bp_history_compute(history, &end, false, &metrics, &is_other, NULL);
    if (status != BUGPACK_OK) {
        cr_expect(eq(int, status, BUGPACK_ERR_IO));
        cr_expect(eq(u64, metrics.ended_ns, 0), "left alone");
        return 0;
    }
    cr_expect(eq(u64, metrics.ended_ns, end_ns));
    cr_expect(eq(u64, metrics.sample_window_ms, (end_ns - metrics.began_ns) / 1000000));
    return metrics.began_ns;
}

static void expect_last(uint64_t began_secs, uint64_t ended_secs) {
    CLEANUP(bp_metrics_release) bp_metrics metrics = {0};
    cr_assert(
        eq(int, bp_history_compute(history, NULL, false, &metrics, &is_other, NULL), BUGPACK_OK));
    cr_expect(eq(u64, metrics.began_ns, began_secs * SEC));
    cr_expect(eq(u64, metrics.ended_ns, ended_secs * SEC));
}

static void expect_no_last(void) {
    bp_metrics metrics = {0};
    cr_expect(eq(int, bp_history_compute(history, NULL, false, &metrics, &is_other, NULL),
                 BUGPACK_ERR_IO));
}

Test(history, a_young_session_has_short_windows_but_none_under_250_ms) {
    cr_expect(eq(u64, begin_of(10 * SEC), 0));
    cr_expect(eq(u64, bp_history_ready_ns(history, 9 * SEC), 9 * SEC));
    expect_no_last();
    cr_assert(eq(int, add(10 * SEC, 0), BUGPACK_OK));
    expect_no_last();
    cr_expect(eq(u64, bp_history_ready_ns(history, 9 * SEC), 10 * SEC + SEC / 4));
    cr_expect(eq(u64, begin_of(10 * SEC + SEC / 4 - 1), 0));
    cr_expect(eq(u64, begin_of(10 * SEC + SEC / 4), 10 * SEC));
    cr_assert(eq(int, add(10 * SEC + SEC / 4 - 1, 0), BUGPACK_OK));
    expect_no_last();
    cr_assert(eq(int, add(11 * SEC, 0), BUGPACK_OK));
    expect_last(10, 11);
}

Test(history, a_window_begins_at_the_snapshot_closest_to_one_window_back) {
    for (uint64_t secs = 10; secs <= 20; secs++) {
        cr_assert(eq(int, add(secs * SEC, 0), BUGPACK_OK));
        if (secs >= 12) {
            cr_expect(eq(u64, begin_of(secs * SEC + 1), (secs - 2) * SEC));
            cr_expect(eq(u64, begin_of(secs * SEC + SEC / 2 - 1), (secs - 2) * SEC));
            cr_expect(eq(u64, begin_of(secs * SEC + SEC / 2 + 1), (secs - 1) * SEC));
            cr_expect(eq(u64, begin_of(secs * SEC + SEC - 1), (secs - 1) * SEC));
            expect_last(secs - 2, secs);
        }
    }
}

Test(history, missed_samples_make_a_window_longer) {
    cr_assert(eq(int, add(10 * SEC, 0), BUGPACK_OK));
    cr_assert(eq(int, add(11 * SEC, 0), BUGPACK_OK));
    cr_assert(eq(int, add(71 * SEC, 15 * SEC), BUGPACK_OK));
    expect_last(11, 71);
    cr_expect(eq(u64, begin_of(71 * SEC + SEC / 10), 11 * SEC));
    cr_expect(eq(u64, begin_of(71 * SEC + SEC / 4), 71 * SEC), "closer, and not too short");
}

Test(history, many_short_intervals_keep_few_snapshots) {
    uint64_t now_ns = SEC;
    for (unsigned i = 0; i < 5000; i++, now_ns += SEC / 100) {
        cr_assert(eq(int, add(now_ns, now_ns / 2), BUGPACK_OK));
    }
    uint64_t began_ns = begin_of(now_ns);
    cr_expect(ge(u64, now_ns - began_ns, 2 * SEC - SEC / 8));
    cr_expect(le(u64, now_ns - began_ns, 2 * SEC + SEC / 8));
}

Test(history, large_snapshots_give_windows_up_to_twice_as_long) {
    const size_t count = BP_HISTORY_LARGE_BYTES / sizeof(bp_thread_counters) + 1;
    CLEANUP(free_memory) bp_thread_counters *threads = calloc(count, sizeof *threads);
    cr_assert(threads != NULL);
    for (uint64_t secs = 1; secs <= 20; secs++) {
        bp_task_snapshot snapshot = made_snapshot(secs * SEC, 0, threads, count);
        cr_assert(eq(int, bp_history_add(history, &snapshot, NULL), BUGPACK_OK));
        for (uint64_t end_ns = secs * SEC + 1; secs >= 3 && end_ns < (secs + 1) * SEC;
             end_ns += SEC / 4) {
            uint64_t length_ns = end_ns - begin_of(end_ns);
            cr_expect(ge(u64, length_ns, SEC));
            cr_expect(le(u64, length_ns, 4 * SEC));
        }
    }
}

Test(history, a_shorter_window_may_be_asked_for) {
    bp_history_free(history);
    make_history(40);
    cr_assert(eq(int, add(SEC, 0), BUGPACK_OK));
    cr_expect(eq(u64, bp_history_ready_ns(history, SEC), SEC + SEC / 25));
    cr_expect(eq(u64, begin_of(SEC + SEC / 25 - 1), 0));
    cr_expect(eq(u64, begin_of(SEC + SEC / 25), SEC));
}

Test(history, without_a_pause_any_earlier_snapshot_will_do) {
    bp_history_free(history);
    make_history(0);
    cr_assert(eq(int, add(1 * SEC, 0), BUGPACK_OK));
    cr_expect(eq(u64, bp_history_ready_ns(history, 2 * SEC), SEC));
    cr_expect(eq(u64, begin_of(SEC), 0));
    cr_expect(eq(u64, begin_of(SEC + 1), SEC));
    for (uint64_t secs = 2; secs <= 6; secs++) {
        cr_assert(eq(int, add(secs * SEC, 0), BUGPACK_OK));
        expect_last(secs - 1, secs);
    }
    cr_expect(eq(u64, begin_of(6 * SEC + SEC / 10), 6 * SEC));
}

Test(history, a_window_has_no_snapshot_of_another_program_than_its_end) {
    static const struct {
        uint64_t images[4]; /* of the snapshots at 10, 11 and 12 s, and of the end at 13 s */
        uint64_t began_secs;
        bool is_other;
    } rows[] = {{{1, 1, 1, 1}, 11, false}, {{1, 1, 2, 2}, 12, true}, {{1, 2, 2, 2}, 11, false},
                {{1, 1, 1, 2}, 0, true},   {{2, 1, 2, 2}, 12, true}, {{0, 0, 2, 2}, 11, false},
                {{1, 1, 2, 0}, 12, true},  {{1, 1, 1, 0}, 11, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tear_down();
        set_up();
        for (uint64_t at = 0; at < 3; at++) {
            image = rows[i].images[at];
            cr_assert(eq(int, add((10 + at) * SEC, 0), BUGPACK_OK));
        }
        image = rows[i].images[3];
        cr_expect(eq(u64, begin_of(13 * SEC), rows[i].began_secs * SEC), "row %zu", i);
        cr_expect(eq(int, is_other, rows[i].is_other), "row %zu", i);
        cr_assert(eq(int, add(13 * SEC, 0), BUGPACK_OK));
        if (rows[i].began_secs != 0) {
            expect_last(rows[i].began_secs, 13);
        } else {
            expect_no_last();
        }
    }
}

Test(history, a_window_has_the_threads_of_both_its_ends) {
    bp_thread_counters thread = {.tid = 7, .name = "seven"};
    for (uint64_t secs = 10; secs <= 12; secs++) {
        thread.cpu += SEC / 4;
        bp_task_snapshot snapshot = made_snapshot(secs * SEC, secs * SEC / 2, &thread, 1);
        cr_assert(eq(int, bp_history_add(history, &snapshot, NULL), BUGPACK_OK));
    }
    CLEANUP(bp_metrics_release) bp_metrics metrics = {0};
    cr_assert(
        eq(int, bp_history_compute(history, NULL, false, &metrics, &is_other, NULL), BUGPACK_OK));
    cr_expect(eq(u64, metrics.began_ns, 10 * SEC));
    cr_expect(eq(u64, metrics.ended_ns, 12 * SEC));
    cr_expect(eq(dbl, metrics.cpu_percent, 50.0));
    cr_assert(eq(sz, metrics.thread_count, 1));
    cr_expect(eq(dbl, metrics.threads[0].cpu_percent, 25.0));
    cr_expect(eq(str, metrics.threads[0].name, "seven"));
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
    expect_last(10, 12);
}

Test(history, the_size_of_its_ring_is_bounded) {
    cr_expect(ge(sz, bp_history_ring_bytes(0), 4096));
    cr_expect(lt(sz, bp_history_ring_bytes(600), bp_history_ring_bytes(601)));
    cr_expect(le(sz, bp_history_ring_bytes(SIZE_MAX), (size_t)1 << 30));
    cr_expect(lt(sz, bp_history_ring_bytes(3600), (size_t)3 << 20), "an hour");
}
