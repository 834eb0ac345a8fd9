/*
 * Where there is no /proc to walk.
 */
#include "base/status.h"
#include "probe/host_capture.h"

bugpack_status bp_host_capture(const bp_host_root *root, const bp_host_plan *plan, int dir_fd,
                               bp_temp_file *ret_temp_file, bp_host_summary *ret_summary,
                               bugpack_error *error) {
    (void)root;
    (void)plan;
    (void)dir_fd;
    (void)ret_temp_file;
    (void)ret_summary;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                   "all threads of the machine cannot be read on this system");
}
