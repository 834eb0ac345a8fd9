#include "hosts/spice/stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int64_t spice_now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool spice_fail(spice_failure *failure, const char *kind, int error_number, const char *format,
                ...) {
    failure->kind = kind;
    failure->error_number = error_number;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    return false;
}

/* Waits for `events` until the deadline; false when it has passed. */
static bool wait_until(int fd, short events, int64_t deadline_ms, spice_failure *failure) {
    for (;;) {
        int64_t left_ms = deadline_ms - spice_now_ms();
        struct pollfd wanted = {.fd = fd, .events = events};
        int count = left_ms > 0 ? poll(&wanted, 1, (int)left_ms) : 0;
        if (count > 0) {
            return true;
        }
        if (count == 0) {
            return spice_fail(failure, "timeout", ETIMEDOUT, "the server does not answer in time");
        }
        if (errno != EINTR) {
            return spice_fail(failure, "io", errno, "poll: %s", strerror(errno));
        }
    }
}

/* Receives `count` bytes `to` there, or sends them `from` there. */
static bool move_all(int fd, uint8_t *to, const uint8_t *from, size_t count, int64_t limit_ms,
                     spice_failure *failure) {
    int64_t deadline_ms = spice_now_ms() + limit_ms;
    for (size_t moved = 0; moved < count;) {
        ssize_t done = to ? recv(fd, to + moved, count - moved, 0)
                          : send(fd, from + moved, count - moved, MSG_NOSIGNAL);
        if (done > 0) {
            moved += (size_t)done;
        } else if (done == 0) {
            return spice_fail(failure, "closed", 0, "the server closed the connection");
        } else if (errno != EAGAIN) {
            return spice_fail(failure, "io", errno, "%s: %s", to ? "read" : "write",
                              strerror(errno));
        } else if (!wait_until(fd, to ? POLLIN : POLLOUT, deadline_ms, failure)) {
            return false;
        }
    }
    return true;
}

bool spice_read(int fd, void *bytes, size_t byte_count, int64_t limit_ms, spice_failure *failure) {
    return move_all(fd, bytes, NULL, byte_count, limit_ms, failure);
}

bool spice_write(int fd, const void *bytes, size_t byte_count, int64_t limit_ms,
                 spice_failure *failure) {
    return move_all(fd, NULL, bytes, byte_count, limit_ms, failure);
}

/* --- connecting --------------------------------------------------------------------------- */

static void set_up_socket(int fd) {
    int on = 1, idle_secs = 30, interval_secs = 10, probes = 3;
    /* What is sent is small, and a server that does not read it is to be noticed: by a thread that
     * waits to send, and as soon as for an idle server where it does not even acknowledge. */
    int send_bytes = 8 << 10;
    unsigned unacknowledged_ms = 60000;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms,
                     sizeof unacknowledged_ms);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_secs, sizeof idle_secs);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_secs, sizeof interval_secs);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

static bool connect_to(const struct addrinfo *address, int *ret_fd, spice_failure *failure) {
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return spice_fail(failure, "io", errno, "socket: %s", strerror(errno));
    }
    set_up_socket(fd);
    int error_number = 0;
    socklen_t size = sizeof error_number;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        if (errno != EINPROGRESS) {
            error_number = errno;
        } else if (!wait_until(fd, POLLOUT, spice_now_ms() + SPICE_CONNECT_MS, failure)) {
            (void)close(fd);
            return false;
        } else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &size) != 0) {
            error_number = errno;
        }
    }
    if (error_number != 0) {
        (void)close(fd);
        return spice_fail(failure, "io", error_number, "%s", strerror(error_number));
    }
    *ret_fd = fd;
    return true;
}

bool spice_connect(const char *host, const char *port, int *ret_fd, spice_failure *failure) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses = NULL;
    int status = getaddrinfo(host, port, &hints, &addresses);
    if (status != 0) {
        return spice_fail(failure, "io", 0, "%s: %s", host, gai_strerror(status));
    }
    bool is_connected = false;
    for (const struct addrinfo *each = addresses; each && !is_connected; each = each->ai_next) {
        is_connected = connect_to(each, ret_fd, failure);
    }
    freeaddrinfo(addresses);
    return is_connected;
}
