#include "cli/caller.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"

/* Digits alone. */
static bool read_id(const char *name, uint32_t *ret_id) {
    const char *text = getenv(name);
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *ret_id = (uint32_t)value;
    return *end == '\0' && errno == 0 && value < UINT32_MAX;
}

bool bp_cli_find_caller(uid_t *ret_uid, gid_t *ret_gid) {
    return getuid() == 0 && geteuid() == 0 && read_id("SUDO_UID", ret_uid) &&
           read_id("SUDO_GID", ret_gid) && *ret_uid != 0;
}

void bp_cli_give_to_caller(int fd) {
    uid_t uid;
    gid_t gid;
    if (bp_cli_find_caller(&uid, &gid) && fchown(fd, uid, gid) != 0) {
        bp_cli_say("what was written still belongs to root: %s", strerror(errno));
    }
}
