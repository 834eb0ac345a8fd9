/*
 * Where no page is wiped in the child of a fork the process id has to tell. Only Linux wipes one:
 * minherit(2) of macOS can leave a page out of the child, but not zero it, and a page that is not
 * there cannot be asked. getpid costs a load on macOS, whose libc keeps the answer.
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
