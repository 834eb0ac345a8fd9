/*
 * What the files of a thread say, and what a missing or malformed one means.
 */
#include "platform/linux/thread_reader.h"
#include "unit/proc_recording.h"
#include "unit/unit.h"

static made_proc made;

static void setup(void) {
    made_proc_init(&made);
}

static void teardown(void) {
    made_proc_release(&made);
}

TestSuite(thread_reader, .init = setup, .fini = teardown);

#define STAT(state, flags)                                                                         \
    "7 (a b) " state " 1 7 7 0 -1 " flags " 1 0 2 0 3 4 0 0 20 0 1 0 99 0 0 0 0 0 0 0 0 0 0 0 0 "  \
    "0 0 0 0 17 5 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
#define CALL(number) number " 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffc 0x7fff\n"

static char text[4096];

static bp_thread_reader reader_of_made(void) {
    return (bp_thread_reader){.dir_fd = made.root.fd,
                              .task = "7/task/",
                              .ticks_per_sec = 100,
                              .text = text,
                              .text_bytes = sizeof text};
}

static bp_thread_reading read_groups(uint32_t groups) {
    const bp_thread_reader reader = reader_of_made();
    bp_thread_reading thread;
    bp_thread_read(&reader, 7, groups, &thread);
    return thread;
}

static const uint32_t stat_group = 1u << BP_GROUP_STAT, status_group = 1u << BP_GROUP_STATUS,
                      schedstat_group = 1u << BP_GROUP_SCHEDSTAT,
                      memory_group = 1u << BP_GROUP_MEMORY,
                      waits = 1u << BP_GROUP_SYSCALL | 1u << BP_GROUP_WAIT_CHANNEL |
                              1u << BP_GROUP_KERNEL_STACK;

Test(thread_reader, reads_the_groups_that_were_asked_for_and_no_others) {
    made_proc_write(&made, "7/task/7/stat", STAT("S", "0"));
    made_proc_write(&made, "7/task/7/schedstat", "11 12 13\n");
    made_proc_write(&made, "7/task/7/syscall", CALL("202"));
    made_proc_write(&made, "7/task/7/wchan", "futex_wait_queue");
    made_proc_write(&made, "7/task/7/stack", "[<0>] a+0x1/0x2\n");
    bp_thread_reading thread = read_groups(stat_group | waits);
    cr_expect(eq(u32, thread.measured, stat_group | waits));
    cr_expect(eq(str, thread.stat.name, "a b"));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_USER_CPU], 30000000));
    cr_expect(eq(u64, thread.syscall.number, 202));
    cr_expect(eq(str, thread.wait_channel, "futex_wait_queue"));
    cr_expect(eq(str, thread.kernel_stack, "[<0>] a+0x1/0x2\n"));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_RUN], 0));
    cr_expect(zero(int, thread.errnos[BP_GROUP_STATUS]));
    bp_thread_reading_release(&thread);
}

Test(thread_reader, tells_a_missing_file_from_an_ended_thread) {
    made_proc_write(&made, "7/task/7/stat", STAT("S", "0"));
    made_proc_write(&made, "7/task/7/schedstat", "11 12\n");
    made_proc_write(&made, "7/task/7/sched", "x\n--------------------------------\n");
    bp_thread_reading thread =
        read_groups(stat_group | schedstat_group | status_group | 1u << BP_GROUP_WAITS);
    cr_expect(eq(u32, thread.measured, stat_group));
    cr_expect(eq(int, thread.errnos[BP_GROUP_SCHEDSTAT], EBADMSG));
    cr_expect(eq(int, thread.errnos[BP_GROUP_STATUS], ENOENT));
    cr_expect(eq(int, thread.errnos[BP_GROUP_WAITS], ENODATA));
    made_proc_remove(&made, "7/task/7/stat");
    thread = read_groups(status_group);
    cr_expect(eq(int, thread.errnos[BP_GROUP_STATUS], ESRCH));
    thread = read_groups(stat_group | schedstat_group);
    cr_expect(eq(int, thread.errnos[BP_GROUP_STAT], ESRCH));
    cr_expect(zero(int, thread.errnos[BP_GROUP_SCHEDSTAT]), "nothing else is read");
}

Test(thread_reader, passes_over_what_a_zombie_and_a_kernel_thread_do_not_have) {
    made_proc_write(&made, "7/task/7/stat", STAT("Z", "0"));
    made_proc_write(&made, "7/task/7/syscall", CALL("202"));
    bp_thread_reading thread = read_groups(stat_group | memory_group | waits);
    cr_expect(eq(u32, thread.measured, stat_group));
    cr_expect(zero(int, thread.errnos[BP_GROUP_MEMORY]));
    cr_expect(zero(int, thread.errnos[BP_GROUP_WAIT_CHANNEL]));
    made_proc_write(&made, "7/task/7/stat", STAT("S", "2097152"));
    thread = read_groups(stat_group | memory_group | 1u << BP_GROUP_SYSCALL);
    cr_expect(eq(u32, thread.measured, stat_group | 1u << BP_GROUP_SYSCALL));
    cr_expect(zero(int, thread.errnos[BP_GROUP_MEMORY]));
}

Test(thread_reader, sees_that_a_thread_left_its_call_or_ran) {
    const bp_thread_reader reader = reader_of_made();
    made_proc_write(&made, "7/task/7/syscall", CALL("202"));
    made_proc_write(&made, "7/task/7/schedstat", "11 12 13\n");
    bp_thread_reading thread = read_groups(schedstat_group | 1u << BP_GROUP_SYSCALL);
    cr_expect(bp_thread_reader_has_stayed(&reader, &thread));
    made_proc_write(&made, "7/task/7/schedstat", "12 12 14\n");
    cr_expect(not(bp_thread_reader_has_stayed(&reader, &thread)));
    made_proc_write(&made, "7/task/7/schedstat", "11 12 13\n");
    made_proc_write(&made, "7/task/7/syscall", CALL("203"));
    cr_expect(not(bp_thread_reader_has_stayed(&reader, &thread)));
    made_proc_remove(&made, "7/task/7/syscall");
    cr_expect(not(bp_thread_reader_has_stayed(&reader, &thread)));
}

Test(thread_reader, sees_by_its_switches_that_a_thread_ran) {
    static const char before[] = "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
    static const char after[] = "voluntary_ctxt_switches:\t6\nnonvoluntary_ctxt_switches:\t6\n";
    const bp_thread_reader reader = reader_of_made();
    made_proc_write(&made, "7/task/7/syscall", CALL("202"));
    made_proc_write(&made, "7/task/7/status", before);
    bp_thread_reading thread = read_groups(status_group | 1u << BP_GROUP_SYSCALL);
    cr_expect(bp_thread_reader_has_stayed(&reader, &thread));
    made_proc_write(&made, "7/task/7/status", after);
    cr_expect(not(bp_thread_reader_has_stayed(&reader, &thread)));
}
