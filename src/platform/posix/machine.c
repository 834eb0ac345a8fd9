#include "platform/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

const char *bp_machine_platform(void) {
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

/* random(4): 36 characters and a newline. Only Linux has it. */
static void read_boot_id(char boot_id[BP_MACHINE_BOOT_ID_BYTES]) {
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, boot_id, BP_MACHINE_BOOT_ID_BYTES - 1) != BP_MACHINE_BOOT_ID_BYTES - 1) {
        boot_id[0] = '\0';
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

void bp_machine_identify(bp_machine_identity *ret_identity) {
    struct utsname identity;
    *ret_identity = (bp_machine_identity){0};
    read_boot_id(ret_identity->boot_id);
    if (uname(&identity) == 0) {
        (void)snprintf(ret_identity->name, sizeof ret_identity->name, "%s", identity.nodename);
        (void)snprintf(ret_identity->arch, sizeof ret_identity->arch, "%.64s", identity.machine);
        (void)snprintf(ret_identity->kernel, sizeof ret_identity->kernel, "%.64s",
                       identity.release);
    }
}
