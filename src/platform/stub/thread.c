#include "platform/thread.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/thread_name.h"

uint64_t bp_thread_id(void) {
    /* An address that no other living thread has: enough to tell log records apart. */
    static _Thread_local char here;
    return (uint64_t)(uintptr_t)&here;
}

void bp_thread_set_name(pthread_t thread, const char *name) {
    (void)thread;
    (void)name;
}

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
