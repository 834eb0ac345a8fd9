#include "platform/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/status.h"

const char *bp_host_platform(void) {
    /* One answer a build would do, but uname names systems that nobody built for yet. */
    static const struct {
        const char *sysname, *platform;
    } known[] = {{"Linux", "linux"},   {"Darwin", "macos"},    {"FreeBSD", "freebsd"},
                 {"NetBSD", "netbsd"}, {"OpenBSD", "openbsd"}, {"SunOS", "illumos"}};
    struct utsname identity;
    if (uname(&identity) != 0) {
        return "unknown";
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(identity.sysname, known[i].sysname) == 0) {
            return known[i].platform;
        }
    }
    return "unknown";
}

void bp_host_identify(bp_host_identity *ret_identity) {
    struct utsname identity;
    *ret_identity = (bp_host_identity){0};
    if (uname(&identity) == 0) {
        (void)snprintf(ret_identity->arch, sizeof ret_identity->arch, "%.64s", identity.machine);
        (void)snprintf(ret_identity->kernel, sizeof ret_identity->kernel, "%.64s",
                       identity.release);
    }
}

bugpack_status bp_host_report_directory(char *path, size_t path_bytes, bugpack_error *error) {
    /* The XDG specification: a relative value is invalid and to be ignored. */
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
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

bool bp_host_runtime_directory(char *path, size_t path_bytes) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime == NULL || runtime[0] != '/') {
        return false;
    }
    int length = snprintf(path, path_bytes, "%s/bugpack", runtime);
    return length > 0 && (size_t)length < path_bytes;
}
