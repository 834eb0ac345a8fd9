/* Where no session has a directory (platform/file_guard.h). */
#include "platform/ask_socket.h"

#include "base/status.h"

bugpack_status bp_ask_socket_open(const char *dir, int *ret_fd, bugpack_error *error) {
    (void)dir;
    (void)ret_fd;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "sessions have no sockets on this system");
}

int bp_ask_socket_accept(int fd) {
    (void)fd;
    return -1;
}

void bp_ask_socket_answer(int fd, const char *text, size_t byte_count) {
    (void)fd;
    (void)text;
    (void)byte_count;
}

bugpack_status bp_ask_socket_connect(int dir_fd, int *ret_fd, bugpack_error *error) {
    (void)dir_fd;
    (void)ret_fd;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "sessions have no sockets on this system");
}
