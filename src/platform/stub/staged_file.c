#include <errno.h>
#include <unistd.h>

#include "platform/staged_system.h"

int bp_staged_is_linkable(int fd) {
    (void)fd;
    return 0;
}

int bp_staged_link_unnamed(int fd, int dir_fd, const char *name) {
    (void)fd;
    (void)dir_fd;
    (void)name;
    errno = ENOTSUP;
    return -1;
}

int bp_staged_sync(int fd) {
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

int bp_staged_rename_new(int dir_fd, const char *from, const char *to) {
    (void)dir_fd;
    (void)from;
    (void)to;
    errno = ENOTSUP; /* POSIX has no rename that refuses to replace */
    return -1;
}
