#include "base/status.h"
#include "probe/stacks.h"

bugpack_status bp_stacks_read(pid_t pid, const bp_stacks_plan *plan, bp_stacks *ret_stacks,
                              bugpack_error *error) {
    (void)pid;
    (void)plan;
    (void)ret_stacks;
#if defined(__linux__)
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this bugpack was built without libdw");
#else
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this system has no way to read stacks");
#endif
}
