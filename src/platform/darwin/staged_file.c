/*
 * A Mac has no files without a name, so each staged file has a temporary one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "platform/staged_system.h"

bool bp_staged_unnamed_path(int fd, char ret_path[BP_STAGED_PATH_BYTES]) {
    (void)fd;
    (void)ret_path;
    return false;
}

/*
 * fsync leaves the bytes in the drive's cache; F_FULLFSYNC empties that as well (fsync(2) and
 * fcntl(2) of macOS). File systems without it say so with different errors. Only what the disk
 * itself reports is final: fsync, asked after that, may well succeed.
 */
int bp_staged_sync(int fd) {
    int result;
    do {
        result = fcntl(fd, F_FULLFSYNC);
    } while (result == -1 && errno == EINTR);
    if (result != -1) {
        return 0;
    }
    if (errno == EIO || errno == ENOSPC || errno == EDQUOT || errno == EBADF) {
        return -1;
    }
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

int bp_staged_rename_new(int dir_fd, const char *from, const char *to) {
    return renameatx_np(dir_fd, from, dir_fd, to, RENAME_EXCL);
}
