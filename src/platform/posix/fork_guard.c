/*
 * Only Linux can wipe a page in the child of a fork, so the process id decides here: minherit(2) of
 * macOS can drop a page but not zero it. getpid costs a load on macOS, whose libc caches it.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/thread.h"

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
