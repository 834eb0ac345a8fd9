/*
 * On which descriptor a system call waits; and which two sockets are of one TCP connection.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "platform/linux/open_file_text.h"
#include "platform/linux/thread_wait.h"

enum { AT = 0x7000, READ = 0, POLL = 7, SELECT = 23, NANOSLEEP = 35, ACCEPT = 43, PPOLL = 271 };

static uint64_t memory[16]; /* from AT on */

static bool read_memory(void *context, uint64_t address, void *out, size_t bytes) {
    (void)context;
    if (address < AT || address - AT + bytes > sizeof memory) {
        return false;
    }
    memcpy(out, (const char *)memory + (address - AT), bytes);
    return true;
}

/* The descriptor; -1: it is not known. */
static int64_t fd_of(uint64_t number, uint64_t first, uint64_t second, uint64_t third,
                     bp_fd_wait *wait) {
    const bp_thread_syscall syscall = {
        .place = BP_THREAD_IN_CALL, .number = number, .arguments = {first, second, third, 0, 0, 0}};
    return bp_fd_wait_find(BP_SYSCALL_X86_64, &syscall, read_memory, NULL, wait) ? (int64_t)wait->fd
                                                                                 : -1;
}

Test(fd_wait, is_the_first_argument_of_most_calls) {
    bp_fd_wait wait;
    cr_expect(eq(i64, fd_of(READ, 3, AT, 10, &wait), 3));
    cr_expect(not(wait.has_limit || wait.is_timed));
    cr_expect(eq(i64, fd_of(ACCEPT, 0xffffffff00000004, 0, 0, &wait), 4), "an int in a register");
    cr_expect(eq(i64, fd_of(READ, UINT64_MAX, AT, 10, &wait), -1));
    cr_expect(eq(i64, fd_of(NANOSLEEP, 3, 0, 0, &wait), -1));
    bp_thread_syscall other = {.place = BP_THREAD_BLOCKED, .arguments = {3}};
    cr_expect(not(bp_fd_wait_find(BP_SYSCALL_X86_64, &other, read_memory, NULL, &wait)));
    other.place = BP_THREAD_IN_CALL;
    cr_expect(bp_fd_wait_is_possible(BP_SYSCALL_X86_64, &other));
    cr_expect(not(bp_fd_wait_is_possible(BP_SYSCALL_UNKNOWN, &other)), "a 32-bit program");
}

Test(fd_wait, of_poll_is_known_where_there_is_one_alone) {
    bp_fd_wait wait;
    memory[0] = 0x100000005; /* descriptor 5, POLLIN */
    cr_expect(eq(i64, fd_of(POLL, AT, 1, 0xffffffff, &wait), 5));
    cr_expect(wait.has_limit && !wait.is_timed);
    cr_expect(eq(i64, fd_of(POLL, AT, 1, 1000, &wait), 5));
    cr_expect(wait.is_timed);
    cr_expect(eq(i64, fd_of(PPOLL, AT, 1, AT, &wait), 5));
    cr_expect(wait.is_timed);
    memory[1] = 0x1ffffffff; /* -1 is passed over */
    memory[2] = 0x400000005; /* POLLOUT of the same */
    cr_expect(eq(i64, fd_of(POLL, AT, 3, 0, &wait), 5));
    memory[1] = 0x100000006;
    cr_expect(eq(i64, fd_of(POLL, AT, 2, 0, &wait), -1), "two");
    cr_expect(eq(i64, fd_of(POLL, AT, 0, 0, &wait), -1), "none");
    cr_expect(eq(i64, fd_of(POLL, AT, 1000000, 0, &wait), -1));
    cr_expect(eq(i64, fd_of(POLL, 8, 1, 0, &wait), -1), "memory that cannot be read");
}

Test(fd_wait, of_select_is_known_where_there_is_one_alone) {
    bp_fd_wait wait;
    memory[4] = 1; /* a bit beyond the count */
    memory[3] = 1u << 5;
    cr_expect(eq(i64, fd_of(SELECT, 64, AT + 24, AT + 24, &wait), 5));
    cr_expect(wait.has_limit && !wait.is_timed);
    cr_expect(eq(i64, fd_of(SELECT, 65, AT + 24, 0, &wait), -1), "two");
    cr_expect(eq(i64, fd_of(SELECT, 5, AT + 24, 0, &wait), -1), "none");
    cr_expect(eq(i64, fd_of(SELECT, 2000, AT + 24, 0, &wait), -1));
    cr_expect(eq(i64, fd_of(SELECT, 64, 8, 0, &wait), -1), "memory that cannot be read");
}

static const char *ends_of(const char *protocol, const char *local, const char *remote,
                           bool from_remote) {
    static char text[2][BP_SOCKET_CONNECTION_BYTES];
    bp_socket socket = {.inode = 1};
    (void)snprintf(socket.protocol, sizeof socket.protocol, "%s", protocol);
    (void)snprintf(socket.local, sizeof socket.local, "%s", local);
    (void)snprintf(socket.remote, sizeof socket.remote, "%s", remote);
    return bp_socket_connection(&socket, from_remote, text[from_remote]) ? text[from_remote] : "";
}

Test(connection, has_the_same_name_at_both_ends) {
    cr_expect(eq(str, (char *)ends_of("tcp", "127.0.0.1:5", "127.0.0.2:80", true),
                 (char *)ends_of("tcp6", "[::ffff:127.0.0.2]:80", "[::ffff:127.0.0.1]:5", false)));
    cr_expect(eq(str, (char *)ends_of("tcp6", "[::1]:5", "[::1]:80", false), "[::1]:5 [::1]:80"));
    cr_expect(eq(str, (char *)ends_of("tcp", "10.0.0.7:5", "10.0.0.7:80", true),
                 "10.0.0.7:80 10.0.0.7:5"));
}

Test(connection, is_none_to_another_machine_or_of_another_protocol) {
    cr_expect(eq(str, (char *)ends_of("tcp", "10.0.0.7:5", "10.0.0.70:80", true), ""));
    cr_expect(eq(str, (char *)ends_of("tcp", "127.0.0.1:5", "", true), ""));
    cr_expect(eq(str, (char *)ends_of("tcp", "", "", true), ""));
    cr_expect(eq(str, (char *)ends_of("udp", "127.0.0.1:5", "127.0.0.1:80", true), ""));
    cr_expect(eq(str, (char *)ends_of("unix", "@127.0.0.1:5", "127.0.0.1:80", true), ""));
}
