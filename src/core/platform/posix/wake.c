#include "platform/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
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

/* As pipe(2); close-on-exec at once where the system can. */
static int make_pipe(int ends[2]) {
#ifdef __linux__
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
#else
    /* macOS lacks pipe2: until they are duplicated, a fork of the host's may inherit them. */
    return pipe(ends);
#endif
}

bugpack_status bp_wake_open(bp_wake *ret_wake, bugpack_error *error) {
    int ends[2];
    if (make_pipe(ends) != 0) {
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

/* The copies get the lowest numbers that are free: there cannot be many above one that is near the
 * limit. */
static bool leaves_room(int fd) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
           (rlim_t)fd + BP_FD_RESERVE_COUNT < limit.rlim_cur;
}

void bp_fd_reserve_take(bp_fd_reserve *reserve) {
    int ends[2] = {-1, -1};
    int error = make_pipe(ends);
    reserve->is_held = true;
    reserve->mark = bp_fd_mark_of(ends[0]);
    /* The second end makes room for one of the copies. */
    bp_file_close(ends[1]);
    for (int i = 0; i < BP_FD_RESERVE_COUNT; i++) {
        reserve->fds[i] = error == 0 ? fcntl(ends[0], F_DUPFD_CLOEXEC, standard_stream_count) : -1;
        if (reserve->fds[i] >= 0 && i >= reserve->had_count && !leaves_room(reserve->fds[i])) {
            bp_file_close(reserve->fds[i]);
            reserve->fds[i] = -1;
        }
        if (reserve->fds[i] >= 0 && i >= reserve->had_count) {
            reserve->had_count = i + 1;
        }
    }
    bp_file_close(ends[0]);
}

void bp_fd_reserve_release(bp_fd_reserve *reserve) {
    for (int i = 0; reserve->is_held && i < BP_FD_RESERVE_COUNT; i++) {
        bp_fd_close_ours(reserve->fds[i], reserve->mark);
    }
    reserve->is_held = false;
}
