#include "platform/staged_file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/linux/libc_calls.h"

/*
 * The form of open(2)'s O_TMPFILE that needs no capability; AT_EMPTY_PATH wants one. In a chroot or
 * a container /proc may not be mounted, or not lead to the very file.
 */
bool bp_staged_unnamed_path(int fd, char ret_path[BP_STAGED_PATH_BYTES]) {
    struct stat by_path;
    struct stat by_fd;
    (void)snprintf(ret_path, BP_STAGED_PATH_BYTES, "/proc/self/fd/%d", fd);
    return stat(ret_path, &by_path) == 0 && fstat(fd, &by_fd) == 0 &&
           by_path.st_dev == by_fd.st_dev && by_path.st_ino == by_fd.st_ino;
}

int bp_staged_sync(int fd) {
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

int bp_staged_rename_new(int dir_fd, const char *from, const char *to) {
    return renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE);
}
