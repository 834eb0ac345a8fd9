/*
 * The calling thread, and the calling process after a fork.
 */
#ifndef BP_PLATFORM_THREAD_H
#define BP_PLATFORM_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/lock.h"

/*
 * The id that the sampler reports for the calling thread, in the child of a fork as soon as it has
 * made a guard of its own. Cheap: hardly ever a system call.
 */
uint64_t bp_thread_id(void);

/* The calling thread's name with its NUL; "" when it has none. */
#define BP_THREAD_NAME_BYTES 64
void bp_thread_name(char out[BP_THREAD_NAME_BYTES]);

/*
 * The same as it was at most BP_THREAD_NAME_STALE_NS ago, without its NUL, for whoever asks often
 * and has just read the monotonic clock: the system is asked again when the last answer is older,
 * because that is a system call of some hundred nanoseconds. Valid until the thread asks again.
 */
#define BP_THREAD_NAME_STALE_NS 10000000u
const char *bp_thread_recent_name(uint64_t now_ns, size_t *ret_bytes);

/*
 * Names the calling thread, with at most 15 bytes; best effort. A thread names itself: for another
 * one glibc opens a file under /proc, which a host's exec would inherit.
 */
void bp_thread_set_name(const char *name);

/*
 * Starts a thread of bugpack's own, to be joined or detached. Every signal is blocked but those
 * that a fault on the thread itself raises, so that the host's handlers run on it only where they
 * have to, and a file-size limit gives EFBIG instead of SIGXFSZ. It is scheduled as usual
 * (SCHED_OTHER), and its stack has 256 KiB for itself.
 */
bugpack_status bp_thread_start(void *(*run)(void *), void *argument, pthread_t *ret_thread,
                               bugpack_error *error);

/*
 * Holds back a pthread_cancel of the calling thread until the second call, which takes what the
 * first one gave. For a public call that waits or opens something: a thread that ended in its midst
 * would leave a lock held, or a stack that the worker still writes to.
 */
int bp_thread_hold_cancel(void);
void bp_thread_allow_cancel(int before);

/* How much of each new stack the thread-local variables of the program and its libraries take. */
size_t bp_thread_local_bytes(void);

/*
 * Lets the calling thread stand back behind the host's where both want the processor: ten steps of
 * nice(2) on Linux, where each thread has its own, which leaves it a tenth of a busy one. Nothing
 * elsewhere. It cannot be taken back.
 */
void bp_thread_stand_back(void);

/*
 * A condition variable whose deadlines are of the monotonic clock, so that a change of the wall
 * clock neither ends a wait nor prolongs it. wait_until returns false when the deadline has passed;
 * like every such wait it may also wake for no reason. Destroyed with pthread_cond_destroy.
 */
bugpack_status bp_condition_init(pthread_cond_t *condition, bugpack_error *error);
bool bp_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex,
                             uint64_t deadline_ns);

static inline bool bp_lock_wait_until(bp_lock *lock, pthread_cond_t *condition,
                                      uint64_t deadline_ns) {
    bp_lock_check_wait(lock);
    return bp_condition_wait_until(condition, &lock->mutex, deadline_ns);
}

/*
 * Tells whether this process is the one that made the guard. After a fork, a raw clone or a
 * double fork the child reads false; checking costs one load. On Linux the guard lies in a page
 * that the kernel wipes in the child (MADV_WIPEONFORK, Linux 4.14), which the sessions of a process
 * share; elsewhere it is the process id, which a late descendant could get again once this process
 * has ended. Cheap to keep, and made without a lock, so also in the child of a fork.
 */
typedef struct bp_fork_guard bp_fork_guard;
bugpack_status bp_fork_guard_new(bp_fork_guard **ret_guard, bugpack_error *error);
void bp_fork_guard_free(bp_fork_guard *guard);
bool bp_fork_guard_is_owner(const bp_fork_guard *guard);

#endif
