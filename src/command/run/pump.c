#include "run/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "run/descriptor.h"

/* A piece that a pipe takes without waiting when poll says that it can be written to (pipe(7)). */
enum { sure_bytes = 4096, least_read_bytes = 4096 };

/*
 * Opens a terminal, a pipe or a device that somebody gave us once more, to write to it without ever
 * blocking, while their own open file stays as it is. -1 where the system has no such thing.
 */
static int reopen_to_write(int fd) {
    struct stat given, opened;
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
    bool is_good = fstat(second, &opened) == 0 && opened.st_dev == given.st_dev &&
                   opened.st_ino == given.st_ino && (fcntl(second, F_GETFL) & O_NONBLOCK) != 0 &&
                   (flags_before & O_NONBLOCK) == 0;
    if (!is_good) {
        (void)close(second);
        return -1;
    }
    return second;
}

bugpack_status bp_run_pump_init(bp_run_pump *pump, int from_fd, int to_fd,
                                bp_run_pump_observer *observe, void *context,
                                bugpack_error *error) {
    struct stat status;
    *pump = (bp_run_pump){.from_fd = from_fd,
                          .to_fd = to_fd,
                          .given_fd = to_fd,
                          .observe = observe,
                          .context = context};
    pump->buffer = malloc(BP_RUN_PUMP_BYTES);
    if (pump->buffer == NULL) {
        return bp_fail_memory(error, "pass on what the command writes");
    }
    int own = reopen_to_write(to_fd);
    if (own >= 0) {
        pump->to_fd = own;
    } else {
        pump->may_block = fstat(to_fd, &status) == 0 && !S_ISREG(status.st_mode);
    }
    return BUGPACK_OK;
}

void bp_run_pump_release(bp_run_pump *pump) {
    if (pump->to_fd != pump->given_fd) {
        bp_descriptor_close(&pump->to_fd);
    }
    free(pump->buffer);
    pump->buffer = NULL;
}

static size_t room(const bp_run_pump *pump) {
    return BP_RUN_PUMP_BYTES - pump->end;
}

bool bp_run_pump_wants_to_read(const bp_run_pump *pump) {
    return pump->from_fd >= 0 && (pump->is_broken || room(pump) >= least_read_bytes);
}

bool bp_run_pump_wants_to_write(const bp_run_pump *pump) {
    return !pump->is_broken && pump->end > pump->begin;
}

/* One read. A terminal gives at most a page at a time, and says that its other end is closed with
 * EIO. */
static size_t read_once(bp_run_pump *pump, size_t most_bytes) {
    size_t wanted = room(pump) < most_bytes ? room(pump) : most_bytes;
    ssize_t count;
    do {
        count = read(pump->from_fd, pump->buffer + pump->end, wanted);
    } while (count < 0 && errno == EINTR);
    if (count > 0) {
        pump->observe(pump->context, pump->buffer + pump->end, (size_t)count);
        pump->end += (size_t)count;
        return (size_t)count;
    }
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        pump->is_drained = true;
    } else {
        pump->from_fd = -1;
    }
    return 0;
}

size_t bp_run_pump_read(bp_run_pump *pump, size_t most_bytes) {
    size_t total = 0;
    pump->is_drained = false;
    while (pump->from_fd >= 0 && room(pump) >= least_read_bytes && total < most_bytes) {
        size_t count = read_once(pump, most_bytes - total);
        total += count;
        if (count < least_read_bytes / 2) {
            break; /* probably all; poll knows */
        }
    }
    return total;
}

static void move_up(bp_run_pump *pump) {
    if (pump->begin == pump->end) {
        pump->begin = 0;
        pump->end = 0;
    } else if (room(pump) < least_read_bytes && pump->begin >= BP_RUN_PUMP_BYTES / 2) {
        memmove(pump->buffer, pump->buffer + pump->begin, pump->end - pump->begin);
        pump->end -= pump->begin;
        pump->begin = 0;
    }
}

/* A write failed: for good where nobody will ever read, because of a pipe without a reader or a
 * terminal that has hung up (EIO, which a disk gives too). */
static void lose(bp_run_pump *pump, int write_errno) {
    struct pollfd now = {.fd = pump->to_fd};
    pump->is_broken = write_errno == EPIPE ||
                      (write_errno == EIO && poll(&now, 1, 0) == 1 && (now.revents & POLLHUP) != 0);
    if (!pump->is_broken) {
        pump->lost_bytes += pump->end - pump->begin;
        pump->lost_errno = write_errno;
    }
    pump->begin = pump->end;
}

void bp_run_pump_write(bp_run_pump *pump, bool is_ready) {
    if (pump->is_broken) {
        pump->begin = pump->end;
    } else if (pump->may_block && !is_ready) {
        return;
    }
    while (bp_run_pump_wants_to_write(pump)) {
        size_t wanted = pump->end - pump->begin;
        if (pump->may_block && wanted > sure_bytes) {
            wanted = sure_bytes;
        }
        ssize_t count = write(pump->to_fd, pump->buffer + pump->begin, wanted);
        if (count > 0) {
            pump->begin += (size_t)count;
        } else if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            lose(pump, errno);
        }
        if (count < (ssize_t)wanted || pump->may_block) {
            break;
        }
    }
    move_up(pump);
}
