/*
 * The facts of our own process, as the fake kernel of tests/support/mach has them.
 */
#include <errno.h>

#include "support/mach/fake_kernel.h"

#include "platform/process_facts.h"
#include "platform/task.h"
#include "unit/unit.h"

static bp_task *task;

/* Also once a test has changed what is read at the opening alone. */
static void reopen(void) {
    bp_task_close(task);
    cr_assert(zero(int, bp_task_open(0, false, &task, &failure)), "%s", failure.message);
}

static void set_up(void) {
    mach_fake_reset();
    reopen();
}

static void tear_down(void) {
    bp_task_close(task);
}

static bp_process_facts read_facts(void) {
    bp_process_facts facts;
    cr_assert(zero(int, bp_process_facts_read(task, &facts, &failure)), "%s", failure.message);
    return facts;
}

TestSuite(darwin_facts, .init = set_up, .fini = tear_down);

Test(darwin_facts, are_of_no_other_process) {
    bp_task *other = (bp_task *)&mach_fake;
    cr_expect(eq(int, bp_task_open(getppid(), false, &other, &failure), BUGPACK_ERR_UNSUPPORTED));
    cr_expect(ne(ptr, strstr(failure.message, "needs Linux"), NULL));
    cr_expect(eq(int, bp_task_open(0, true, &other, &failure), BUGPACK_ERR_UNSUPPORTED));
    cr_expect(eq(ptr, other, (void *)&mach_fake));
}

Test(darwin_facts, hold_what_macos_tells) {
    CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
    cr_expect(eq(int, facts.pid, getpid()));
    cr_expect(eq(str, facts.name, "Viewer"));
    cr_expect(eq(chr, facts.state, 'R'));
    cr_expect(eq(u64, facts.parent_pid.value, (uint64_t)getppid()));
    cr_expect(eq(u64, facts.uid.value, geteuid()));
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
    cr_expect(eq(sz, facts.limit_count, 9));
    cr_expect(eq(str, facts.limits[6].name, "Max open files"));
    cr_expect(facts.voluntary_switches.known && facts.peak_rss_kb.known);
}

Test(darwin_facts, counters_that_have_wrapped_are_not_known) {
    mach_fake.pageins = -1;
    CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
    cr_expect(not(facts.major_faults.known));
}

Test(darwin_facts, an_answer_that_is_cut_short_is_none) {
    for (mach_fake.short_by = 1; mach_fake.short_by < 2000; mach_fake.short_by *= 3) {
        CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
        cr_expect(ne(ptr, strstr(facts.denied, "working directory"), NULL), "%s", facts.denied);
        cr_expect(eq(ptr, facts.working_directory, NULL));
    }
}

Test(darwin_facts, a_short_name_does_for_a_long_one) {
    mach_fake.name[0] = '\0';
    reopen();
    CLEANUP(bp_process_facts_release) bp_process_facts facts = read_facts();
    cr_expect(eq(str, facts.name, "v"));
}

Test(darwin_facts, arguments_over_the_limit_are_cut_and_that_is_said) {
    size_t bytes = (1 << 20) - 64;
    CLEANUP(free_memory) char *memory = malloc(bytes);
    cr_assert(ne(ptr, memory, NULL));
    memset(memory, 'a', bytes);
    memcpy(memory, "\2\0\0\0/bin/v\0\0", 12);
    mach_fake.arguments = memory;
    mach_fake.arguments_bytes = bytes;
    bp_process_facts facts = read_facts();
    cr_expect(eq(sz, facts.command_line.size, bytes - 12 + 1)); /* ended where it was not */
    bp_process_facts_release(&facts);
    memcpy(memory, "\377\377\377\377", 4);
    facts = read_facts();
    cr_expect(eq(str, facts.denied, "command line: the kernel's copy makes no sense"));
    bp_process_facts_release(&facts);
}

/* One reading with the nth call failing; false when there was no such call. */
static bool fail_fact(unsigned long nth) {
    bp_process_facts facts = {.pid = 42};
    mach_fake_fail(nth, 5, EPERM);
    bugpack_status status = bp_process_facts_read(task, &facts, &failure);
    const char *call = mach_fake_failed_call();
    if (strcmp(call, "memory") == 0) {
        cr_expect(eq(int, status, BUGPACK_ERR_NO_MEMORY), "%lu", nth);
        cr_expect(eq(int, facts.pid, 42));
        facts = (bp_process_facts){0};
    } else {
        cr_expect(zero(int, status), "%lu: %s", nth, failure.message);
        cr_expect(strstr(facts.denied, call) != NULL, "\"%s\" does not name %s", facts.denied,
                  call);
        bp_process_facts_release(&facts);
    }
    return mach_fake_calls() >= nth;
}

Test(darwin_facts, each_group_that_fails_is_named_and_the_others_stay) {
    unsigned long nth = 1;
    while (fail_fact(nth)) {
        nth++;
    }
    cr_expect(gt(ulong, nth, 8));
}
