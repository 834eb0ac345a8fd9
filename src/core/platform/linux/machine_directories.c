#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "platform/machine.h"

const char *bp_machine_environment(const char *name) {
    return secure_getenv(name);
}

bugpack_status bp_machine_report_directory(char *path, size_t path_bytes, bugpack_error *error) {
    /* The XDG specification: a relative value is invalid and to be ignored. */
    const char *state = bp_machine_environment("XDG_STATE_HOME");
    const char *home = bp_machine_environment("HOME");
    int length;
    if (state != NULL && state[0] == '/') {
        length = snprintf(path, path_bytes, "%s/bugpack", state);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(path, path_bytes, "%s/.local/state/bugpack", home);
    } else {
        return bp_fail(
            error, BUGPACK_ERR_INVALID,
            "no report directory was given, and neither XDG_STATE_HOME nor HOME names one");
    }
    if (length < 0 || (size_t)length >= path_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the report directory's path is too long");
    }
    return BUGPACK_OK;
}
