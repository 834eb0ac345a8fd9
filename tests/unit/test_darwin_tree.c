/*
 * A process and its descendants through libproc, as the fake kernel of tests/support/mach has them.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "support/mach/fake_kernel.h"

#include "model/metrics.h"
#include "platform/child_end.h"
#include "platform/task.h"

enum { OWN_MS = 5250, CHILD = 5000, GRANDCHILD = 5001, ORPHAN_PARENT = 1 };

static bp_task *task;

static mach_fake_child *put(size_t at, int pid, int parent, uint64_t used_ms) {
    mach_fake.children[at] = (mach_fake_child){.pid = pid,
                                               .parent_pid = parent,
                                               .used_us = used_ms * 1000,
                                               .started = 24000 * (uint64_t)pid,
                                               .start_secs = 1000000 + (uint64_t)pid};
    return &mach_fake.children[at];
}

static void set_up(void) {
    mach_fake_reset();
    mach_fake.threads[2].system_us = 0; /* a round sum: 5.25 s */
    (void)put(0, GRANDCHILD, CHILD, 10);
    (void)put(1, CHILD, MACH_FAKE_PID, 20);
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(zero(int, (int)bp_task_open_tree(MACH_FAKE_PID, &task, &error)), "%s", error.message);
}

static void tear_down(void) {
    bp_task_close(task);
    task = NULL;
}

TestSuite(darwin_tree, .init = set_up, .fini = tear_down);

static bp_task_snapshot take(bp_task *of) {
    bp_task_snapshot snapshot = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(zero(int, (int)bp_task_snapshot_take(of, true, &snapshot, &error)), "%s",
              error.message);
    return snapshot;
}

/* What the descendants have used, in milliseconds. */
static uint64_t used_ms(bp_task *of) {
    bp_task_snapshot snapshot = take(of);
    uint64_t cpu_ms = snapshot.process_cpu / 1000000;
    bp_task_snapshot_release(&snapshot);
    return cpu_ms - OWN_MS;
}

Test(darwin_tree, adds_up_time_memory_and_threads_of_all_generations) {
    bp_task_snapshot snapshot = take(task);
    cr_expect(eq(u64, snapshot.cpu_unit_ns, 1));
    cr_expect(eq(u64, snapshot.process_cpu, 5280000000u));
    cr_expect(eq(u64, snapshot.rss_bytes, (uint64_t)54 << 20));
    cr_expect(eq(u64, snapshot.uptime_ns, 100000000000u)); /* of the first process */
    cr_assert(eq(sz, snapshot.thread_count, 5));
    cr_expect(eq(u64, snapshot.threads[3].tid, CHILD * 10));
    cr_expect(eq(u64, snapshot.threads[4].tid, GRANDCHILD * 10));
    cr_expect(eq(str, snapshot.threads[4].name, "only"));
    bp_task_snapshot_release(&snapshot);
}

Test(darwin_tree, our_own_process_has_descendants_too) {
    bp_task *own = NULL;
    cr_assert(zero(int, (int)bp_task_open_tree(0, &own, NULL)));
    cr_expect(eq(u64, used_ms(own), 30));
    cr_expect(zero(sz, mach_fake_outstanding().rights));
    bp_task_close(own);
}

Test(darwin_tree, a_child_that_was_waited_for_counts_once_as_a_zombie_and_after_it) {
    cr_assert(eq(u64, used_ms(task), 30));
    mach_fake.children[0].is_zombie = true;
    mach_fake.children[0].used_us = 12000;
    cr_expect(eq(u64, used_ms(task), 32));
    bp_task_snapshot snapshot = take(task);
    cr_expect(eq(sz, snapshot.thread_count, 4)); /* a zombie has none */
    bp_task_snapshot_release(&snapshot);
    mach_fake.children[0].pid = 0;
    mach_fake.children[1].waited_us = 12000;
    cr_expect(eq(u64, used_ms(task), 32));
    mach_fake.children[1].pid = 0;
    mach_fake.waited_us = 32000;
    cr_expect(eq(u64, used_ms(task), 32));
}

Test(darwin_tree, a_child_that_nobody_waited_for_stays) {
    cr_assert(eq(u64, used_ms(task), 30));
    mach_fake.children[0].pid = 0;
    for (int round = 0; round < 3; round++) {
        cr_expect(eq(u64, used_ms(task), 30));
    }
}

static void reap_grandchild(const char *call) {
    /* The parent was read already: it is the grandchild that is asked about next. */
    if (strcmp(call, "proc_listpids") == 0 && mach_fake.children[1].waited_us == 0) {
        mach_fake.children[0].pid = 0;
        mach_fake.children[1].waited_us = 10000;
    }
}

static unsigned lists;

static void reap_behind_the_parent(const char *call) {
    if (strcmp(call, "proc_listpids") == 0 && ++lists == 2) {
        reap_grandchild(call);
    }
}

Test(darwin_tree, a_child_that_is_reaped_after_its_parent_was_read_counts_once) {
    cr_assert(eq(u64, used_ms(task), 30));
    lists = 0;
    mach_fake.on_call = reap_behind_the_parent;
    for (int round = 0; round < 3; round++) {
        cr_expect(eq(u64, used_ms(task), 30));
    }
    cr_expect(eq(u64, mach_fake.children[1].waited_us, 10000)); /* it did happen */
}

Test(darwin_tree, a_child_whose_parent_ended_still_belongs_to_it) {
    cr_assert(eq(u64, used_ms(task), 30));
    mach_fake.children[1].pid = 0;
    mach_fake.waited_us = 20000;
    mach_fake.children[0].parent_pid = ORPHAN_PARENT;
    mach_fake.children[0].used_us += 5000;
    cr_expect(eq(u64, used_ms(task), 35));
}

Test(darwin_tree, a_reused_id_is_a_stranger) {
    cr_assert(eq(u64, used_ms(task), 30));
    (void)put(0, GRANDCHILD, ORPHAN_PARENT, 7777);
    mach_fake.children[0].started++;
    (void)put(2, 6000, GRANDCHILD, 8888); /* and so are its children */
    cr_expect(eq(u64, used_ms(task), 30));
    bp_task_snapshot snapshot = take(task);
    cr_expect(eq(sz, snapshot.thread_count, 4));
    bp_task_snapshot_release(&snapshot);
}

Test(darwin_tree, a_descendant_that_may_not_be_looked_at_is_left_out) {
    mach_fake.children[0].is_denied = true;
    cr_expect(eq(u64, used_ms(task), 20));
}

Test(darwin_tree, one_that_cannot_be_looked_at_any_more_keeps_its_time) {
    cr_assert(eq(u64, used_ms(task), 30));
    mach_fake.children[0].is_denied = true; /* it runs a program with set-user-ID */
    cr_expect(eq(u64, used_ms(task), 30));
    mach_fake.children[0].is_denied = false;
    cr_expect(eq(u64, used_ms(task), 30));
}

Test(darwin_tree, a_list_that_was_cut_is_read_again) {
    for (size_t i = 2; i < MACH_FAKE_CHILDREN_MAX; i++) {
        (void)put(i, 7000 + (int)i, MACH_FAKE_PID, 1);
    }
    cr_expect(eq(u64, used_ms(task), 30 + MACH_FAKE_CHILDREN_MAX - 2));
}

Test(darwin_tree, a_clone_remembers_what_was_seen) {
    bp_task *clone = NULL;
    cr_assert(eq(u64, used_ms(task), 30));
    cr_assert(zero(int, (int)bp_task_clone(task, &clone, NULL)));
    mach_fake.children[0].pid = 0;
    cr_expect(eq(u64, used_ms(clone), 30));
    bp_task_close(clone);
}

Test(darwin_tree, the_first_process_is_the_tree) {
    cr_assert(eq(u64, used_ms(task), 30));
    mach_fake.is_alive = false;
    bp_task_snapshot snapshot = {.taken_ns = 42};
    cr_expect(
        eq(int, (int)bp_task_snapshot_take(task, true, &snapshot, NULL), BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(u64, snapshot.taken_ns, 42));
}

Test(darwin_tree, threads_that_only_have_handles_are_told_apart_by_their_process) {
    mach_fake.has_thread_ids = false;
    bp_task_snapshot before = take(task);
    mach_fake.children[0].used_us += 1000;
    bp_task_snapshot after = take(task);
    after.taken_ns = before.taken_ns + 2000000;
    bp_metrics metrics;
    cr_assert(zero(int, (int)bp_metrics_compute(&before, &after, &metrics, NULL)));
    double most = 0;
    for (size_t i = 0; i < metrics.thread_count; i++) {
        most += metrics.threads[i].cpu_percent;
    }
    cr_expect(epsilon_eq(dbl, most, 50.0, 1e-9));
    bp_metrics_release(&metrics);
    bp_task_snapshot_release(&before);
    bp_task_snapshot_release(&after);
}

/* What waitid says of a child on macOS: of a signal that ended it, only that there was one. */
static int end_status(int pid, int code, int status) {
    siginfo_t info = {.si_code = code};
    info.si_pid = pid;
    info.si_status = status;
    return bp_child_end_status(&info);
}

Test(darwin_tree, the_signal_that_ended_a_child_is_found_before_it_is_reaped) {
    mach_fake.children[0].is_zombie = true;
    mach_fake.children[0].wait_status = SIGSEGV | 0x80; /* with a core */
    cr_expect(eq(int, end_status(GRANDCHILD, CLD_DUMPED, 0), SIGSEGV));
    mach_fake.children[0].wait_status = SIGTERM;
    cr_expect(eq(int, end_status(GRANDCHILD, CLD_KILLED, 0), SIGTERM));
    cr_expect(eq(int, end_status(GRANDCHILD, CLD_KILLED, SIGHUP), SIGHUP)); /* told by waitid */
    cr_expect(eq(int, end_status(GRANDCHILD, CLD_EXITED, 3), 3));
    cr_expect(eq(int, end_status(GRANDCHILD, CLD_STOPPED, SIGTSTP), SIGTSTP));
    mach_fake.children[0].is_denied = true;
    cr_expect(zero(int, end_status(GRANDCHILD, CLD_KILLED, 0)));
    mach_fake.children[0].pid = 0;
    cr_expect(zero(int, end_status(GRANDCHILD, CLD_KILLED, 0)));
}

/* Two snapshots, in the second of which the nth call fails; false when there was no such call. */
static bool fail_nth(unsigned long nth, int code) {
    bp_task_snapshot snapshot = {.taken_ns = 42};
    bugpack_error error = BUGPACK_ERROR_INIT;
    tear_down();
    set_up();
    cr_assert(eq(u64, used_ms(task), 30));
    mach_fake_fail(nth, 5, code);
    bugpack_status status = bp_task_snapshot_take(task, true, &snapshot, &error);
    bool has_failed = mach_fake_calls() >= nth;
    const char *call = mach_fake_failed_call();
    if (status == BUGPACK_OK) {
        cr_expect(eq(u64, snapshot.process_cpu / 1000000, OWN_MS + 30), "%lu: %s", nth, call);
    } else {
        /* The kernel's own lack of memory at a descendant counts as one of ours. */
        bool is_memory = code == ENOMEM || strcmp(call, "memory") == 0;
        cr_expect(strstr(error.message, call) != NULL ||
                      (is_memory && strstr(error.message, "out of memory") != NULL),
                  "%lu: \"%s\" does not name %s", nth, error.message, call);
        cr_expect(eq(u64, snapshot.taken_ns, 42));
        snapshot.threads = NULL;
    }
    bp_task_snapshot_release(&snapshot);
    mach_fake_fail(0, 0, 0);
    /* Whatever was not seen for a moment is not counted twice when it is seen again. */
    cr_expect(eq(u64, used_ms(task), 30), "after %lu: %s", nth, call);
    return has_failed;
}

Test(darwin_tree, each_call_that_fails_costs_one_snapshot_at_most_and_never_the_sum) {
    const int codes[] = {EPERM, ENOMEM, EINVAL};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        unsigned long nth = 1;
        while (fail_nth(nth, codes[i])) {
            nth++;
        }
        cr_expect(gt(ulong, nth, 25));
    }
}
