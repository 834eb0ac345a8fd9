#include "platform/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

enum { standard_stream_count = 3 };

/* Above the standard streams, close-on-exec and non-blocking; -1 with errno, and closed then. */
static int prepare(int fd) {
    int above = fcntl(fd, F_DUPFD_CLOEXEC, standard_stream_count);
    bp_file_close(fd);
    if (above >= 0 && fcntl(above, F_SETFL, O_NONBLOCK) != 0) {
        bp_file_close(above);
        above = -1;
    }
    return above;
}

bugpack_status bp_wake_open(bp_wake *ret_wake, bugpack_error *error) {
    int ends[2];
    if (bp_wake_pipe(ends) != 0) {
        return bp_fail_errno(error, errno, "cannot make a descriptor for events");
    }
    int read_end = prepare(ends[0]);
    int read_errno = errno;
    int write_end = prepare(ends[1]);
    if (read_end < 0 || write_end < 0) {
        int failed_errno = read_end < 0 ? read_errno : errno;
        bp_file_close(read_end);
        bp_file_close(write_end);
        return bp_fail_errno(error, failed_errno, "cannot make a descriptor for events");
    }
    *ret_wake = (bp_wake){.fd = read_end, .raise_fd = write_end, .mark = bp_fd_mark_of(read_end)};
    return BUGPACK_OK;
}

void bp_wake_close(bp_wake *wake) {
    bp_fd_close_ours(wake->fd, wake->mark);
    bp_fd_close_ours(wake->raise_fd, wake->mark);
}

bool bp_wake_is_open(const bp_wake *wake) {
    return bp_fd_is_ours(wake->fd, wake->mark) && bp_fd_is_ours(wake->raise_fd, wake->mark);
}

void bp_wake_raise(const bp_wake *wake) {
    ssize_t count;
    do {
        count = bp_wake_is_open(wake) ? write(wake->raise_fd, "", 1) : 0;
    } while (count < 0 && errno == EINTR);
}

void bp_wake_lower(const bp_wake *wake) {
    char bytes[16];
    ssize_t count;
    do {
        count = bp_wake_is_open(wake) ? read(wake->fd, bytes, sizeof bytes) : 0;
    } while (count > 0 || (count < 0 && errno == EINTR));
}
