#include "platform/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

const char *bp_machine_platform(void) {
    struct utsname identity;
    return uname(&identity) == 0 && strcmp(identity.sysname, "Darwin") == 0 ? "macos" : "linux";
}

void bp_machine_identify(bp_machine_identity *ret_identity) {
    struct utsname identity;
    *ret_identity = (bp_machine_identity){0};
    /* random(4): 36 characters and a newline. Only Linux has it. */
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, ret_identity->boot_id, BP_MACHINE_BOOT_ID_BYTES - 1) !=
                      BP_MACHINE_BOOT_ID_BYTES - 1) {
        ret_identity->boot_id[0] = '\0';
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (uname(&identity) == 0) {
        (void)snprintf(ret_identity->name, sizeof ret_identity->name, "%s", identity.nodename);
        (void)snprintf(ret_identity->arch, sizeof ret_identity->arch, "%.64s", identity.machine);
        (void)snprintf(ret_identity->kernel, sizeof ret_identity->kernel, "%.64s",
                       identity.release);
    }
}
