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
#include "probe/thread_copy.h"

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

/* One thread at a time; starts zeroed, with pid, threads_fd, tid and the stack of `copy` set. */
typedef struct bp_blocked_thread {
    pid_t pid;
    int threads_fd; /* /proc/<pid>/task, borrowed */
    uint64_t tid;
    bp_blocked_position before;
    bp_thread_copy copy;
} bp_blocked_thread;

/*
 * Reads where the thread is, and fills the copy: what it does not reach may be read as well. 0 or
 * an errno: EAGAIN when it moved meanwhile, EACCES or EPERM where we may not look, ESRCH or ENOENT
 * when it has ended.
 */
int bp_blocked_take(bp_blocked_thread *thread, bp_blocked_status *ret_status);

/* Whether it has not run since bp_blocked_take, as far as that matters: always true when all that
 * was read is from the copy. */
bool bp_blocked_is_unmoved(const bp_blocked_thread *thread);

#endif
