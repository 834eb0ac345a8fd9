#include "platform/linux/proc_scan.h"
#include "platform/linux/thread_syscall.h"

/* Takes " 0x7f", as it follows the number of the call. */
static bool take_value(bp_proc_scan *scan, uint64_t *ret_value) {
    return bp_proc_take_text(scan, " 0x") && bp_proc_take_number(scan, 16, ret_value);
}

/*
 * "running", "-1 <stack> <program>" or "<number> <six arguments> <stack> <program>". The number is
 * printed as an int, so that a program that asks for call 2^32-1 shows as blocked outside of one.
 */
bool bp_thread_syscall_parse(const char *text, size_t text_bytes, bp_thread_syscall *ret_syscall) {
    bp_proc_scan scan = {text, text + text_bytes};
    bp_thread_syscall syscall = {.place = BP_THREAD_RUNS};
    if (bp_proc_is(scan, "running\n")) {
        *ret_syscall = syscall;
        return true;
    }
    bool is_whole = true;
    if (bp_proc_take_byte(&scan, '-')) {
        syscall.place = BP_THREAD_BLOCKED;
        is_whole = bp_proc_take_number(&scan, 10, &syscall.number);
        syscall.number = 0;
    } else {
        syscall.place = BP_THREAD_IN_CALL;
        is_whole = bp_proc_take_number(&scan, 10, &syscall.number);
        for (size_t i = 0; is_whole && i < BP_SYSCALL_ARGUMENT_COUNT; i++) {
            is_whole = take_value(&scan, &syscall.arguments[i]);
        }
    }
    /* A line that does not end may be cut inside of a number. */
    if (!is_whole || !take_value(&scan, &syscall.stack_pointer) ||
        !take_value(&scan, &syscall.program_counter) || !bp_proc_is(scan, "\n")) {
        return false;
    }
    /* A kernel thread, or a worker that io_uring gives a process. Such a one seems to be in call 0,
     * or in the call that has made it: it runs no program, and so makes none. */
    if (syscall.stack_pointer == 0 && syscall.program_counter == 0) {
        syscall = (bp_thread_syscall){.place = BP_THREAD_BLOCKED};
    }
    *ret_syscall = syscall;
    return true;
}
