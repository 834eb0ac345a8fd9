/*
 * The windows of triggers on made-up snapshots: who shares a sample, and what a failed one gives.
 */
#include "base/clock.h"
#include "base/status.h"
#include "recorder/window.h"
#include "support/made_snapshot.h"
#include "unit/unit.h"

#define MS BP_NS_PER_MS
#define SEC BP_NS_PER_SEC

static bp_history *history;
static bp_windows windows;
static uint64_t now_ns;       /* of the clock, when the test began */
static unsigned sample_count; /* taken so far */
static uint64_t ticks;        /* that the process of the next function has used */

static uint64_t image; /* of the program that the next snapshots are of */

static void add(uint64_t taken_ns) {
    bp_task_snapshot snapshot = made_snapshot(taken_ns, taken_ns / 4, NULL, 0);
    snapshot.image = image;
    cr_assert(eq(int, bp_history_add(history, &snapshot, NULL), BUGPACK_OK));
}

static void set_up(void) {
    bp_ring *ring = NULL;
    cr_assert(eq(int, bp_ring_new(bp_history_ring_bytes(64), &ring, NULL), BUGPACK_OK));
    cr_assert(eq(int, bp_history_new(ring, 2000, &history, NULL), BUGPACK_OK));
    bp_windows_init(&windows, history, NULL);
    now_ns = bp_clock_monotonic_ns();
    sample_count = 0;
}

static void tear_down(void) {
    bp_windows_release(&windows);
    bp_history_free(history);
}

TestSuite(window, .init = set_up, .fini = tear_down);

/* The sampler; `context`: the number of threads, NULL for none. */
static bugpack_status sample(void *context, bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    const size_t *thread_count = context;
    uint64_t taken_ns = bp_clock_monotonic_ns();
    bp_thread_counters *threads = NULL;
    if (thread_count != NULL) {
        threads = calloc(*thread_count, sizeof *threads);
        cr_assert(threads != NULL);
    }
    *ret_snapshot =
        made_snapshot(taken_ns, taken_ns / 4, threads, thread_count != NULL ? *thread_count : 0);
    free(threads);
    ret_snapshot->image = image;
    sample_count++;
    return BUGPACK_OK;
}

/* Of a process that began 20 ms before the test, with clock ticks of 10 ms. */
static bugpack_status sample_of_a_ticking_one(void *context, bp_task_snapshot *ret_snapshot,
                                              bugpack_error *error) {
    bugpack_status status = sample(context, ret_snapshot, error);
    ret_snapshot->cpu_unit_ns = 10 * MS;
    ret_snapshot->process_cpu = ret_snapshot->first_cpu = ticks;
    ret_snapshot->has_uptime = true;
    ret_snapshot->uptime_ns = ret_snapshot->taken_ns - now_ns + 20 * MS;
    return status;
}

static bugpack_status fail(void *context, bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process 7 has ended");
}

static void serve(bp_window_sample *with) {
    cr_expect(eq(u64, bp_windows_serve(&windows, bp_clock_monotonic_ns(), with, NULL), UINT64_MAX));
}

Test(window, ends_at_a_sample_that_is_taken_for_the_trigger) {
    for (uint64_t back = 5; back > 0; back--) {
        add(now_ns - back * SEC + SEC / 10);
    }
    serve(sample);
    cr_expect(eq(uint, sample_count, 0), "nobody asked");
    bp_window *window = bp_windows_ask(&windows, now_ns, false, 0);
    cr_expect(eq(ptr, bp_window_wait(window, 0), NULL));
    serve(sample);
    const bp_window_result *result = bp_window_wait(window, 0);
    cr_assert(ne(ptr, result, NULL));
    cr_expect(eq(int, result->status, BUGPACK_OK));
    cr_expect(eq(str, result->error.message, ""));
    cr_expect(ge(u64, result->metrics.ended_ns, now_ns));
    cr_expect(eq(u64, result->metrics.began_ns, now_ns - 2 * SEC + SEC / 10));
    cr_expect(epsilon_eq(dbl, result->metrics.cpu_percent, 25.0, 0.01));
    cr_expect(eq(ptr, bp_window_give_up(window), (void *)result), "it is there");
    bp_window_release(window);
}

Test(window, is_shared_by_triggers_within_50_ms) {
    add(now_ns - SEC);
    bp_window *first = bp_windows_ask(&windows, now_ns, false, 0);
    for (unsigned i = 0; i < 50; i++) {
        bp_window *same = bp_windows_ask(&windows, now_ns + i * MS, false, 0);
        cr_expect(eq(ptr, same, first), "its sample is not taken yet");
        bp_window_release(same);
    }
    serve(sample);
    cr_expect(eq(uint, sample_count, 1));
    uint64_t sampled_ns = bp_window_wait(first, 0)->metrics.ended_ns;
    bp_window *same = bp_windows_ask(&windows, sampled_ns - MS, false, 0);
    cr_expect(eq(ptr, same, first), "the trigger came before the sample");
    bp_window_release(same);
    same = bp_windows_ask(&windows, sampled_ns + BP_WINDOW_SHARE_NS / 2, false, 0);
    cr_expect(eq(ptr, same, first));
    bp_window *next = bp_windows_ask(&windows, sampled_ns + 10 * SEC, false, 0);
    cr_expect(ne(ptr, next, first));
    serve(sample);
    cr_expect(eq(uint, sample_count, 2));
    bp_window_release(first);
    bp_window_release(same);
    bp_window_release(next);
}

Test(window, of_a_young_session_waits_until_it_lasts_250_ms) {
    bp_window *window = bp_windows_ask(&windows, now_ns, false, 0);
    add(now_ns + MS);
    uint64_t due_ns = bp_windows_serve(&windows, now_ns + 2 * MS, sample, NULL);
    cr_expect(eq(u64, due_ns, now_ns + MS + SEC / 4));
    cr_expect(eq(uint, sample_count, 0));
    bp_clock_sleep_until(due_ns);
    serve(sample);
    const bp_window_result *result = bp_window_wait(window, 0);
    cr_assert(ne(ptr, result, NULL));
    cr_expect(eq(u64, result->metrics.began_ns, now_ns + MS));
    cr_expect(ge(u64, result->metrics.sample_window_ms, 250));
    bp_window_release(window);
}

/* The sample comes when it comes; what an ended process has used does not change any more. */
Test(window, of_an_ended_process_ends_with_it_and_waits_for_no_length) {
    add(now_ns - 60 * MS);
    bp_window *window = bp_windows_ask(&windows, now_ns, true, now_ns / 4 + 3 * MS);
    serve(sample);
    const bp_window_result *result = bp_window_wait(window, 0);
    cr_assert(ne(ptr, result, NULL));
    cr_expect(eq(int, result->status, BUGPACK_OK));
    cr_expect(eq(u64, result->metrics.ended_ns, now_ns));
    cr_expect(eq(u64, result->metrics.sample_window_ms, 60));
    bp_window_release(window);
}

Test(window, of_an_ended_process_that_was_never_sampled_is_its_life) {
    for (ticks = 0; ticks < 2; ticks++) {
        bp_window *window = bp_windows_ask(&windows, now_ns, true, ticks * 10 * MS + 9 * MS);
        serve(sample_of_a_ticking_one);
        const bp_window_result *result = bp_window_wait(window, 0);
        cr_assert(ne(ptr, result, NULL));
        cr_assert(eq(int, result->status, BUGPACK_OK), "%s", result->error.message);
        cr_expect(eq(u64, result->metrics.ended_ns, now_ns));
        cr_expect(eq(u64, result->metrics.began_ns, now_ns - 20 * MS));
        cr_expect(epsilon_eq(dbl, result->metrics.cpu_percent, ticks == 0 ? 45.0 : 95.0, 0.01),
                  "9 ms of 20, and the ticks");
        cr_expect(epsilon_eq(dbl, result->metrics.uptime_secs, 0.02, 0.0001));
        bp_window_release(window);
    }
}

Test(window, of_an_end_is_also_that_of_a_trigger_that_still_waits) {
    add(now_ns - 60 * MS);
    bp_window *first = bp_windows_ask(&windows, now_ns - MS, false, 0);
    bp_window *last = bp_windows_ask(&windows, now_ns, true, 0);
    cr_expect(eq(ptr, first, last));
    serve(sample);
    bp_window *next = bp_windows_ask(&windows, now_ns - 1, true, 0);
    cr_expect(ne(ptr, next, last), "that one has its sample");
    serve(sample);
    cr_expect(eq(u64, bp_window_wait(next, 0)->metrics.ended_ns, now_ns - 1));
    bp_window_release(first);
    bp_window_release(last);
    bp_window_release(next);
}

Test(window, of_a_failed_sample_is_what_the_history_has_and_says_why) {
    add(now_ns - 3 * SEC);
    add(now_ns - SEC);
    bp_window *window = bp_windows_ask(&windows, now_ns, false, 0);
    serve(fail);
    const bp_window_result *result = bp_window_wait(window, 0);
    cr_assert(ne(ptr, result, NULL));
    cr_expect(eq(int, result->status, BUGPACK_OK));
    cr_expect(eq(str, result->error.message, "process 7 has ended"));
    cr_expect(eq(u64, result->metrics.began_ns, now_ns - 3 * SEC));
    cr_expect(eq(u64, result->metrics.ended_ns, now_ns - SEC));
    bp_window_release(window);
}

Test(window, without_any_other_sample_there_are_no_metrics) {
    bp_window *window = bp_windows_ask(&windows, now_ns - SEC, false, 0);
    serve(fail);
    const bp_window_result *result = bp_window_wait(window, 0);
    cr_assert(ne(ptr, result, NULL));
    cr_expect(eq(int, result->status, BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(str, result->error.message, "process 7 has ended"));
    bp_window_release(window);
    window = bp_windows_ask(&windows, now_ns + SEC, false, 0);
    cr_expect(eq(u64, bp_windows_serve(&windows, UINT64_MAX, sample, NULL), UINT64_MAX));
    cr_expect(eq(int, bp_window_wait(window, 0)->status, BUGPACK_ERR_IO),
              "nothing to compare with");
    bp_window_release(window);
}

Test(window, begins_with_the_program_that_runs_at_its_end) {
    image = 1;
    add(now_ns - 3 * SEC);
    add(now_ns - 2 * SEC);
    image = 2;
    bp_window *window = bp_windows_ask(&windows, now_ns, false, 0);
    serve(sample);
    const bp_window_result *result = bp_window_wait(window, 0);
    cr_assert(ne(ptr, result, NULL));
    cr_expect(eq(int, result->status, BUGPACK_ERR_NO_PROCESS));
    cr_expect(result->is_other_program);
    cr_expect(eq(str, result->error.message, "the process began another program"));
    bp_window_release(window);
    add(now_ns - SEC);
    window = bp_windows_ask(&windows, now_ns + SEC, false, 0);
    (void)bp_windows_serve(&windows, UINT64_MAX, sample, NULL);
    result = bp_window_wait(window, 0);
    cr_assert(ne(ptr, result, NULL));
    cr_expect(eq(int, result->status, BUGPACK_OK));
    cr_expect(not(result->is_other_program));
    cr_expect(eq(str, result->error.message,
                 "the process began another program, and the window with that"));
    cr_expect(eq(u64, result->metrics.began_ns, now_ns - SEC));
    bp_window_release(window);
}

Test(window, that_is_given_up_is_not_shared_and_not_sampled) {
    add(now_ns - 3 * SEC);
    add(now_ns - SEC);
    bp_window *late = bp_windows_ask(&windows, now_ns, false, 0);
    cr_expect(gt(u64, bp_window_deadline_ns(late), now_ns));
    const bp_window_result *result = bp_window_give_up(late);
    cr_expect(eq(int, result->status, BUGPACK_OK));
    cr_expect(eq(u64, result->metrics.ended_ns, now_ns - SEC));
    cr_expect(eq(str, result->error.message, "the sample at the trigger was not taken in time"));
    serve(sample);
    cr_expect(eq(uint, sample_count, 0));
    bp_window *next = bp_windows_ask(&windows, now_ns + MS, false, 0);
    cr_expect(ne(ptr, next, late));
    bp_window_release(late);
    bp_window_release(next);
}

/* A worker that loses patience while the monitor is at it. */
static bugpack_status give_up_meanwhile(void *context, bp_task_snapshot *ret_snapshot,
                                        bugpack_error *error) {
    bp_window *window = context;
    (void)bp_window_give_up(window);
    return sample(NULL, ret_snapshot, error);
}

Test(window, has_one_result_when_the_sample_comes_too_late) {
    add(now_ns - 3 * SEC);
    add(now_ns - SEC);
    bp_window *window = bp_windows_ask(&windows, now_ns, false, 0);
    (void)bp_windows_serve(&windows, now_ns, give_up_meanwhile, window);
    cr_expect(eq(uint, sample_count, 1));
    cr_expect(eq(u64, bp_window_wait(window, 0)->metrics.ended_ns, now_ns - SEC));
    bp_window_release(window);
}

Test(window, is_refused_when_too_much_is_held) {
    size_t thread_count = BP_WINDOWS_MAX_BYTES / sizeof(bp_thread_metrics) / 2;
    bp_window *held[2];
    add(now_ns - SEC);
    for (unsigned i = 0; i < 2; i++) {
        held[i] = bp_windows_ask(&windows, now_ns + i * 1000 * SEC, false, 0);
        cr_assert(ne(ptr, held[i], NULL));
        (void)bp_windows_serve(&windows, bp_clock_monotonic_ns(), sample, &thread_count);
    }
    cr_expect(eq(ptr, bp_windows_ask(&windows, now_ns + 3000 * SEC, false, 0), NULL));
    bp_window_release(held[0]);
    bp_window *again = bp_windows_ask(&windows, now_ns + 3000 * SEC, false, 0);
    cr_expect(ne(ptr, again, NULL));
    bp_window_release(again);
    bp_window_release(held[1]);
    bp_window_release(NULL);
    cr_expect(eq(ptr, bp_window_retain(NULL), NULL));
}
