#include "platform/file_guard.h"

#include "base/status.h"

bugpack_status bp_file_guard_start(uint32_t tick_ms, bp_file_guard_tick *tick, void *tick_context,
                                   bp_file_guard **ret_guard, bugpack_error *error) {
    (void)tick_ms;
    (void)tick;
    (void)tick_context;
    (void)ret_guard;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                   "this system has no way to guard a mapped file against truncation");
}

bugpack_status bp_file_guard_add(bp_file_guard *guard, int fd, bp_file_guard_yield *yield,
                                 void *context, bugpack_error *error) {
    (void)guard;
    (void)fd;
    (void)yield;
    (void)context;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "a file cannot be guarded here");
}

void bp_file_guard_remove(bp_file_guard *guard, int fd) {
    (void)guard;
    (void)fd;
}

void bp_file_guard_stop(bp_file_guard *guard) {
    (void)guard;
}
