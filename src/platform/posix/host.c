#include "platform/host.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

const char *bp_host_platform(void) {
    /* At run time, because a build may be for a system that nobody has tried yet. */
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
