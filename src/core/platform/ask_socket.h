/*
 * A socket in a directory, by which a process of the same user asks for something.
 */
#ifndef BP_PLATFORM_ASK_SOCKET_H
#define BP_PLATFORM_ASK_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#define BP_ASK_SOCKET_NAME "trigger"

/* Makes the socket in `dir`, of mode 0600. It does not block. Errors: IO, UNSUPPORTED. */
bugpack_status bp_ask_socket_open(const char *dir, int *ret_fd, bugpack_error *error);

/* Accepts the next connection of a process of this user or of root, and closes those of others. -1:
 * none is waiting. */
int bp_ask_socket_accept(int fd);

/* Never waits, and raises no signal. */
void bp_ask_socket_answer(int fd, const char *text, size_t byte_count);

/* Asks whoever has made the socket in the directory `dir_fd`, if that is a process of this user or
 * of root (of anybody where root asks), and `pid` where that is not 0. Errors: NO_PROCESS (nobody
 * answers there), TIMEOUT, DENIED, IO, UNSUPPORTED. */
bugpack_status bp_ask_socket_connect(int dir_fd, pid_t pid, uint64_t deadline_ns, int *ret_fd,
                                     bugpack_error *error);

#endif
