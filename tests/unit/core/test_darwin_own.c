/*
 * Our own process through Mach, as the counting kernel of tests/support/mach plays it.
 */
#include <bugpack/heap_state.h>

#include "support/mach/fake_kernel.h"

#include "model/metrics.h"
#include "platform/allocator.h"
#include "platform/task.h"
#include "unit/unit.h"

static bp_task *task;
static bp_task_snapshot snapshot;
static size_t refused_releases; /* whose rights stay */

enum { KERNEL_FAILURE = 5 };

static void expect_nothing_outstanding(void) {
    mach_fake_account account = mach_fake_outstanding();
    cr_expect(eq(sz, account.rights, refused_releases));
    cr_expect(zero(sz, account.lists));
    cr_expect(zero(sz, account.list_bytes));
    cr_expect(zero(sz, account.wrong_releases));
}

static void tear_down(void) {
    bp_task_snapshot_release(&snapshot);
    bp_task_close(task);
    task = NULL;
    snapshot = (bp_task_snapshot){0};
    expect_nothing_outstanding();
}

/* Also once a test has changed what is read at the opening alone. */
static void reopen(void) {
    bp_task_close(task);
    cr_assert(zero(int, bp_task_open(0, false, &task, &failure)), "%s", failure.message);
}

static void set_up(void) {
    mach_fake_reset();
    reopen();
}

static bp_task_snapshot take(bool with_names) {
    bp_task_snapshot taken;
    cr_assert(zero(int, bp_task_snapshot_take(task, with_names, &taken, &failure)), "%s",
              failure.message);
    return taken;
}

static uint64_t uptime_now(void) {
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot taken = take(false);
    cr_expect(taken.has_uptime);
    return taken.uptime_ns;
}

/* Takes a snapshot, which fails because of what `reason` names. */
static void expect_failure(const char *reason) {
    cr_expect(eq(int, bp_task_snapshot_take(task, true, &snapshot, &failure), BUGPACK_ERR_IO));
    cr_expect(ne(ptr, strstr(failure.message, reason), NULL), "%s", failure.message);
}

TestSuite(darwin_own, .init = set_up, .fini = tear_down);

Test(darwin_own, a_snapshot_has_the_counters_of_the_process_and_of_each_thread) {
    snapshot = take(true);
    cr_expect(eq(u64, snapshot.cpu_unit_ns, 1));
    cr_expect(eq(u64, snapshot.process_cpu, 5250010000u)); /* 0.5 s of it by ended threads */
    cr_expect(eq(u64, snapshot.rss_bytes, (uint64_t)48 << 20));
    cr_expect(eq(u64, snapshot.vm_size_bytes, (uint64_t)400 << 30));
    cr_assert(eq(sz, snapshot.thread_count, 3));
    cr_expect(zero(sz, snapshot.vanished_count));
    cr_expect(eq(u64, snapshot.threads[0].tid, 9007199254740993u)); /* over 53 bits */
    cr_expect(eq(u64, snapshot.threads[0].cpu, 1750000000));
    cr_expect(eq(str, snapshot.threads[0].name, "main"));
    cr_expect(eq(str, snapshot.threads[1].name, ""));
    cr_expect(eq(str, snapshot.threads[2].name, "net-rx"));
}

Test(darwin_own, names_are_read_only_when_they_are_asked_for) {
    snapshot = take(false);
    cr_expect(eq(str, snapshot.threads[0].name, ""));
}

Test(darwin_own, threads_of_the_kernel_and_names_of_any_bytes_are_taken_as_they_are) {
    mach_fake.threads[0].is_pthread = false;
    memset(mach_fake.threads[1].name, 0xff, sizeof mach_fake.threads[1].name);
    reopen();
    snapshot = take(true);
    cr_expect(eq(str, snapshot.threads[0].name, ""));
    cr_expect(eq(sz, strlen(snapshot.threads[1].name), 63));
}

static unsigned long infos;
static size_t ended_index;

/* Ends a thread when the second thread is asked: after the list, before the third. */
static void end_one(const char *call) {
    if (strcmp(call, "thread_info(THREAD_BASIC_INFO)") == 0 && ++infos == 2) {
        mach_fake_end(ended_index);
    }
}

/* Before its first query, or between its two. */
Test(darwin_own, a_thread_that_ends_after_the_list_is_skipped_and_counted) {
    static const uint64_t left[] = {[1] = 1041, [2] = 258};
    for (ended_index = 1; ended_index <= 2; ended_index++) {
        mach_fake_reset();
        infos = 0;
        mach_fake.on_call = end_one;
        CLEANUP(bp_task_snapshot_release) bp_task_snapshot taken = take(true);
        cr_assert(eq(sz, taken.thread_count, 2), "%zu", ended_index);
        cr_expect(eq(u64, taken.threads[1].tid, left[ended_index]));
        cr_expect(eq(sz, taken.vanished_count, 1));
    }
}

Test(darwin_own, a_window_matches_threads_by_id_whatever_their_ports_are_called) {
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot before = take(false);
    mach_fake.threads[0].user_us += 500;
    mach_fake.threads[2].system_us += 1000;
    mach_fake_end(1);
    (void)mach_fake_add(7, "late", 900, 0);
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot after = take(true);
    after.taken_ns = before.taken_ns + 2000000;
    CLEANUP(bp_metrics_release) bp_metrics metrics;
    cr_assert(zero(int, bp_metrics_compute(&before, &after, &metrics, NULL)));
    cr_assert(eq(sz, metrics.thread_count, 3));
    cr_expect(eq(u64, metrics.threads[0].tid, 7));
    cr_expect(metrics.threads[0].is_born && !metrics.threads[0].has_age);
    cr_expect(eq(u64, metrics.threads[0].cpu_ns, 900000));
    cr_expect(eq(u64, metrics.threads[1].tid, 1041));
    cr_expect(epsilon_eq(dbl, metrics.threads[1].cpu_percent, 50.0, 1e-9));
    cr_expect(eq(u64, metrics.threads[2].tid, 9007199254740993u));
    cr_expect(epsilon_eq(dbl, metrics.threads[2].cpu_percent, 25.0, 1e-9));
    cr_expect(epsilon_eq(dbl, metrics.cpu_percent, 120.0, 1e-9));
}

Test(darwin_own, what_an_ended_thread_used_stays_with_the_process) {
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot before = take(false);
    mach_fake_end(2);
    CLEANUP(bp_task_snapshot_release) bp_task_snapshot after = take(false);
    cr_expect(eq(u64, before.process_cpu, after.process_cpu));
}

Test(darwin_own, a_translated_program_is_not_told_41_times_too_little) {
    mach_fake.numer = 1; /* what Rosetta says of the clock; the kernel counts as before */
    mach_fake.denom = 1;
    mach_fake.absolute = 1000000000ull * 1000;
    reopen();
    snapshot = take(false);
    cr_expect(eq(u64, snapshot.process_cpu, 5250010000u));
    cr_expect(eq(u64, snapshot.uptime_ns, 100000000000u));
}

Test(darwin_own, without_a_frequency_the_timebase_is_the_unit) {
    mach_fake.has_frequency = false;
    reopen();
    snapshot = take(false);
    cr_expect(eq(u64, snapshot.process_cpu, 5250010000u));
}

Test(darwin_own, uptime_includes_sleep_and_never_goes_back_with_a_clock_that_does) {
    cr_expect(eq(u64, uptime_now(), 100000000000u));
    mach_fake.absolute += 24000000;
    mach_fake.asleep_ns += 5000000000u;
    cr_expect(eq(u64, uptime_now(), 106000000000u));
    mach_fake.absolute -= 24000000ull * 500;
    cr_expect(eq(u64, uptime_now(), 106000000000u));
}

Test(darwin_own, a_clone_goes_on_with_the_same_uptime) {
    bp_task *clone = NULL;
    mach_fake.absolute += 24000000;
    cr_assert(zero(int, bp_task_clone(task, &clone, NULL)));
    bp_task_close(task);
    task = clone;
    cr_expect(eq(u64, uptime_now(), 101000000000u));
    char name[64];
    bp_task_name(clone, name, sizeof name);
    cr_expect(eq(str, name, "Viewer"));
    cr_expect(eq(int, bp_task_pid(clone), (int)getpid()));
}

/* One pass with the nth call failing; false when there was no such call. */
static bool fail_nth(unsigned long nth) {
    failure = (bugpack_error)BUGPACK_ERROR_INIT;
    snapshot = (bp_task_snapshot){.taken_ns = 42};
    mach_fake_reset();
    mach_fake_fail(nth, KERNEL_FAILURE, 1);
    bugpack_status status = bp_task_open(0, false, &task, &failure);
    if (status == BUGPACK_OK) {
        status = bp_task_snapshot_take(task, true, &snapshot, &failure);
    }
    if (status != BUGPACK_OK) {
        const char *call = mach_fake_failed_call();
        const char *word = strcmp(call, "memory") == 0 ? "out of memory" : call;
        cr_expect(ne(ptr, strstr(failure.message, word), NULL), "%lu: \"%s\" does not name %s", nth,
                  failure.message, call);
        cr_expect(eq(u64, snapshot.taken_ns, 42));
        cr_expect(eq(ptr, snapshot.threads, NULL));
    }
    bool is_reached = mach_fake_calls() >= nth;
    tear_down();
    return is_reached;
}

Test(darwin_own, each_call_that_fails_is_named_and_nothing_stays_outstanding) {
    unsigned long nth = 1;
    tear_down();
    while (fail_nth(nth)) {
        nth++;
    }
    cr_expect(gt(ulong, nth, 20)); /* it did go through the threads */
}

Test(darwin_own, the_failed_call_is_the_reason) {
    static const char *const wanted[] = {"task_info(TASK_ABSOLUTETIME_INFO) failed",
                                         "task_info(MACH_TASK_BASIC_INFO) failed",
                                         "task_threads failed"};
    for (unsigned long i = 0; i < 3; i++) {
        reopen();
        mach_fake_fail(i + 1, KERNEL_FAILURE, 0);
        expect_failure(wanted[i]);
    }
}

static void end_all(const char *call) {
    if (strcmp(call, "thread_info(THREAD_BASIC_INFO)") == 0) {
        mach_fake.thread_count = 0;
    }
}

Test(darwin_own, that_no_thread_can_be_asked_is_a_failure_and_no_empty_list) {
    mach_fake.on_call = end_all;
    expect_failure("thread_info(THREAD_BASIC_INFO)");
}

Test(darwin_own, an_empty_list_is_given_back_and_named) {
    mach_fake.thread_count = 0;
    expect_failure("task_threads");
}

Test(darwin_own, is_sampled_also_where_libproc_is_forbidden) {
    mach_fake.is_alive = false; /* for libproc only */
    reopen();
    snapshot = take(true);
    cr_expect(not(snapshot.has_uptime));
    cr_expect(eq(sz, snapshot.thread_count, 3));
}

Test(darwin_own, heap_zones_are_summed_and_nothing_is_no_answer) {
    bp_heap_reading reading;
    cr_assert(zero(int, bp_allocator_read(&reading, &failure)), "%s", failure.message);
    cr_expect(eq(str, reading.state.allocator, "libmalloc"));
    cr_expect(eq(u64, reading.state.allocated_bytes, 1000000));
    cr_expect(eq(u64, reading.state.active_bytes, 4000000));
    cr_expect(eq(u64, reading.state.mapped_bytes, 4000000));
    cr_expect(eq(u64, reading.state.resident_bytes, BUGPACK_HEAP_UNKNOWN));
    mach_fake.heap_held_bytes = 0;
    cr_expect(eq(int, bp_allocator_read(&reading, &failure), BUGPACK_ERR_IO));
    cr_expect(ne(ptr, strstr(failure.message, "malloc_zone_statistics"), NULL));
    cr_expect(eq(u64, reading.state.mapped_bytes, 4000000));
}

Test(darwin_own, a_refused_release_keeps_no_other_right_from_going) {
    mach_fake_refuse_release(1);
    refused_releases = 1;
    snapshot = take(false);
    expect_nothing_outstanding();
}
