#include <errno.h>
#include <unistd.h>

#include "platform/staged_system.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bool bp_staged_unnamed_path(int fd, char ret_path[BP_STAGED_PATH_BYTES]) {
    return false;
}

int bp_staged_sync(int fd) {
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

int bp_staged_rename_new(int dir_fd, const char *from, const char *to) {
    errno = ENOTSUP; /* POSIX has no rename that refuses to replace */
    return -1;
}
