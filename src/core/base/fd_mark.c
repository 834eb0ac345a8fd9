#include "base/fd_mark.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/file.h"

bp_fd_mark bp_fd_mark_of(int fd) {
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
        return (bp_fd_mark){0};
    }
    return (bp_fd_mark){.device = info.st_dev, .inode = info.st_ino};
}

bool bp_fd_is_ours(int fd, bp_fd_mark mark) {
    int caller_errno = errno;
    bp_fd_mark found = bp_fd_mark_of(fd);
    errno = caller_errno;
    return found.inode != 0 && found.inode == mark.inode && found.device == mark.device;
}

void bp_fd_close_ours(int fd, bp_fd_mark mark) {
    if (bp_fd_is_ours(fd, mark)) {
        bp_file_close(fd);
    }
}
