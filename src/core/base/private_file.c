#include "base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/*
 * Exactly 0600, whatever the umask or a default ACL made of it. A file system that has no modes
 * (vfat) will do as long as it keeps others out.
 */
static bool make_private(int fd) {
    struct stat info;
    if (fchmod(fd, 0600) == 0) {
        return true;
    }
    int mode_errno = errno;
    bool is_private = fstat(fd, &info) == 0 && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    errno = mode_errno;
    return is_private;
}

/* Takes over a descriptor that was just opened, or -1. On failure it is closed. */
static int settle(int fd) {
    enum { standard_stream_count = 3 };
    if (fd >= 0 && fd < standard_stream_count) {
        int above = fcntl(fd, F_DUPFD_CLOEXEC, standard_stream_count);
        bp_file_close(fd);
        fd = above;
    }
    if (fd >= 0 && !make_private(fd)) {
        bp_file_close(fd);
        fd = -1;
    }
    return fd;
}

int bp_private_file_open_unnamed(int dir_fd, bool may_be_linked) {
#ifdef O_TMPFILE
    /* O_EXCL: nobody can give it a name later, through /proc either (open(2)). */
    int exclusive = may_be_linked ? 0 : O_EXCL;
    return settle(openat(dir_fd, ".", O_TMPFILE | exclusive | O_RDWR | O_CLOEXEC, 0600));
#else
    (void)dir_fd;
    (void)may_be_linked;
    errno = ENOTSUP;
    return -1;
#endif
}

int bp_private_file_open_named(int dir_fd, char ret_name[BP_PRIVATE_FILE_NAME_BYTES]) {
    char id[BP_ID_BYTES];
    char name[BP_PRIVATE_FILE_NAME_BYTES];
    bp_id_new(id);
    (void)snprintf(name, sizeof name, BP_PRIVATE_FILE_PREFIX "%s" BP_PRIVATE_FILE_SUFFIX, id);
    int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -1;
    }
    fd = settle(fd);
    if (fd < 0) {
        int settle_errno = errno;
        (void)unlinkat(dir_fd, name, 0);
        errno = settle_errno;
        return -1;
    }
    memcpy(ret_name, name, sizeof name);
    return fd;
}
