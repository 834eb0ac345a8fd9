/*
 * Threads of this process that wait on pipes and sockets, and who is at the other ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "process/open_files.h"
#include "process/threads.h"
#include "unit/unit.h"

/* A thread that waits on a descriptor until the test ends. */
struct waiter {
    int fd;
    bool does_poll;
    pthread_t thread;
};

static void *wait_on(void *context) {
    const struct waiter *waiter = context;
    struct pollfd item = {.fd = waiter->fd, .events = POLLIN};
    char bytes[8];
    (void)pthread_setname_np(pthread_self(), "waiter");
    (void)(waiter->does_poll ? poll(&item, 1, -1) : read(waiter->fd, bytes, sizeof bytes));
    return NULL;
}

static void ignore(int number) {
}

/* Interrupts its call. The signal may come just before the call, and is sent again. */
static void stop_waiter(const struct waiter *waiter) {
    const struct sigaction action = {.sa_handler = ignore};
    cr_assert(zero(int, sigaction(SIGUSR1, &action, NULL)));
    while (pthread_tryjoin_np(waiter->thread, NULL) == EBUSY) {
        (void)pthread_kill(waiter->thread, SIGUSR1);
        (void)usleep(1000);
    }
}

/* Closes one descriptor, and sleeps until it is killed. */
static pid_t start_child(int closed) {
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the test */
        (void)close(closed);
        for (;;) {
            (void)pause();
        }
    }
    return child;
}

/* Reads until the thread is seen in its call, and a busy machine has had time for all processes.
 * The caller releases it. */
static bp_process_threads read_waiting(const bp_thread_state **ret_thread) {
    for (;;) {
        bp_process_threads process;
        bp_fd_search search;
        cr_assert(eq(int, bp_threads_read(0, UINT64_MAX, &process, NULL), BUGPACK_OK));
        cr_assert(
            eq(int, bp_threads_find_files(&process, 1, UINT64_MAX, &search, NULL), BUGPACK_OK));
        for (size_t i = 0; i < process.thread_count; i++) {
            bp_thread_state *thread = &process.threads[i];
            if (!search.is_cut && strcmp(thread->read.stat.name, "waiter") == 0 &&
                thread->has_fd_wait && process.files.file_count > 0 &&
                (thread->file != NULL || process.files.files[0].kind == BP_OPEN_FILE_TIMERFD)) {
                *ret_thread = thread;
                return process;
            }
        }
        bp_process_threads_release(&process);
        (void)usleep(1000);
    }
}

/* That a thread which waits on `fd` waits for `pid`, which has the other end as `number`. */
static void expect_wait(int fd, bool does_poll, bp_open_file_kind kind, pid_t pid, int number) {
    struct waiter waiter = {.fd = fd, .does_poll = does_poll};
    const bp_thread_state *thread;
    cr_assert(zero(int, pthread_create(&waiter.thread, NULL, wait_on, &waiter)));
    bp_process_threads process = read_waiting(&thread);
    bool is_found = false;
    /* The kernel's table may pass over a connection while others of the machine come and go. */
    while (pid != 0 && thread->file != NULL && thread->file->holder_count == 0) {
        bp_process_threads_release(&process);
        process = read_waiting(&thread);
    }
    cr_assert(thread->file != NULL);
    cr_expect(eq(int, thread->file->kind, (int)kind));
    cr_expect(eq(u32, thread->file->number, (uint32_t)fd));
    cr_expect(thread->fd_wait.has_limit == does_poll && !thread->fd_wait.is_timed);
    for (size_t i = 0; i < thread->file->holder_count; i++) {
        const bp_fd_holder *holder = &thread->file->holders[i];
        is_found = is_found || (holder->pid == (uint64_t)pid && holder->number == (uint32_t)number);
    }
    cr_expect(is_found == (pid != 0), "%zu hold it", thread->file->holder_count);
    cr_expect(pid != 0 || thread->file->holder_count == 0);
    bp_process_threads_release(&process);
    stop_waiter(&waiter);
}

Test(fd_wait, names_the_process_that_has_the_other_end_of_a_pipe) {
    int ends[2];
    cr_assert(zero(int, pipe(ends)));
    pid_t child = start_child(ends[0]);
    (void)close(ends[1]);
    expect_wait(ends[0], false, BP_OPEN_FILE_PIPE, child, ends[1]);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

Test(fd_wait, names_this_process_where_it_has_both_ends) {
    int ends[2];
    cr_assert(zero(int, pipe(ends)));
    expect_wait(ends[0], false, BP_OPEN_FILE_PIPE, getpid(), ends[1]);
}

Test(fd_wait, names_the_process_at_the_other_end_of_a_connection) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(zero(int, bind(listener, (struct sockaddr *)&address, sizeof address)));
    cr_assert(zero(int, listen(listener, 1)));
    cr_assert(zero(int, getsockname(listener, (struct sockaddr *)&address, &bytes)));
    expect_wait(listener, true, BP_OPEN_FILE_SOCKET, 0, -1);
    cr_assert(zero(int, connect(client, (struct sockaddr *)&address, sizeof address)));
    int server = accept(listener, NULL, NULL);
    pid_t child = start_child(client);
    expect_wait(client, true, BP_OPEN_FILE_SOCKET, child, server);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

/* The kernel may have no sock_diag for unix sockets: then nobody is named. */
Test(fd_wait, names_the_process_at_the_other_end_of_a_unix_socket) {
    int pair[2];
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM, 0, pair)));
    bp_open_files files;
    cr_assert(eq(int, bp_open_files_read(0, NULL, 1000, UINT64_MAX, &files, NULL), BUGPACK_OK));
    bool has_peers = false;
    for (size_t i = 0; i < files.file_count; i++) {
        has_peers = has_peers || (files.files[i].number == (uint32_t)pair[0] &&
                                  files.files[i].socket->peer_inode != 0);
    }
    bp_open_files_release(&files);
    pid_t child = start_child(pair[0]);
    expect_wait(pair[0], false, BP_OPEN_FILE_SOCKET, has_peers ? child : 0, pair[1]);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

/* The reader is stopped in its call, and goes on to read the end of the file only afterwards. */
/* The listener is the child's, who does not accept. */
static void expect_listener(struct sockaddr *address, socklen_t bytes) {
    int listener = socket(address->sa_family, SOCK_STREAM, 0);
    int client = socket(address->sa_family, SOCK_STREAM, 0);
    cr_assert(zero(int, bind(listener, address, bytes)));
    cr_assert(zero(int, listen(listener, 1)));
    cr_assert(zero(int, getsockname(listener, address, &bytes)));
    cr_assert(zero(int, connect(client, address, bytes)));
    pid_t child = start_child(client);
    (void)close(listener);
    expect_wait(client, true, BP_OPEN_FILE_SOCKET, child, listener);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

Test(fd_wait, names_the_listener_that_has_not_accepted_a_connection) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    expect_listener((struct sockaddr *)&address, sizeof address);
}

Test(fd_wait, names_nobody_where_the_other_end_was_closed) {
    int ends[2];
    cr_assert(zero(int, pipe(ends)));
    pid_t child = fork();
    if (child == 0) {
        char byte;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ends[1]);
        _exit((int)read(ends[0], &byte, 1));
    }
    for (bool is_waiting = false; !is_waiting;) {
        CLEANUP(bp_process_threads_release) bp_process_threads process;
        cr_assert(eq(int, bp_threads_read(child, UINT64_MAX, &process, NULL), BUGPACK_OK));
        is_waiting = process.threads[0].has_fd_wait;
    }
    (void)kill(child, SIGSTOP);
    (void)waitpid(child, NULL, WUNTRACED);
    (void)close(ends[1]);
    bp_process_threads process = {.thread_count = 0};
    bp_fd_search search;
    do {
        bp_process_threads_release(&process);
        cr_assert(eq(int, bp_threads_read(child, UINT64_MAX, &process, NULL), BUGPACK_OK));
        cr_assert(
            eq(int, bp_threads_find_files(&process, 1, UINT64_MAX, &search, NULL), BUGPACK_OK));
    } while (search.is_cut);
    const bp_open_file *file = process.threads[0].file;
    cr_assert(file != NULL);
    cr_expect(file->has_other_end && file->holder_count == 0);
    bp_process_threads_release(&process);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

Test(fd_wait, an_eventfd_is_its_own_other_end) {
    const bp_thread_state *thread;
    int others = eventfd(0, EFD_CLOEXEC);
    struct waiter waiter = {.fd = eventfd(0, EFD_CLOEXEC)};
    cr_assert(zero(int, pthread_create(&waiter.thread, NULL, wait_on, &waiter)));
    bp_process_threads process = read_waiting(&thread);
    cr_assert(thread->file != NULL);
    cr_assert(eq(sz, thread->file->holder_count, 1));
    cr_expect(eq(u64, thread->file->holders[0].pid, (uint64_t)getpid()));
    cr_expect(eq(u64, thread->file->holders[0].number, (uint64_t)waiter.fd));
    bp_process_threads_release(&process);
    stop_waiter(&waiter);
    (void)close(others);
}

Test(fd_wait, says_nothing_of_what_has_no_other_end) {
    const bp_thread_state *thread;
    struct waiter waiter = {.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)};
    cr_assert(zero(int, pthread_create(&waiter.thread, NULL, wait_on, &waiter)));
    bp_process_threads process = read_waiting(&thread);
    cr_expect(thread->file == NULL);
    bp_process_threads_release(&process);
    stop_waiter(&waiter);
}
