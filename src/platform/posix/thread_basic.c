/* What only Linux has a way of its own for. */
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/thread.h"

size_t bp_thread_local_bytes(void) {
    return 0; /* dyld of macOS takes them from the heap, at a thread's first use */
}

void bp_thread_drop_signal(int number) {
    /* macOS lacks sigtimedwait: the caller has seen the signal pending. */
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, number);
    (void)sigwait(&signals, &number);
}

bugpack_status bp_condition_init(pthread_cond_t *condition, bugpack_error *error) {
    int result = pthread_cond_init(condition, NULL);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot make a condition variable");
    }
    return BUGPACK_OK;
}

/*
 * Only Linux can wipe a page in the child of a fork, so the process id decides here: minherit(2) of
 * macOS can drop a page but not zero it. getpid costs a load on macOS, whose libc caches it.
 */
struct bp_fork_guard {
    pid_t owner;
};

bugpack_status bp_fork_guard_new(bp_fork_guard **ret_guard, bugpack_error *error) {
    bp_fork_guard *guard = malloc(sizeof *guard);
    if (guard == NULL) {
        return bp_fail_memory(error, "guard the session against fork");
    }
    guard->owner = getpid();
    *ret_guard = guard;
    return BUGPACK_OK;
}

void bp_fork_guard_free(bp_fork_guard *guard) {
    free(guard);
}

bool bp_fork_guard_is_owner(const bp_fork_guard *guard) {
    return guard->owner == getpid();
}

bool bp_thread_waits_for(uint64_t tid, uint64_t owner_tid) {
    (void)tid;
    (void)owner_tid;
    return false;
}
