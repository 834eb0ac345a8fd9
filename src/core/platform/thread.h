/*
 * The calling thread, and the calling process after a fork.
 */
#ifndef BP_PLATFORM_THREAD_H
#define BP_PLATFORM_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/lock.h"

/*
 * The id that the sampler reports for the calling thread; in a forked child, once it has made a
 * number of its own. Cached: rarely a system call.
 */
uint64_t bp_thread_id(void);

/* The calling thread's name with its NUL; "" when it has none. */
#define BP_THREAD_NAME_BYTES 64
void bp_thread_name(char out[BP_THREAD_NAME_BYTES]);

/* The same of a thread of this process, by its id, and whether it is traced, as by a debugger: ""
 * and false where it has ended, and on systems that do not tell. They read a file. */
void bp_thread_name_of(uint64_t tid, char out[BP_THREAD_NAME_BYTES]);
bool bp_thread_is_traced(uint64_t tid);

/*
 * The name at most BP_THREAD_NAME_STALE_NS ago, without its NUL, for frequent callers that have
 * just read the monotonic clock: reading it costs some hundred nanoseconds. Valid until the
 * thread's next call.
 */
#define BP_THREAD_NAME_STALE_NS 10000000u
const char *bp_thread_recent_name(uint64_t now_ns, size_t *ret_bytes);

/*
 * Names the calling thread, with at most 15 bytes; best effort. Only itself: for another thread
 * glibc opens a file under /proc, which a host's exec would inherit.
 */
void bp_thread_set_name(const char *name);

/* True for the names of threads that bugpack starts, in a host or in the command. The first thread
 * of bugpack-minimal and the like is none of them. */
bool bp_thread_is_own(const char *name);

/*
 * Starts a thread of bugpack, to be joined or detached, as SCHED_OTHER and with 256 KiB of stack
 * beside thread-local variables. All signals but those of faults on the thread itself are blocked:
 * no handler of the host runs on it, and a file-size limit is EFBIG instead of SIGXFSZ.
 */
bugpack_status bp_thread_start(void *(*run)(void *), void *argument, pthread_t *ret_thread,
                               bugpack_error *error);

/*
 * For public calls that wait, open or write something on the host's thread. Until the release a
 * pthread_cancel of the thread takes no effect: it would leave a lock held, or a stack that the
 * worker still writes to. And a write over RLIMIT_FSIZE fails with EFBIG: its SIGXFSZ, which would
 * end the host, is blocked and dropped. May be nested.
 */
typedef struct bp_thread_hold {
    int cancel;
    sigset_t mask;        /* as the host had it */
    bool had_size_signal; /* of the host's, pending and blocked */
} bp_thread_hold;

void bp_thread_hold_begin(bp_thread_hold *ret_hold);
void bp_thread_hold_end(const bp_thread_hold *hold);

/* Takes a signal of the calling thread that is pending and blocked, if it still is. */
void bp_thread_drop_signal(int number);

/*
 * True if a thread of this process waits without end for a mutex that another one holds, by their
 * ids. False where it cannot be known: on systems other than Linux, or with another library than
 * glibc. It may be over when it returns, unless the other thread waits for this answer.
 */
bool bp_thread_waits_for(uint64_t tid, uint64_t owner_tid);

/* The bytes of each new stack that thread-local variables take. */
size_t bp_thread_local_bytes(void);

/*
 * A condition variable with deadlines of the monotonic clock, so that setting the wall clock does
 * not affect a wait. wait_until returns false when the deadline has passed; it may wake spuriously.
 * Destroyed with pthread_cond_destroy.
 */
void bp_condition_init(pthread_cond_t *condition);
bool bp_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex,
                             uint64_t deadline_ns);

static inline bool bp_lock_wait_until(bp_lock *lock, pthread_cond_t *condition,
                                      uint64_t deadline_ns) {
    bp_lock_check_wait(lock);
    return bp_condition_wait_until(condition, &lock->mutex, deadline_ns);
}

/*
 * A number of this process, which a child of fork or clone does not have, until it makes one of its
 * own. Comparing it costs two loads. On Linux it is in a page that the kernel wipes in the child
 * (MADV_WIPEONFORK, Linux 4.14); elsewhere it is the process id, which a late descendant could get
 * again. Made without a lock, so also in a child.
 */
bugpack_status bp_fork_number_make(unsigned *ret_number, bugpack_error *error);
/* True if this process made the number, which was made before. */
bool bp_fork_number_is(unsigned number);

#endif
