/* Where no session has a directory (platform/file_guard.h). */
#include "platform/ask_socket.h"

#include "base/status.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bugpack_status bp_ask_socket_open(const char *dir, int *ret_fd, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "sessions have no sockets on this system");
}

int bp_ask_socket_accept(int fd) {
    return -1;
}

void bp_ask_socket_answer(int fd, const char *text, size_t byte_count) {
}

bugpack_status bp_ask_socket_connect(int dir_fd, pid_t pid, uint64_t deadline_ns, int *ret_fd,
                                     bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "sessions have no sockets on this system");
}
