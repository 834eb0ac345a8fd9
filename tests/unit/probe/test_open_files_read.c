/*
 * The descriptors of running processes: this one, and a child with the other end of a pipe.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "process/open_files.h"
#include "unit/dir.h"

static const uint64_t no_hurry_ns = 20 * BP_NS_PER_SEC;

static bp_open_files read_process(pid_t pid) {
    bp_open_files files;
    cr_assert(eq(int,
                 bp_open_files_read(pid, NULL, BP_OPEN_FILE_MAX,
                                    bp_clock_monotonic_ns() + no_hurry_ns, &files, &failure),
                 BUGPACK_OK),
              "%s", failure.message);
    return files;
}

/* This process with the other ends, for which a busy machine may have no time at once. */
static bp_open_files read_with_ends(bp_fd_search *ret_search) {
    for (;;) {
        bp_open_files files = read_process(0);
        cr_assert(eq(int,
                     bp_open_files_find_ends(&files, 1, bp_clock_monotonic_ns() + no_hurry_ns,
                                             ret_search, &failure),
                     BUGPACK_OK));
        if (!ret_search->is_cut) {
            return files;
        }
        bp_open_files_release(&files);
    }
}

static const bp_open_file *find(const bp_open_files *files, int number) {
    for (size_t i = 0; i < files->file_count; i++) {
        if (files->files[i].number == (uint32_t)number) {
            return &files->files[i];
        }
    }
    cr_fatal("descriptor %d is not listed", number);
    return NULL;
}

static bool is_listed(const bp_open_files *files, int number) {
    for (size_t i = 0; i < files->file_count; i++) {
        if (files->files[i].number == (uint32_t)number) {
            return true;
        }
    }
    return false;
}

static bool is_held_by(const bp_open_file *file, pid_t pid, int number) {
    for (size_t i = 0; i < file->holder_count; i++) {
        if (file->holders[i].pid == (uint64_t)pid && file->holders[i].number == (uint32_t)number) {
            return true;
        }
    }
    return false;
}

DIR_SUITE(open_files);

Test(open_files, of_this_process_are_those_that_it_opened) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/a.log", dir.path);
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    cr_assert(eq(int, write(fd, "hello", 5), 5));
    int next = dup(fd);
    (void)close(next); /* what the reading itself opens */
    bp_open_files files = read_process(0);
    const bp_open_file *file = find(&files, fd);
    cr_expect(eq(int, file->kind, BP_OPEN_FILE_FILE));
    cr_expect(eq(str, file->target, path));
    cr_expect(file->has_size && file->size_bytes == 5 && file->info.position == 5);
    cr_expect(eq(str, bp_fd_access(file->info.flags), "write"));
    cr_expect(not(is_listed(&files, next)));
    cr_expect(eq(sz, files.open_count, files.file_count));
    cr_expect(files.has_limit && files.limit.soft > 0);
    bp_open_files_release(&files);

    cr_assert(zero(int, unlink(path)));
    files = read_process(0);
    cr_expect(find(&files, fd)->is_deleted);
    cr_expect(eq(str, find(&files, fd)->target, path));
    bp_open_files_release(&files);
}

Test(open_files, of_inotify_have_their_watches_counted) {
    CLEANUP(close_fd) int fd = inotify_init1(IN_CLOEXEC);
    if (fd < 0) {
        cr_skip("there is no inotify instance left");
    }
    cr_assert(ge(int, inotify_add_watch(fd, dir.path, IN_CREATE), 0));
    cr_assert(ge(int, inotify_add_watch(fd, "/proc", IN_CREATE), 0));
    bp_open_files files = read_process(0);
    cr_expect(eq(u64, files.inotify_count, 1));
    cr_expect(eq(u64, files.watch_count, 2));
    cr_expect(files.inotify_max.known && files.watch_max.known && files.watch_max.value > 0);
    bp_open_files_release(&files);
}

Test(open_files, are_counted_where_they_are_over_the_limit_or_late) {
    bp_open_files files;
    int some[2];
    cr_assert(zero(int, pipe(some)));
    uint64_t now_ns = bp_clock_monotonic_ns();
    cr_assert(
        eq(int, bp_open_files_read(0, NULL, 1, now_ns + no_hurry_ns, &files, NULL), BUGPACK_OK));
    cr_expect(eq(sz, files.file_count, 1));
    cr_expect(eq(sz, files.passed_over_count, files.open_count - 1));
    bp_open_files_release(&files);
    cr_assert(eq(int, bp_open_files_read(0, NULL, 100, now_ns - 1, &files, NULL), BUGPACK_OK));
    cr_expect(eq(sz, files.passed_over_count, files.open_count));
    bp_open_files_release(&files);
}

Test(open_files, show_a_pipe_with_the_process_at_its_other_end) {
    int ends[2];
    cr_assert(zero(int, pipe(ends)));
    pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        for (;;) {
            (void)pause();
        }
    }
    (void)close(ends[1]);
    bp_fd_search search;
    bp_open_files files = read_with_ends(&search);
    const bp_open_file *file = find(&files, ends[0]);
    cr_expect(search.was_needed && search.process_count > 0);
    cr_expect(file->has_other_end);
    cr_expect(is_held_by(file, child, ends[1]), "the writer");
    cr_expect(not(is_held_by(file, child, ends[0]) || is_held_by(file, getpid(), ends[0])));
    bp_open_files_release(&files);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    files = read_with_ends(&search);
    cr_expect(not(is_held_by(find(&files, ends[0]), child, ends[1])));
    bp_open_files_release(&files);
}

/* A second call shares the pass of the first over all processes. */
Test(open_files, show_who_came_since_the_last_search) {
    char path[512];
    int early[2], late[2];
    bp_fd_search search;
    (void)snprintf(path, sizeof path, "%s/fifo", dir.path);
    cr_assert(zero(int, mkfifo(path, 0600)));
    cr_assert(zero(int, pipe(early)));
    CLEANUP(close_fd) int reader = open(path, O_RDONLY | O_NONBLOCK);
    bp_open_files files = read_with_ends(&search);
    cr_expect(is_held_by(find(&files, early[0]), getpid(), early[1]));
    cr_expect(zero(sz, find(&files, reader)->holder_count));
    bp_open_files_release(&files);

    (void)close(early[1]);
    cr_assert(zero(int, pipe(late)));
    CLEANUP(close_fd) int writer = open(path, O_WRONLY);
    files = read_with_ends(&search);
    cr_expect(zero(sz, find(&files, early[0])->holder_count));
    cr_expect(is_held_by(find(&files, late[0]), getpid(), late[1]));
    cr_expect(is_held_by(find(&files, reader), getpid(), writer));
    bp_open_files_release(&files);
    bp_open_files_forget_ends();
}

Test(open_files, show_a_fifo_and_a_socket_pair_with_both_ends) {
    char path[512];
    int pair[2];
    (void)snprintf(path, sizeof path, "%s/fifo", dir.path);
    cr_assert(zero(int, mkfifo(path, 0600)));
    CLEANUP(close_fd) int reader = open(path, O_RDONLY | O_NONBLOCK);
    CLEANUP(close_fd) int writer = open(path, O_WRONLY);
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM, 0, pair)));
    cr_assert(eq(int, write(pair[0], "abc", 3), 3));
    bp_fd_search search;
    CLEANUP(bp_open_files_release) bp_open_files files = read_with_ends(&search);
    cr_expect(is_held_by(find(&files, reader), getpid(), writer));
    cr_expect(is_held_by(find(&files, writer), getpid(), reader));
    const bp_open_file *file = find(&files, pair[1]);
    cr_assert(file->socket != NULL);
    cr_expect(eq(str, file->socket->protocol, "unix"));
    cr_expect(eq(str, file->socket->state, "established"));
    if (file->socket->has_queues) { /* the kernel has sock_diag for unix sockets */
        cr_expect(eq(u64, file->socket->receive_queue, 3));
        cr_expect(is_held_by(file, getpid(), pair[0]));
    }
}

Test(open_files, show_the_ends_and_the_queue_of_a_connection) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    CLEANUP(close_fd) int listener = socket(AF_INET, SOCK_STREAM, 0);
    CLEANUP(close_fd) int unbound = socket(AF_INET, SOCK_STREAM, 0);
    CLEANUP(close_fd) int client = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(zero(int, bind(listener, (struct sockaddr *)&address, sizeof address)));
    cr_assert(zero(int, listen(listener, 5)));
    cr_assert(zero(int, getsockname(listener, (struct sockaddr *)&address, &bytes)));
    cr_assert(zero(int, connect(client, (struct sockaddr *)&address, sizeof address)));
    CLEANUP(bp_open_files_release) bp_open_files files = read_process(0);
    const bp_socket *listening = find(&files, listener)->socket;
    const bp_socket *connected = find(&files, client)->socket;
    char expected[64];
    (void)snprintf(expected, sizeof expected, "127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
    cr_expect(eq(str, listening->state, "listening"));
    cr_expect(eq(str, listening->local, expected));
    cr_expect(eq(u64, listening->receive_queue, 1), "one waits");
    cr_expect(eq(str, connected->state, "established"));
    cr_expect(eq(str, connected->remote, expected));
    cr_expect(eq(str, find(&files, unbound)->socket->protocol, "tcp"));
    cr_expect(find(&files, unbound)->socket->state == NULL, "it is in no table");
}

/* The table shows a newline in a name as it is. The inode is that of a socket of ours. */
Test(open_files, believe_nothing_of_a_socket_that_a_name_pretends_to_be) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    int pair[2];
    CLEANUP(close_fd) int liar = socket(AF_UNIX, SOCK_DGRAM, 0);
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)));
    cr_assert(zero(int, fstat(pair[0], &info)));
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                          "%d\n0: 2 0 10000 1 1 %llu @false", (int)getpid(),
                          (unsigned long long)info.st_ino);
    cr_assert(
        zero(int, bind(liar, (struct sockaddr *)&address,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length))));
    CLEANUP(bp_open_files_release) bp_open_files files = read_process(0);
    const bp_socket *socket = find(&files, pair[0])->socket;
    cr_expect(eq(str, socket->local, ""));
    cr_expect(not(socket->is_listening));
    cr_expect(eq(str, socket->protocol, "unix"));
}

Test(open_files, of_a_process_that_ended_are_refused) {
    bp_open_files files = {.pid = 7};
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    cr_expect(eq(int,
                 bp_open_files_read(child, NULL, 10, bp_clock_monotonic_ns() + no_hurry_ns, &files,
                                    &failure),
                 BUGPACK_ERR_NO_PROCESS));
    cr_expect(strstr(failure.message, "open files") != NULL);
    cr_expect(eq(u64, files.pid, 7));
}

/* An exclusive lock of a child. */
static pid_t start_locker(const char *path, short type) {
    int ready[2];
    char byte;
    cr_assert(zero(int, pipe(ready)));
    pid_t child = fork();
    if (child == 0) {
        const struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR | O_CLOEXEC);
        bool has_it = fcntl(fd, F_SETLK, &lock) == 0 && write(ready[1], "", 1) == 1;
        while (has_it && getppid() != 1) {
            (void)usleep(10000);
        }
        _exit(1);
    }
    (void)close(ready[1]);
    cr_assert(eq(int, read(ready[0], &byte, 1), 1));
    (void)close(ready[0]);
    return child;
}

/* Who has locked `path`, of which `fd` is a descriptor; 0 for nobody. */
static uint64_t locked_by(const char *path, int fd, short type) {
    pid_t child = start_locker(path, type);
    bp_open_files files = read_process(0);
    bp_open_files_find_locks(&files, 1);
    uint64_t pid = find(&files, fd)->locked_by.pid;
    cr_expect(pid == 0 || pid == (uint64_t)child);
    bp_open_files_release(&files);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    return pid;
}

Test(open_files, names_who_has_locked_a_file_that_is_open_for_writing) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/a.db", dir.path);
    CLEANUP(close_fd) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CLEANUP(close_fd) int reading = open(path, O_RDONLY | O_CLOEXEC);
    cr_expect(ne(u64, locked_by(path, fd, F_WRLCK), 0));
    cr_expect(eq(u64, locked_by(path, fd, F_RDLCK), 0), "many may read");
    cr_expect(eq(u64, locked_by(path, reading, F_WRLCK), 0));
}
