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

/* A request, as "NAME=VALUE" and a NUL. It is a part of the abstract name that the asking process
 * gives to its own end of the socket. So it arrives with the connection, and the host has nothing
 * to read or wait for. */
enum { BP_ASK_REQUEST_BYTES = 48 };
#define BP_ASK_MAX_SIZE "max_zip_bytes="

/* Begins the last line of an answer: the limit of the zip that was written follows. */
#define BP_ASK_LIMIT "\nlimit "

/* Makes the socket in `dir`, of mode 0600. It does not block. Errors: IO, UNSUPPORTED. */
bugpack_status bp_ask_socket_open(const char *dir, int *ret_fd, bugpack_error *error);

/* Accepts the next connection of a process of this user or of root, and closes those of others. -1:
 * none is waiting. `ret_request` is "" where nothing particular is asked for, and "?" where that is
 * longer than any request. */
int bp_ask_socket_accept(int fd, char ret_request[BP_ASK_REQUEST_BYTES]);

/* Never waits, and raises no signal. */
void bp_ask_socket_answer(int fd, const char *text, size_t byte_count);

/* Asks whoever has made the socket in the directory `dir_fd`, if that is a process of this user or
 * of root (of anybody where root asks), and `pid` where that is not 0. `request` may be "". Errors:
 * NO_PROCESS (nobody answers there), TIMEOUT, DENIED, IO, UNSUPPORTED. */
bugpack_status bp_ask_socket_connect(int dir_fd, pid_t pid, const char *request,
                                     uint64_t deadline_ns, int *ret_fd, bugpack_error *error);

#endif
