/*
 * Where a blocked thread is, and a copy of its stack, without stopping it. Linux only.
 */
#ifndef BP_PROBE_BLOCKED_THREAD_H
#define BP_PROBE_BLOCKED_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "platform/linux/thread_syscall.h"

/* Copied from the stack pointer on. What is beyond is read when it is needed. */
#define BP_BLOCKED_STACK_BYTES ((size_t)256 << 10)

typedef enum bp_blocked_status {
    BP_BLOCKED_OK,
    BP_BLOCKED_RUNNING, /* on a processor, or waiting for one */
    BP_BLOCKED_NO_STACK /* a kernel thread, or one that is ending */
} bp_blocked_status;

/* All that is compared; starts zeroed. */
typedef struct bp_blocked_position {
    bp_thread_syscall at;
    char runs[96]; /* how long it has run and how often: schedstat, "" without one */
} bp_blocked_position;

/* One thread at a time; starts zeroed, with pid, stack, threads_fd and tid set. */
typedef struct bp_blocked_thread {
    pid_t pid;
    unsigned char *stack; /* BP_BLOCKED_STACK_BYTES, the caller's */
    int threads_fd;       /* /proc/<pid>/task, borrowed */
    uint64_t tid;
    bp_blocked_position before;
    size_t stack_bytes; /* how many could be copied */
    bool has_read_more; /* beyond the copy */
} bp_blocked_thread;

/*
 * Reads where the thread is and copies its stack. 0 or an errno: EAGAIN when it moved meanwhile,
 * EACCES or EPERM where we may not look, ESRCH or ENOENT when it has ended.
 */
int bp_blocked_take(bp_blocked_thread *thread, bp_blocked_status *ret_status);

/* A word of its memory, from the copy where it reaches. */
bool bp_blocked_read_word(bp_blocked_thread *thread, uint64_t address, uint64_t *ret_word);

/* Whether it has not run since bp_blocked_take, as far as that matters: always true when all that
 * was read is from the copy. */
bool bp_blocked_is_unmoved(const bp_blocked_thread *thread);

#endif
