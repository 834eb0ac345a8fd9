/*
 * The file "syscall" of a thread, whole and broken, and that of a thread of our own.
 */
#include <errno.h>
#include <fcntl.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "platform/linux/thread_reader.h"

#include "unit/unit.h"

static bool parse(const char *text, bp_thread_syscall *ret_syscall) {
    return bp_thread_syscall_parse(text, strlen(text), ret_syscall);
}

Test(thread_syscall, reads_a_call_with_its_arguments_and_registers) {
    bp_thread_syscall syscall;
    cr_assert(
        parse("202 0x55d0c8 0x80 0x2 0x0 0x0 0xffffffffffffffff 0x7ffd1 0x7f2ce\n", &syscall));
    cr_expect(eq(u64, syscall.place, BP_THREAD_IN_CALL));
    cr_expect(eq(u64, syscall.number, 202));
    cr_expect(eq(u64, syscall.arguments[0], 0x55d0c8));
    cr_expect(eq(u64, syscall.arguments[1], 0x80));
    cr_expect(eq(u64, syscall.arguments[5], UINT64_MAX));
    cr_expect(eq(u64, syscall.stack_pointer, 0x7ffd1));
    cr_expect(eq(u64, syscall.program_counter, 0x7f2ce));
}

Test(thread_syscall, reads_the_registers_of_a_thread_that_is_blocked_outside_of_a_call) {
    bp_thread_syscall syscall;
    cr_assert(parse("-1 0x7ffd1 0x7f2ce\n", &syscall));
    cr_expect(eq(u64, syscall.place, BP_THREAD_BLOCKED));
    cr_expect(eq(u64, syscall.number, 0));
    cr_expect(eq(u64, syscall.stack_pointer, 0x7ffd1));
}

Test(thread_syscall, is_none_of_a_thread_that_runs_in_the_kernel_alone) {
    static const char *const texts[] = {
        "0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n",                /* kthreadd */
        "425 0x8 0x7ffd1 0x0 0x7ffd1 0x0 0x7ffd9 0x0 0x0\n"}; /* io_uring_setup made it */
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bp_thread_syscall syscall;
        cr_assert(parse(texts[i], &syscall));
        cr_expect(eq(u64, syscall.place, BP_THREAD_BLOCKED));
        cr_expect(eq(u64, syscall.number, 0));
        cr_expect(eq(u64, syscall.arguments[0], 0));
    }
}

Test(thread_syscall, knows_nothing_of_a_thread_that_runs) {
    bp_thread_syscall syscall;
    cr_assert(parse("running\n", &syscall));
    cr_expect(eq(u64, syscall.place, BP_THREAD_RUNS));
    cr_expect(eq(u64, syscall.stack_pointer, 0));
}

Test(thread_syscall, rejects_other_texts_and_leaves_the_output_alone) {
    static const char *const texts[] = {"",
                                        "running",
                                        "runs\n",
                                        "-1\n",
                                        "-1 0x1\n",
                                        "-1 0x1 0x2",
                                        "-1 0x1 0x2 0x3\n",
                                        "202\n",
                                        "202 0x1 0x2 0x3 0x4 0x5 0x6\n",
                                        "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8",
                                        "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9\n",
                                        "202 1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",
                                        "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x10000000000000000\n",
                                        "x 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n"};
    bp_thread_syscall syscall = {.number = 42};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cr_expect(not(parse(texts[i], &syscall)), "%s", texts[i]);
    }
    cr_expect(eq(u64, syscall.number, 42));
}

#ifdef __linux__
Test(thread_syscall, reads_its_own_thread) {
    char text[512];
    const bp_thread_reader reader = {
        .dir_fd = AT_FDCWD, .task = "/proc/self/task/", .text = text, .text_bytes = sizeof text};
    bp_thread_reading own, none;
    bp_thread_read(&reader, (uint64_t)syscall(SYS_gettid), 1u << BP_GROUP_SYSCALL, &own);
    /* The thread is inside of its pread(2) meanwhile. A kernel may have no such file, and another
     * may keep it to itself. */
    cr_expect(bp_thread_has(&own, BP_GROUP_SYSCALL)
                  ? own.syscall.place == BP_THREAD_IN_CALL && own.syscall.number == SYS_pread64
                  : own.errnos[BP_GROUP_SYSCALL] != EBADMSG);
    bp_thread_read(&reader, 999999999, 1u << BP_GROUP_SYSCALL, &none);
    cr_expect(eq(int, none.errnos[BP_GROUP_SYSCALL], ESRCH));
}
#endif
