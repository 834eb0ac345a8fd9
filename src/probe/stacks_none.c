#include <stdio.h>

#include "base/status.h"
#include "probe/profile.h"
#include "probe/stacks.h"
#if defined(__linux__)
#include "probe/jemalloc_find.h"
#endif

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static bugpack_status refuse(bugpack_error *error) {
#if defined(__linux__)
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this bugpack was built without libdw");
#else
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this system has no way to read stacks");
#endif
}

bugpack_status bp_stacks_read(pid_t pid, const bp_stacks_plan *plan, bp_stacks *ret_stacks,
                              bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_stacks_read_crash(const bp_crash_page *page, const bp_stacks_plan *plan,
                                    bool is_host, bp_stacks *ret_stacks, bugpack_error *error) {
    return refuse(error);
}

bp_frame_finder bp_frame_finder_new(void) {
    return (bp_frame_finder){NULL, NULL, NULL};
}

bugpack_status bp_profiler_begin(const bp_profile_plan *plan, bp_profiler **ret_profiler,
                                 bugpack_error *error) {
    return refuse(error);
}

bugpack_status bp_profiler_end(bp_profiler *profiler, bp_profile *ret_profile,
                               bugpack_error *error) {
    return refuse(error);
}

void bp_profiler_abandon(bp_profiler *profiler) {
}

#if defined(__linux__)
bp_dwarf_status bp_jemalloc_dwarf_read(int fd, const char *path, bp_jemalloc_layout *ret_layout,
                                       char *reason, size_t reason_bytes) {
    (void)snprintf(reason, reason_bytes, "this bugpack was built without libdw");
    return BP_DWARF_NO_LIBRARY;
}
#endif
