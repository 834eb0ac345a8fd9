#include "platform/ask_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/status.h"

enum { backlog = 8 };

/* Begins an abstract name behind its NUL (unix(7)). The request follows, '/', and an id that makes
 * the name unique. */
static const char request_prefix[] = "bugpack-trigger/";

/* By the descriptor of its directory: a path may be longer than an address. */
static struct sockaddr_un address_in(int dir_fd) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir_fd,
                   BP_ASK_SOCKET_NAME);
    return address;
}

/* True if the other end is of this user, or of root; `ret_pid` is who began to listen, or connected
 * (unix(7), SO_PEERCRED). */
static bool is_trusted(int fd, pid_t *ret_pid) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
        return false;
    }
    *ret_pid = peer.pid;
    return peer.uid == geteuid() || peer.uid == 0;
}

bugpack_status bp_ask_socket_open(const char *dir, int *ret_fd, bugpack_error *error) {
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = dir_fd < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct sockaddr_un address = address_in(dir_fd);
    /* The directory lets nobody in before it has its mode. */
    bool is_good = fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                   fchmodat(dir_fd, BP_ASK_SOCKET_NAME, 0600, 0) == 0 && listen(fd, backlog) == 0;
    int open_errno = errno;
    bp_file_close(dir_fd);
    if (!is_good) {
        bp_file_close(fd);
        return bp_fail_errno(error, open_errno, "cannot make \"%s/%s\"", dir, BP_ASK_SOCKET_NAME);
    }
    *ret_fd = fd;
    return BUGPACK_OK;
}

static void read_request(const struct sockaddr_un *peer, char ret_request[BP_ASK_REQUEST_BYTES]) {
    const char *name = peer->sun_path + 1;
    size_t prefix_bytes = sizeof request_prefix - 1;
    ret_request[0] = '\0';
    if (peer->sun_path[0] != '\0' || strncmp(name, request_prefix, prefix_bytes) != 0) {
        return;
    }
    const char *request = name + prefix_bytes;
    size_t bytes = strcspn(request, "/");
    bool is_good = request[bytes] == '/' && bytes < BP_ASK_REQUEST_BYTES;
    (void)snprintf(ret_request, BP_ASK_REQUEST_BYTES, "%.*s", is_good ? (int)bytes : 1,
                   is_good ? request : "?");
}

int bp_ask_socket_accept(int fd, char ret_request[BP_ASK_REQUEST_BYTES]) {
    for (;;) {
        pid_t peer_pid;
        struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
        socklen_t length = sizeof peer - 1; /* the last byte stays 0 */
        int asking = accept4(fd, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (asking >= 0 && !is_trusted(asking, &peer_pid)) {
            (void)close(asking);
        } else if (asking >= 0) {
            read_request(&peer, ret_request);
            return asking;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return -1;
        }
    }
}

void bp_ask_socket_answer(int fd, const char *text, size_t byte_count) {
    ssize_t ignored = send(fd, text, byte_count, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)ignored;
}

/* Where the backlog is full, connect waits as long as a send may (unix_stream_connect in
 * net/unix/af_unix.c), and poll cannot say when there is room. */
static bool connect_until(int fd, const struct sockaddr_un *address, uint64_t deadline_ns) {
    int result;
    do {
        uint64_t now_ns = bp_clock_monotonic_ns();
        uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
        const struct timeval left = {.tv_sec = (time_t)(left_ns / BP_NS_PER_SEC),
                                     .tv_usec = (suseconds_t)(left_ns % BP_NS_PER_SEC / 1000) + 1};
        if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof left) != 0) {
            return false;
        }
        result = connect(fd, (const struct sockaddr *)address, sizeof *address);
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

/* Gives the own end its name. False with errno. */
static bool name_request(int fd, const char *request) {
    char id[BP_ID_BYTES];
    struct sockaddr_un own = {.sun_family = AF_UNIX};
    if (request[0] == '\0') {
        return true;
    }
    bp_id_new(id);
    int bytes =
        snprintf(own.sun_path + 1, sizeof own.sun_path - 1, "%s%s/%s", request_prefix, request, id);
    return bind(fd, (const struct sockaddr *)&own,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)bytes)) == 0;
}

bugpack_status bp_ask_socket_connect(int dir_fd, pid_t pid, const char *request,
                                     uint64_t deadline_ns, int *ret_fd, bugpack_error *error) {
    pid_t peer_pid = 0;
    const struct sockaddr_un address = address_in(dir_fd);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !name_request(fd, request)) {
        int bind_errno = errno;
        (void)close(fd);
        return bp_fail_errno(error, bind_errno, "cannot name what is asked for");
    }
    if (fd < 0 || !connect_until(fd, &address, deadline_ns)) {
        int connect_errno = errno;
        bp_file_close(fd);
        if (connect_errno == EAGAIN) {
            return bp_fail(error, BUGPACK_ERR_TIMEOUT, "it has not answered those before us");
        }
        (void)bp_fail_errno(error, connect_errno, "it does not answer");
        bool is_nobody = connect_errno == ECONNREFUSED || connect_errno == ENOENT;
        if (is_nobody && error != NULL) {
            error->status = BUGPACK_ERR_NO_PROCESS;
        }
        return is_nobody ? BUGPACK_ERR_NO_PROCESS : BUGPACK_ERR_IO;
    }
    const char *refusal = NULL;
    if (!is_trusted(fd, &peer_pid) && geteuid() != 0) {
        refusal = "another user answers there";
    } else if (pid != 0 && peer_pid != pid) {
        refusal = "another process answers there";
    }
    if (refusal != NULL) {
        (void)close(fd);
        return bp_fail(error, BUGPACK_ERR_DENIED, "%s", refusal);
    }
    *ret_fd = fd;
    return BUGPACK_OK;
}
