/*
 * Another process through libproc, and its facts, as the fake kernel of tests/support/mach has
 * them.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/mach/fake_kernel.h"

#include "platform/process_facts.h"
#include "platform/task.h"

static bp_task *open_pid(pid_t pid) {
    bp_task *task = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(zero(int, (int)bp_task_open(pid, &task, &error)), "%s", error.message);
    return task;
}

static bp_task_snapshot take(bp_task *task) {
    bp_task_snapshot snapshot;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(zero(int, (int)bp_task_snapshot_take(task, true, &snapshot, &error)), "%s",
              error.message);
    return snapshot;
}

static bp_process_facts read_facts(bp_task *task) {
    bp_process_facts facts;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(zero(int, (int)bp_process_facts_read(task, &facts, &error)), "%s", error.message);
    return facts;
}

TestSuite(darwin_other, .init = mach_fake_reset);
TestSuite(darwin_facts, .init = mach_fake_reset);

Test(darwin_other, a_snapshot_has_the_same_values_in_the_same_unit_as_our_own) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    bp_task_snapshot snapshot = take(task);
    cr_expect(eq(u64, snapshot.cpu_unit_ns, 1));
    cr_expect(eq(u64, snapshot.process_cpu, 5250010000u));
    cr_expect(eq(u64, snapshot.rss_bytes, (uint64_t)48 << 20));
    cr_expect(eq(u64, snapshot.uptime_ns, 100000000000u));
    cr_assert(eq(sz, snapshot.thread_count, 3));
    cr_expect(eq(u64, snapshot.threads[0].tid, 9007199254740993u));
    cr_expect(eq(u64, snapshot.threads[0].cpu, 1750000000));
    cr_expect(eq(str, snapshot.threads[2].name, "net-rx"));
    cr_expect(zero(u64, mach_fake_outstanding().rights_given)); /* no port was needed */
    bp_task_snapshot_release(&snapshot);
    bp_task_close(task);
}

Test(darwin_other, handles_do_where_the_kernel_lists_no_thread_ids) {
    mach_fake.has_thread_ids = false;
    bp_task *task = open_pid(MACH_FAKE_PID);
    for (int round = 0; round < 2; round++) {
        bp_task_snapshot snapshot = take(task);
        cr_assert(eq(sz, snapshot.thread_count, 3));
        cr_expect(eq(u64, snapshot.threads[2].cpu, 3000010000u));
        cr_expect(eq(str, snapshot.threads[2].name, "net-rx"));
        bp_task_snapshot_release(&snapshot);
    }
    bp_task_close(task);
}

static void add_many(const char *call) {
    /* After the count was taken and before the list is: more than the room that was made for it. */
    if (strcmp(call, "proc_pidinfo(PROC_PIDLISTTHREADIDS)") == 0) {
        while (mach_fake.thread_count < MACH_FAKE_THREADS_MAX) {
            (void)mach_fake_add(10000 + mach_fake.thread_count, "worker", 1, 1);
        }
    }
}

Test(darwin_other, a_list_that_was_cut_is_read_again) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    mach_fake.on_call = add_many;
    bp_task_snapshot snapshot = take(task);
    cr_expect(eq(sz, snapshot.thread_count, MACH_FAKE_THREADS_MAX));
    bp_task_snapshot_release(&snapshot);
    bp_task_close(task);
}

static bool has_ended_one;

static void end_first(const char *call) {
    if (!has_ended_one && strcmp(call, "proc_pidinfo(PROC_PIDTHREADID64INFO)") == 0) {
        has_ended_one = true;
        mach_fake_end(0);
    }
}

Test(darwin_other, a_thread_that_ended_since_the_list_is_skipped_and_counted) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    mach_fake.on_call = end_first;
    bp_task_snapshot snapshot = take(task);
    cr_expect(eq(sz, snapshot.thread_count, 2));
    cr_expect(eq(sz, snapshot.vanished_count, 1));
    bp_task_snapshot_release(&snapshot);
    bp_task_close(task);
}

static void expect_ended(bp_task *task) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_task_snapshot snapshot = {.taken_ns = 42};
    bp_process_facts facts = {.pid = 42};
    bp_task *clone = NULL;
    cr_expect(
        eq(int, (int)bp_task_snapshot_take(task, true, &snapshot, &error), BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(str, error.message, "process 4711 has ended"));
    cr_expect(eq(int, (int)bp_process_facts_read(task, &facts, &error), BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(int, (int)bp_task_clone(task, &clone, &error), BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(u64, snapshot.taken_ns, 42));
    cr_expect(eq(int, facts.pid, 42));
    cr_expect(eq(ptr, clone, NULL));
}

Test(darwin_other, a_process_that_has_ended_is_told) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    mach_fake.is_alive = false;
    expect_ended(task);
    bp_task_close(task);
}

Test(darwin_other, a_successor_with_the_same_id_is_not_taken_for_it) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    mach_fake.start_usecs++;
    expect_ended(task);
    bp_task_close(task);
}

Test(darwin_other, a_process_that_is_exiting_or_waits_to_be_reaped_has_ended) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    mach_fake.status = 5;
    expect_ended(task);
    mach_fake.status = 2;
    mach_fake.flags = 4;
    expect_ended(task);
    bp_task_close(task);
}

static void replace(const char *call) {
    if (strcmp(call, "proc_pidinfo(PROC_PIDTHREADID64INFO)") == 0) {
        mach_fake.start_secs++;
    }
}

Test(darwin_other, a_successor_that_comes_in_the_midst_is_found_out_at_the_end) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    bp_task_snapshot snapshot;
    mach_fake.on_call = replace;
    cr_expect(
        eq(int, (int)bp_task_snapshot_take(task, true, &snapshot, NULL), BUGPACK_ERR_NO_PROCESS));
    bp_task_close(task);
}

Test(darwin_other, refuses_ids_of_no_process) {
    bp_task *task = (bp_task *)&mach_fake;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_expect(eq(int, (int)bp_task_open(-1, &task, &error), BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(int, (int)bp_task_open(99999, &task, &error), BUGPACK_ERR_NO_PROCESS));
    cr_expect(eq(str, error.message, "no process with id 99999"));
    cr_expect(eq(ptr, (void *)task, (void *)&mach_fake));
}

/* One pass with the nth call failing; false when there was no such call. */
static bool fail_nth(unsigned long nth, bool has_thread_ids) {
    bp_task *task = NULL;
    bp_task_snapshot snapshot = {.taken_ns = 42};
    bugpack_error error = BUGPACK_ERROR_INIT;
    mach_fake_reset();
    mach_fake.has_thread_ids = has_thread_ids;
    mach_fake_fail(nth, 5, EPERM);
    bugpack_status status = bp_task_open(MACH_FAKE_PID, &task, &error);
    if (status == BUGPACK_OK) {
        status = bp_task_snapshot_take(task, true, &snapshot, &error);
    }
    const char *call = mach_fake_failed_call();
    bool is_memory = strcmp(call, "memory") == 0;
    if (status != BUGPACK_OK) {
        cr_expect(ne(ptr, strstr(error.message, is_memory ? "out of memory" : call), NULL),
                  "%lu: \"%s\" does not name %s", nth, error.message, call);
        cr_expect(eq(u64, snapshot.taken_ns, 42));
    }
    if (strncmp(call, "proc_pidinfo", 12) == 0) {
        cr_expect(eq(int, (int)status, BUGPACK_ERR_DENIED));
    }
    bp_task_snapshot_release(&snapshot);
    bp_task_close(task);
    return mach_fake_calls() >= nth;
}

Test(darwin_other, each_call_that_fails_is_named) {
    for (int has_thread_ids = 0; has_thread_ids < 2; has_thread_ids++) {
        unsigned long nth = 1;
        while (fail_nth(nth, has_thread_ids != 0)) {
            nth++;
        }
        cr_expect(gt(ulong, nth, 10));
    }
}

Test(darwin_other, an_answer_that_is_cut_short_is_none) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    bp_task_snapshot snapshot = {.taken_ns = 42};
    bugpack_error error = BUGPACK_ERROR_INIT;
    for (mach_fake.short_by = 1; mach_fake.short_by < 2000; mach_fake.short_by *= 3) {
        bp_task *other = NULL;
        cr_expect(
            eq(int, (int)bp_task_snapshot_take(task, true, &snapshot, &error), BUGPACK_ERR_IO));
        cr_expect(ne(ptr, strstr(error.message, "proc_pidinfo(PROC_PIDTASKINFO)"), NULL));
        cr_expect(eq(int, (int)bp_task_open(MACH_FAKE_PID, &other, &error), BUGPACK_ERR_IO));
        cr_expect(eq(ptr, other, NULL));
        bp_process_facts facts = read_facts(task);
        cr_expect(ne(ptr, strstr(facts.denied, "working directory"), NULL), "%s", facts.denied);
        cr_expect(eq(ptr, facts.working_directory, NULL));
        bp_process_facts_release(&facts);
    }
    cr_expect(eq(u64, snapshot.taken_ns, 42));
    bp_task_close(task);
}

Test(darwin_other, uptime_goes_by_the_wall_clock_where_the_kernel_gives_no_other_start) {
    mach_fake.started = 0;
    bp_task *task = open_pid(MACH_FAKE_PID);
    bp_task_snapshot snapshot = take(task);
    cr_expect(ge(u64, snapshot.uptime_ns, 99000000000u));
    cr_expect(lt(u64, snapshot.uptime_ns, 200000000000u));
    bp_task_snapshot_release(&snapshot);
    bp_task_close(task);
}

Test(darwin_facts, hold_what_macos_tells_of_another_process) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    bp_process_facts facts = read_facts(task);
    cr_expect(eq(int, facts.pid, MACH_FAKE_PID));
    cr_expect(eq(str, facts.name, "Viewer"));
    cr_expect(eq(chr, facts.state, 'R'));
    cr_expect(eq(u64, facts.parent_pid.value, 1));
    cr_expect(eq(u64, facts.uid.value, 501));
    cr_expect(eq(str, facts.executable, "/Applications/Viewer.app/v"));
    cr_expect(eq(str, facts.working_directory, "/Library/x"));
    cr_assert(eq(sz, facts.command_line.size, sizeof "viewer\0--full"));
    cr_expect(zero(int, memcmp(facts.command_line.data, "viewer\0--full", 14)));
    cr_expect(eq(u64, facts.started_wall_ns.value, mach_fake.start_secs * 1000000000));
    cr_expect(eq(u64, facts.fd_count.value, 12));
    cr_expect(eq(u64, facts.thread_count.value, 3));
    cr_expect(eq(u64, facts.minor_faults.value, 1000));
    cr_expect(eq(u64, facts.major_faults.value, 200));
    cr_expect(eq(u64, facts.read_bytes.value, 4096));
    cr_expect(eq(u64, facts.written_bytes.value, 8192));
    cr_expect(eq(str, facts.denied, ""));
    bp_process_facts_release(&facts);
    bp_task_close(task);
}

Test(darwin_facts, leave_out_what_macos_does_not_tell_of_another_process) {
    bp_task *task = open_pid(MACH_FAKE_PID);
    bp_process_facts facts = read_facts(task);
    cr_expect(not(facts.voluntary_switches.known));
    cr_expect(not(facts.peak_rss_kb.known));
    cr_expect(not(facts.swap_kb.known));
    cr_expect(not(facts.read_calls.known));
    cr_expect(not(facts.has_oom));
    cr_expect(not(facts.objects_known));
    cr_expect(zero(sz, facts.limit_count));
    cr_expect(eq(ptr, facts.cgroup, NULL));
    bp_process_facts_release(&facts);
    bp_task_close(task);
}

Test(darwin_facts, of_our_own_process_have_limits_switches_and_the_peak) {
    bp_task *task = open_pid(0);
    bp_process_facts facts = read_facts(task);
    cr_expect(eq(sz, facts.limit_count, 9));
    cr_expect(eq(str, facts.limits[6].name, "Max open files"));
    cr_expect(facts.voluntary_switches.known);
    cr_expect(facts.peak_rss_kb.known);
    bp_process_facts_release(&facts);
    bp_task_close(task);
}

Test(darwin_facts, counters_that_have_wrapped_are_not_known) {
    mach_fake.pageins = -1;
    bp_task *task = open_pid(MACH_FAKE_PID);
    bp_process_facts facts = read_facts(task);
    cr_expect(not(facts.major_faults.known));
    bp_process_facts_release(&facts);
    bp_task_close(task);
}

Test(darwin_facts, an_idle_process_sleeps_and_a_short_name_does_for_a_long_one) {
    mach_fake.running = 0;
    mach_fake.name[0] = '\0';
    bp_task *task = open_pid(MACH_FAKE_PID);
    bp_process_facts facts = read_facts(task);
    cr_expect(eq(chr, facts.state, 'S'));
    cr_expect(eq(str, facts.name, "v"));
    bp_process_facts_release(&facts);
    bp_task_close(task);
}

Test(darwin_facts, arguments_over_the_limit_are_cut_and_that_is_said) {
    size_t bytes = (1 << 20) - 64;
    char *memory = malloc(bytes);
    cr_assert(ne(ptr, memory, NULL));
    memset(memory, 'a', bytes);
    memcpy(memory, "\2\0\0\0/bin/v\0\0", 12);
    mach_fake.arguments = memory;
    mach_fake.arguments_bytes = bytes;
    bp_task *task = open_pid(MACH_FAKE_PID);
    bp_process_facts facts = read_facts(task);
    cr_expect(eq(sz, facts.command_line.size, bytes - 12 + 1)); /* ended where it was not */
    bp_process_facts_release(&facts);
    memcpy(memory, "\377\377\377\377", 4);
    facts = read_facts(task);
    cr_expect(eq(str, facts.denied, "command line: the kernel's copy makes no sense"));
    bp_process_facts_release(&facts);
    bp_task_close(task);
    free(memory);
}

/* One reading with the nth call failing; false when there was no such call. */
static bool fail_fact(bp_task *task, unsigned long nth) {
    bp_process_facts facts = {.pid = 42};
    bugpack_error error = BUGPACK_ERROR_INIT;
    mach_fake_fail(nth, 5, EPERM);
    bugpack_status status = bp_process_facts_read(task, &facts, &error);
    const char *call = mach_fake_failed_call();
    if (strcmp(call, "memory") == 0) {
        cr_expect(eq(int, (int)status, BUGPACK_ERR_NO_MEMORY), "%lu", nth);
        cr_expect(eq(int, facts.pid, 42));
        facts = (bp_process_facts){0};
    } else {
        cr_expect(zero(int, (int)status), "%lu: %s", nth, error.message);
        bool is_identity = strncmp(call, "proc_pidinfo", 12) == 0 || call[0] == '\0';
        cr_expect(is_identity || strstr(facts.denied, call) != NULL, "\"%s\" does not name %s",
                  facts.denied, call);
        bp_process_facts_release(&facts);
    }
    return mach_fake_calls() >= nth;
}

Test(darwin_facts, each_group_that_fails_is_named_and_the_others_stay) {
    const pid_t pids[] = {0, MACH_FAKE_PID};
    for (size_t i = 0; i < 2; i++) {
        mach_fake_reset();
        bp_task *task = open_pid(pids[i]);
        unsigned long nth = 1;
        while (fail_fact(task, nth)) {
            nth++;
        }
        cr_expect(gt(ulong, nth, 8));
        bp_task_close(task);
    }
}
