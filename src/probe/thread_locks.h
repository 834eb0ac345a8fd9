/*
 * The memory of a process in which its locks are and what it polls, and the ids of its threads.
 * Linux only.
 */
#ifndef BP_PROBE_THREAD_LOCKS_H
#define BP_PROBE_THREAD_LOCKS_H

#include "model/threads.h"

/* The id of a thread as the process itself counts, and the index of the thread. */
struct bp_own_id {
    uint64_t tid, index;
};

typedef struct bp_thread_locks {
    bp_futex_process process;
    int memory_fd; /* stays with the program that it was opened on; -1: nothing can be read */
    struct bp_own_id *ids; /* ascending */
    size_t count;
} bp_thread_locks;

/*
 * `own_tids` has the id of each thread of `process`, as the process itself counts; 0: not known.
 * Sets the arch of the process. Its memory and its files are looked at only if a thread may wait
 * for a lock, its memory also if one may poll. What cannot be read is nothing that is waited for.
 * NO_MEMORY.
 */
bugpack_status bp_thread_locks_open(int threads_fd, bp_process_threads *process,
                                    const uint64_t *own_tids, bp_thread_locks *ret_locks,
                                    bugpack_error *error);
void bp_thread_locks_close(bp_thread_locks *locks);

/* As bp_futex_wait_find, with the index of the thread waited for. */
bool bp_thread_locks_find(bp_thread_locks *locks, const bp_thread_syscall *syscall,
                          bp_futex_wait *ret_wait, size_t *ret_index);

/* As bp_fd_wait_find. */
bool bp_thread_locks_find_fd(bp_thread_locks *locks, const bp_thread_syscall *syscall,
                             bp_fd_wait *ret_wait);

#endif
