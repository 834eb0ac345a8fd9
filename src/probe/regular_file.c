#include "probe/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int bp_regular_file_reopen(int path_fd, uint64_t inode) {
    struct stat info;
    char name[40];
    if (fstat(path_fd, &info) != 0 || !S_ISREG(info.st_mode) ||
        (inode != 0 && info.st_ino != inode)) {
        errno = ESTALE;
        return -1;
    }
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", path_fd);
    return open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int bp_regular_file_open(const char *path) {
    int path_fd = open(path, O_PATH | O_CLOEXEC);
    if (path_fd < 0) {
        return -1;
    }
    int fd = bp_regular_file_reopen(path_fd, 0);
    int open_errno = errno;
    (void)close(path_fd);
    errno = open_errno;
    return fd;
}
