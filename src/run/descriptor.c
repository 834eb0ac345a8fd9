#include "run/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

void bp_descriptor_keep_from_exec(int fd) {
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void bp_descriptor_stop_blocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0) {
        (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    }
}

/* Not pipe2 and SOCK_CLOEXEC, which not every Unix has: this program makes these before its first
 * thread, so no fork can come in between. */
static bugpack_status finish_pair(int result, int fds[2], int ret_fds[2], bugpack_error *error) {
    if (result != 0) {
        return bp_fail_errno(error, errno, "cannot make a pipe");
    }
    for (size_t i = 0; i < 2; i++) {
        bp_descriptor_keep_from_exec(fds[i]);
        ret_fds[i] = fds[i];
    }
    return BUGPACK_OK;
}

bugpack_status bp_descriptor_pipe(int ret_fds[2], bugpack_error *error) {
    int fds[2] = {-1, -1};
    return finish_pair(pipe(fds), fds, ret_fds, error);
}

bugpack_status bp_descriptor_socket_pair(int ret_fds[2], bugpack_error *error) {
    int fds[2] = {-1, -1};
    return finish_pair(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), fds, ret_fds, error);
}

void bp_descriptor_close(int *fd) {
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

bool bp_descriptor_read_all(int fd, void *bytes, size_t byte_count) {
    size_t done = 0;
    while (done < byte_count) {
        ssize_t count = read(fd, (char *)bytes + done, byte_count - done);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return false;
        }
        done += count > 0 ? (size_t)count : 0;
    }
    return true;
}

bool bp_descriptor_write_all(int fd, const void *bytes, size_t byte_count) {
    size_t done = 0;
    while (done < byte_count) {
        ssize_t count = write(fd, (const char *)bytes + done, byte_count - done);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        done += count > 0 ? (size_t)count : 0;
    }
    return true;
}

int bp_descriptor_reopen_to_write(int fd) {
    struct stat given;
    struct stat opened;
    char path[32];
    if (fstat(fd, &given) != 0 || !(S_ISFIFO(given.st_mode) || S_ISCHR(given.st_mode))) {
        return -1;
    }
    int flags_before = fcntl(fd, F_GETFL);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", fd);
    int second = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (second < 0) {
        return -1;
    }
    /* Where /dev/fd gives a duplicate instead (BSD, macOS), it shares its flags with the first. */
    bool is_good = fstat(second, &opened) == 0 && opened.st_dev == given.st_dev &&
                   opened.st_ino == given.st_ino && (fcntl(second, F_GETFL) & O_NONBLOCK) != 0 &&
                   fcntl(fd, F_GETFL) == flags_before && (flags_before & O_NONBLOCK) == 0;
    if (!is_good) {
        (void)close(second);
        return -1;
    }
    return second;
}
