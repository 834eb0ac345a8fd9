/*
 * Where a thread stands in the kernel: the system call that it is in, and its registers for the
 * stack and the program. Read from task/<tid>/syscall, which stops nothing.
 */
#ifndef BP_PLATFORM_LINUX_THREAD_SYSCALL_H
#define BP_PLATFORM_LINUX_THREAD_SYSCALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum bp_thread_place {
    BP_THREAD_RUNS,    /* or is about to: nothing is known, all fields are 0 */
    BP_THREAD_IN_CALL, /* blocked in a system call; all fields are known */
    BP_THREAD_BLOCKED  /* blocked outside of one, as in a page fault: the registers are known,
                          and 0 of a thread that runs in the kernel alone */
} bp_thread_place;

#define BP_SYSCALL_ARGUMENT_COUNT 6

/* All zero is one of a thread that runs. Two of them may be compared with memcmp. */
typedef struct bp_thread_syscall {
    uint64_t place;  /* bp_thread_place */
    uint64_t number; /* of the system call, in the numbers of the thread's architecture */
    uint64_t arguments[BP_SYSCALL_ARGUMENT_COUNT];
    uint64_t stack_pointer;
    uint64_t program_counter; /* in user space: that after the system call instruction */
} bp_thread_syscall;

/* Parses the file, see proc_pid_syscall in fs/proc/base.c. Pure. False, with the output left alone,
 * when the text is malformed. */
bool bp_thread_syscall_parse(const char *text, size_t text_bytes, bp_thread_syscall *ret_syscall);

/*
 * Reads it below a descriptor of /proc/<pid>/task. 0, or an errno: ENOENT or ESRCH when the thread
 * has ended, or the kernel has no such file; EPERM or EACCES when we may not; EBADMSG when the text
 * is malformed. Linux only. Any thread.
 */
int bp_thread_syscall_read(int threads_fd, uint64_t tid, bp_thread_syscall *ret_syscall);

#endif
