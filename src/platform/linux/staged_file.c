#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/staged_system.h"

#define DESCRIPTOR_PATH_BYTES 32

static void descriptor_path(int fd, char out[DESCRIPTOR_PATH_BYTES]) {
    (void)snprintf(out, DESCRIPTOR_PATH_BYTES, "/proc/self/fd/%d", fd);
}

/* Whether /proc is mounted and leads to the very file: in a chroot or a container it may not. */
int bp_staged_is_linkable(int fd) {
    char path[DESCRIPTOR_PATH_BYTES];
    descriptor_path(fd, path);
    struct stat by_path;
    struct stat by_fd;
    return stat(path, &by_path) == 0 && fstat(fd, &by_fd) == 0 && by_path.st_dev == by_fd.st_dev &&
           by_path.st_ino == by_fd.st_ino;
}

int bp_staged_link_unnamed(int fd, int dir_fd, const char *name) {
    /* The form of open(2)'s O_TMPFILE that needs no capability; AT_EMPTY_PATH wants one. */
    char path[DESCRIPTOR_PATH_BYTES];
    descriptor_path(fd, path);
    return linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW);
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
