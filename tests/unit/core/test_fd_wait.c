/*
 * On which descriptor a system call waits; and which two sockets are of one TCP connection.
 */
#include "platform/linux/open_file_text.h"
#include "platform/linux/thread_wait.h"
#include "unit/unit.h"

enum {
    AT = 0x7000,
    READ = 0,
    POLL = 7,
    SELECT = 23,
    NANOSLEEP = 35,
    CONNECT = 42,
    ACCEPT = 43,
    SEMOP = 65,
    UNLINK = 87,
    FDATASYNC = 75,
    SEMTIMEDOP = 220,
    EPOLL_WAIT = 232,
    OPENAT = 257,
    PPOLL = 271
};

static uint64_t memory[16]; /* from AT on */

static bool read_memory(void *context, uint64_t address, void *out, size_t bytes) {
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
    bool is_found = bp_fd_wait_find(BP_SYSCALL_X86_64, &syscall, read_memory, NULL, wait);
    return is_found && wait->count == 1 ? (int64_t)wait->fds[0] : -1;
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
    cr_expect(bp_call_is_readable(BP_SYSCALL_X86_64, &other));
    cr_expect(not(bp_call_is_readable(BP_SYSCALL_UNKNOWN, &other)), "a 32-bit program");
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

Test(fd_wait, lists_all_where_there_are_several) {
    bp_fd_wait wait;
    bp_thread_syscall call = {.place = BP_THREAD_IN_CALL, .number = POLL, .arguments = {AT, 3, 9}};
    memory[0] = 0x100000005;
    memory[1] = 0x400000005;
    memory[2] = 0x100000007;
    cr_assert(bp_fd_wait_find(BP_SYSCALL_X86_64, &call, read_memory, NULL, &wait));
    cr_expect(wait.count == 2 && wait.fds[0] == 5 && wait.fds[1] == 7 && wait.is_timed);
    for (uint64_t i = 0; i <= BP_FD_WAIT_MAX; i++) {
        memory[i] = 0x100000010 + i;
    }
    call.arguments[1] = BP_FD_WAIT_MAX;
    cr_expect(bp_fd_wait_find(BP_SYSCALL_X86_64, &call, read_memory, NULL, &wait));
    call.arguments[1]++;
    cr_expect(not(bp_fd_wait_find(BP_SYSCALL_X86_64, &call, read_memory, NULL, &wait)));
}

/* As Linux 6.18 writes fdinfo; before 4.13 there was no inode. */
static bool take_watches(const char *text, bp_fd_wait *wait) {
    const bp_thread_syscall call = {.place = BP_THREAD_IN_CALL,
                                    .number = EPOLL_WAIT,
                                    .arguments = {8, AT, 1, UINT32_MAX, UINT64_MAX}};
    cr_assert(bp_fd_wait_find(BP_SYSCALL_X86_64, &call, read_memory, NULL, wait));
    cr_assert(wait->is_epoll && wait->fds[0] == 8 && wait->has_limit && !wait->is_timed);
    return bp_fd_wait_take_watches(wait, text, strlen(text));
}

Test(fd_wait, of_epoll_is_what_is_watched_for_input_or_output) {
    static const char line[] =
        "tfd:        4 events:       19 data:                4  pos:0 ino:62b29a sdev:9\n";
    static const char disabled[] =
        "tfd:        6 events: 40000018 data:     7f6100000006  pos:-1 ino:62b29c sdev:f\n";
    char text[1024] = "pos:\t0\nflags:\t02000002\nmnt_id:\t17\nino:\t1030\n";
    bp_fd_wait wait;
    cr_expect(not(take_watches(text, &wait)), "it watches nothing");
    size_t begin = strlen(text);
    (void)snprintf(text + begin, sizeof text - begin, "%s%s", disabled, line);
    cr_assert(take_watches(text, &wait));
    cr_expect(wait.count == 1 && wait.fds[0] == 4 && wait.inodes[0] == 0x62b29a);
    cr_expect(not(wait.is_epoll));
    text[strlen(text) - 8] = '\0';
    cr_expect(not(take_watches(text, &wait)), "it is cut");
    cr_expect(not(take_watches("tfd:        4 events:       19 data:                4\n", &wait)));
}

Test(fd_wait, of_connect_has_the_name_of_a_unix_socket) {
    static const char path[] = {1, 0, '/', 'a', '/', 'b', 0}, other[] = {2, 0, 0, 80};
    bp_thread_syscall call = {
        .place = BP_THREAD_IN_CALL, .number = CONNECT, .arguments = {3, AT, sizeof path}};
    char name[BP_UNIX_NAME_BYTES] = "";
    memcpy(memory, path, sizeof path);
    cr_expect(bp_unix_connect_find(BP_SYSCALL_X86_64, &call, read_memory, NULL, name));
    cr_expect(eq(str, name, "/a/b"));
    ((char *)memory)[2] = '\0';
    cr_expect(bp_unix_connect_find(BP_SYSCALL_X86_64, &call, read_memory, NULL, name));
    cr_expect(eq(str, name, "@a/b"));
    call.arguments[2] = 2 + BP_UNIX_NAME_BYTES;
    cr_expect(not(bp_unix_connect_find(BP_SYSCALL_X86_64, &call, read_memory, NULL, name)));
    memcpy(memory, other, sizeof other);
    call.arguments[2] = sizeof other;
    cr_expect(not(bp_unix_connect_find(BP_SYSCALL_X86_64, &call, read_memory, NULL, name)));
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
    cr_expect(eq(str, ends_of("tcp", "127.0.0.1:5", "127.0.0.2:80", true),
                 ends_of("tcp6", "[::ffff:127.0.0.2]:80", "[::ffff:127.0.0.1]:5", false)));
    cr_expect(eq(str, ends_of("tcp6", "[::1]:5", "[::1]:80", false), "[::1]:5 [::1]:80"));
    cr_expect(eq(str, ends_of("tcp", "10.0.0.7:5", "10.0.0.7:80", true), "10.0.0.7:80 10.0.0.7:5"));
}

Test(connection, is_none_to_another_machine_or_of_another_protocol) {
    cr_expect(eq(str, ends_of("tcp", "10.0.0.7:5", "10.0.0.70:80", true), ""));
    cr_expect(eq(str, ends_of("tcp", "127.0.0.1:5", "", true), ""));
    cr_expect(eq(str, ends_of("tcp", "", "", true), ""));
    cr_expect(eq(str, ends_of("udp", "127.0.0.1:5", "127.0.0.1:80", true), ""));
    cr_expect(eq(str, ends_of("unix", "@127.0.0.1:5", "127.0.0.1:80", true), ""));
}

static bool is_listener_of(const char *local, const char *remote) {
    bp_socket listener = {.protocol = "tcp6", .is_listening = true}, socket = {.protocol = "tcp"};
    (void)snprintf(listener.local, sizeof listener.local, "%s", local);
    (void)snprintf(socket.remote, sizeof socket.remote, "%s", remote);
    return bp_socket_is_listener_of(&listener, &socket);
}

Test(connection, belongs_to_a_listener_of_its_port_and_address) {
    cr_expect(is_listener_of("[::]:80", "127.0.0.1:80"));
    cr_expect(is_listener_of("0.0.0.0:80", "127.0.0.1:80"));
    cr_expect(is_listener_of("[::ffff:127.0.0.1]:80", "127.0.0.1:80"));
    cr_expect(not(is_listener_of("127.0.0.2:80", "127.0.0.1:80")));
    cr_expect(not(is_listener_of("[::]:8080", "127.0.0.1:80")));
    cr_expect(not(is_listener_of("", "")));
}

static bool find_file(uint64_t number, bp_file_call *call) {
    const bp_thread_syscall syscall = {
        .place = BP_THREAD_IN_CALL, .number = number, .arguments = {0xffffff9c, AT, 2, 3, 4, 5}};
    return bp_file_call_find(BP_SYSCALL_X86_64, &syscall, call);
}

Test(file_call, is_about_a_path_or_a_descriptor) {
    bp_file_call call = {.fd = -7};
    cr_expect(find_file(OPENAT, &call));
    cr_expect(call.fd == BP_FILE_CALL_CWD && call.path == AT);
    cr_expect(find_file(UNLINK, &call));
    cr_expect(call.fd == BP_FILE_CALL_CWD && call.path == 0xffffff9c);
    cr_expect(find_file(FDATASYNC, &call));
    cr_expect(call.fd == -100 && call.path == 0);
    cr_expect(not(find_file(NANOSLEEP, &call)));
    bp_thread_syscall other = {.place = BP_THREAD_BLOCKED, .number = OPENAT};
    cr_expect(not(bp_file_call_find(BP_SYSCALL_X86_64, &other, &call)));
}

Test(semaphore, is_that_of_a_single_operation) {
    uint32_t number = 7;
    bp_thread_syscall syscall = {
        .place = BP_THREAD_IN_CALL, .number = SEMOP, .arguments = {98304, AT, 1, 0, 0, 0}};
    memory[0] = 0x0000ffff0002; /* number 2, by -1 */
    cr_expect(bp_semaphore_find(BP_SYSCALL_X86_64, &syscall, read_memory, NULL, &number));
    cr_expect(eq(u32, number, 2));
    cr_expect(bp_call_is_readable(BP_SYSCALL_X86_64, &syscall));
    syscall.number = SEMTIMEDOP;
    cr_expect(bp_semaphore_find(BP_SYSCALL_X86_64, &syscall, read_memory, NULL, &number));
    syscall.arguments[1] = AT + sizeof memory;
    cr_expect(not(bp_semaphore_find(BP_SYSCALL_X86_64, &syscall, read_memory, NULL, &number)));
    syscall.arguments[1] = AT;
    syscall.arguments[2] = 2;
    cr_expect(not(bp_call_is_readable(BP_SYSCALL_X86_64, &syscall)));
    syscall.number = OPENAT;
    cr_expect(bp_call_is_readable(BP_SYSCALL_X86_64, &syscall));
    syscall.number = FDATASYNC;
    cr_expect(not(bp_call_is_readable(BP_SYSCALL_X86_64, &syscall)));
}
