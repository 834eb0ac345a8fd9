/* Programs that wait for another process, or for a tracer. */
#include "sick.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* The two ends of a connection; the child keeps the second. */
static int ends[2];

static void be_silent(void) {
    check(close(ends[0]));
    wait_for_ever();
}

static void read_for_ever(void) {
    char byte;
    say_ready();
    (void)!read(ends[0], &byte, 1);
}

static pid_t start_peer(void (*run)(void)) {
    pid_t peer = start_child(run);
    check(close(ends[1]));
    tell("peer=%d", (int)peer);
    await_call(peer, SYS_rt_sigsuspend);
    return peer;
}

static void connect_ends(void) {
    struct sockaddr_in address;
    int listener = listen_here(1, &address);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(ends[0], (struct sockaddr *)&address, sizeof address));
    ends[1] = accept(listener, NULL, NULL);
    check(ends[1] < 0 ? -1 : 0);
    check(close(listener));
}

static void pipe_peer_stopped(void) {
    check(pipe(ends));
    stop_child(start_peer(be_silent));
    read_for_ever();
}

static void unix_peer_stopped(void) {
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    stop_child(start_peer(be_silent));
    read_for_ever();
}

static void tcp_peer_stopped(void) {
    connect_ends();
    stop_child(start_peer(be_silent));
    read_for_ever();
}

/* As of a client with a loop of events: what wakes the loop itself is nobody else. */
static void epoll_peer_stopped(void) {
    struct epoll_event event = {.events = EPOLLIN};
    int watched = epoll_create1(EPOLL_CLOEXEC);
    connect_ends();
    stop_child(start_peer(be_silent));
    check(epoll_ctl(watched, EPOLL_CTL_ADD, ends[0], &event));
    check(epoll_ctl(watched, EPOLL_CTL_ADD, eventfd(0, EFD_CLOEXEC), &event));
    say_ready();
    (void)epoll_wait(watched, &event, 1, -1);
}

/* Of the two clients of a server one is stopped; the other one, or a new one, may still ask. */
static void client_stopped(void) {
    struct sockaddr_in address;
    int listener = listen_here(1, &address);
    connect_ends();
    stop_child(start_peer(be_silent));
    int stopped = ends[0];
    connect_ends();
    (void)start_peer(be_silent);
    struct pollfd items[] = {{.fd = stopped, .events = POLLIN},
                             {.fd = ends[0], .events = POLLIN},
                             {.fd = listener, .events = POLLIN}};
    say_ready();
    (void)poll(items, 3, -1);
}

/* Of the two programs that one reads from, one is stopped. */
static void source_stopped(void) {
    check(pipe(ends));
    stop_child(start_peer(be_silent));
    int stopped = ends[0];
    check(pipe(ends));
    (void)start_peer(be_silent);
    struct pollfd items[] = {{.fd = stopped, .events = POLLIN}, {.fd = ends[0], .events = POLLIN}};
    say_ready();
    (void)poll(items, 2, -1);
}

/* Nothing is wrong with a server that has nothing to say. */
static void peer_idle(void) {
    check(pipe(ends));
    (void)start_peer(be_silent);
    read_for_ever();
}

static int event;

__attribute__((noinline)) static void wait_for_event(void) {
    uint64_t count;
    (void)read(event, &count, sizeof count);
}

/* The other end was not closed: there is no end of file. Its child, which wrote, has ended. */
static void own_pipe_open(void) {
    check(pipe(ends));
    outlive_child();
    read_for_ever();
}

/* Healthy: its child has that end, too, and will write. */
static void own_pipe_shared(void) {
    check(pipe(ends));
    (void)start_child(wait_for_ever);
    read_for_ever();
}

static void lock_turn(int command) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    check(fcntl(open("turn", O_RDWR | O_CREAT | O_CLOEXEC, 0600), command, &whole));
}

static void have_turn(void) {
    lock_turn(F_SETLK);
}

static void want_turn(void) {
    lock_turn(F_SETLKW);
}

static void wake_server(int number) {
    (void)number;
    (void)!write(ends[1], "", 1);
}

/* Healthy: a server that its own handler wakes, whose workers accept one after the other, and have
 * the pipe, too. */
static void workers_take_turns(void) {
    const struct sigaction action = {.sa_handler = wake_server};
    check(pipe(ends));
    check(sigaction(SIGTERM, &action, NULL));
    await_call(start_child(have_turn), SYS_rt_sigsuspend);
    await_call(start_child(want_turn), SYS_fcntl);
    await_call(start_child(want_turn), SYS_fcntl);
    read_for_ever();
}

static void *wait_in_thread(void *unused) {
    wait_for_event();
    return unused;
}

/* Nobody writes to its eventfd, which no other process has. */
static void own_event(void) {
    event = eventfd(0, EFD_CLOEXEC);
    (void)start(wait_in_thread, NULL, "worker");
    outlive_child();
    say_ready();
    wait_for_event();
}

static void own_event_polled(void) {
    struct pollfd item = {.fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN};
    say_ready();
    (void)poll(&item, 1, -1);
}

/* Healthy: the kernel writes when the asynchronous I/O ends (io_submit(2)). */
static void own_event_of_aio(void) {
    unsigned long context = 0;
    struct iocb poll_of_input = {.aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN};
    struct iocb *list = &poll_of_input;
    check(pipe(ends));
    (void)start_child(wait_for_ever); /* which has the other end, and no eventfd */
    check(close(ends[1]));
    event = eventfd(0, EFD_CLOEXEC);
    poll_of_input.aio_fildes = (uint32_t)ends[0];
    poll_of_input.aio_flags = IOCB_FLAG_RESFD;
    poll_of_input.aio_resfd = (uint32_t)event;
    check((int)syscall(SYS_io_setup, 1, &context));
    check((int)syscall(SYS_io_submit, context, 1, &list) - 1);
    say_ready();
    wait_for_event();
}

/* Healthy: its child has it, too, and will write. */
static void own_event_shared(void) {
    event = eventfd(0, 0);
    (void)start_child(wait_for_ever);
    say_ready();
    wait_for_event();
}

static sem_t posted;
static int to_child[2], to_parent[2];

static void post(int number) {
    (void)number;
    (void)sem_post(&posted);
}

static void echo(void) {
    char byte;
    check(close(to_child[1]));
    check(close(to_parent[0]));
    while (read(to_child[0], &byte, 1) == 1 && write(to_parent[1], &byte, 1) == 1) {}
}

static void *read_echo(void *unused) {
    char byte;
    (void)!read(to_parent[0], &byte, 1);
    return unused;
}

/* Healthy: a signal has it send work to its child, whose answer another thread reads. */
static void posted_by_handler(void) {
    struct sigaction action = {.sa_handler = post, .sa_flags = SA_RESTART};
    check(sigaction(SIGUSR1, &action, NULL));
    check(sem_init(&posted, 0, 0));
    check(pipe(to_child));
    check(pipe(to_parent));
    await_call(start_child(echo), SYS_read);
    check(close(to_child[0]));
    check(close(to_parent[1]));
    (void)start(read_echo, NULL, "reader");
    say_ready();
    while (sem_wait(&posted) == 0) {
        (void)!write(to_child[1], "", 1);
    }
}

/* --- answers ------------------------------------------------------------------------------ */

/* A server that the process connects to: it answers so often, and then it keeps its listener. */
static unsigned answer_count;
static bool does_read;
static bool is_mapped; /* the client has a socket of IPv6, as those of Java */
static int service;

static void serve(void) {
    char bytes[16];
    int client = accept(service, NULL, NULL);
    if (does_read) {
        check(read(client, bytes, sizeof bytes) > 0 ? 0 : -1);
    }
    for (unsigned i = 0; i < answer_count; i++) {
        check(write(client, "answer", 6) == 6 ? 0 : -1);
    }
    wait_for_ever();
}

static void ask(void) {
    struct sockaddr_in address;
    char bytes[16];
    service = listen_here(4, &address);
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = address.sin_port};
    check(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr) == 1 ? 0 : -1);
    int client = socket(is_mapped ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const void *to = is_mapped ? (const void *)&mapped : &address;
    check(connect(client, to, is_mapped ? sizeof mapped : sizeof address));
    check(write(client, "question", 8) == 8 ? 0 : -1);
    pid_t peer = start_child(serve);
    tell("peer=%d", (int)peer);
    await_call(peer, SYS_rt_sigsuspend);
    for (unsigned i = 0; i < answer_count; i++) {
        check(read(client, bytes, sizeof bytes) > 0 ? 0 : -1);
    }
    check(close(service));
    say_ready();
    (void)!read(client, bytes, sizeof bytes);
}

static void question_not_read(void) {
    ask();
}

static void question_not_answered(void) {
    does_read = true;
    ask();
}

static void question_not_answered_ipv6(void) {
    is_mapped = true;
    question_not_answered();
}

/* Healthy: a client that has subscribed. */
static void subscribed(void) {
    does_read = true;
    answer_count = 1;
    ask();
}

/* Healthy: a server that waits for the next question of its client. */
static void client_thinks(void) {
    struct sockaddr_in address;
    char byte;
    int listener = listen_here(4, &address);
    ends[1] = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(ends[1], (struct sockaddr *)&address, sizeof address));
    ends[0] = accept(listener, NULL, NULL);
    check(write(ends[0], "welcome", 7) == 7 ? 0 : -1);
    (void)start_peer(be_silent);
    say_ready();
    (void)!read(ends[0], &byte, 1);
}

/* As syslog(3), whose reader hangs. */
static void messages_not_read(void) {
    check(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    (void)start_peer(be_silent);
    say_ready();
    while (write(ends[0], "message", 7) == 7) {}
}

/* A server that sleeps: one client is accepted and has sent something, the other one waits. */
static void wait_for_input(void) {
    struct sockaddr_in address;
    int listener = listen_here(4, &address), server = -1;
    for (int i = 0; i < 2; i++) {
        int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        check(connect(client, (struct sockaddr *)&address, sizeof address));
        check(write(client, "question", 8) == 8 ? 0 : -1);
        server = i == 0 ? accept(listener, NULL, NULL) : server;
    }
    check(server < 0 ? -1 : 0);
}

static void input_not_read(void) {
    wait_for_input();
    say_ready();
    (void)sleep(1000);
}

/* It has been told once of all its connections, and has accepted one. */
static void listener_not_drained(void) {
    struct sockaddr_in address;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int listener = listen_here(4, &address), set = epoll_create1(EPOLL_CLOEXEC);
    check(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event));
    for (int i = 0; i < 3; i++) {
        check(
            connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
    }
    check(epoll_wait(set, &event, 1, -1) == 1 ? 0 : -1);
    check(accept(listener, NULL, NULL) < 0 ? -1 : 0);
    say_ready();
    (void)epoll_wait(set, &event, 1, -1);
}

/* The queue is full, and the kernel drops what comes. */
static void datagrams_not_read(void) {
    static char message[8192];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    check(bind(server, (struct sockaddr *)&address, bytes));
    check(getsockname(server, (struct sockaddr *)&address, &bytes));
    for (int i = 0; i < 1000; i++) {
        (void)sendto(server, message, sizeof message, 0, (struct sockaddr *)&address, bytes);
    }
    say_ready();
    (void)sleep(1000);
}

/* Healthy: a server that answers nothing, and a client of it in the same process. */
static void own_client(void) {
    struct sockaddr_in address;
    char line[8];
    int listener = listen_here(4, &address);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(connect(client, (struct sockaddr *)&address, sizeof address));
    int server = accept(listener, NULL, NULL);
    check(write(client, "a line\n", 7) == 7 ? 0 : -1);
    say_ready();
    while (read(server, line, sizeof line) > 0) {}
}

/* Healthy: its child has the same sockets, and is the one that reads them. */
static void input_of_child(void) {
    wait_for_input();
    (void)start_child(wait_for_ever);
    say_ready();
    (void)sleep(1000);
}

/* --- chains ------------------------------------------------------------------------------- */

/* What the middle of a chain tells goes through the same standard output. */
static void wait_for_stopped_child(void) {
    check(close(ends[0]));
    pid_t child = start_child(wait_for_ever);
    stop_child(child);
    tell("end=%d", (int)child);
    (void)waitpid(child, NULL, 0);
}

static void wait_for_file_lock(void) {
    int held = open("chain-lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int wanted = open("chain-lock", O_RDWR | O_CLOEXEC);
    check(close(ends[0]));
    check(flock(held, LOCK_EX));
    pid_t child = start_child(wait_for_ever);
    check(close(held)); /* now the child alone has it */
    tell("end=%d", (int)child);
    check(flock(wanted, LOCK_EX));
}

static void wait_for_one_that(void (*waits)(void), long in_call) {
    pid_t middle = start_child(waits);
    check(close(ends[1]));
    tell("middle=%d", (int)middle);
    await_call(middle, in_call);
    read_for_ever();
}

static void chain_to_stopped(void) {
    check(pipe(ends));
    wait_for_one_that(wait_for_stopped_child, SYS_wait4);
}

static void chain_to_file_lock(void) {
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    wait_for_one_that(wait_for_file_lock, SYS_flock);
}

/* --- children ----------------------------------------------------------------------------- */

static void child_stopped(void) {
    pid_t child = start_child(wait_for_ever);
    stop_child(child);
    tell("child=%d", (int)child);
    say_ready();
    (void)waitpid(child, NULL, 0);
}

static void lock_twice(void) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    check(pthread_mutex_lock(&lock));
    check(pthread_mutex_lock(&lock));
}

static void child_hangs(void) {
    pid_t child = start_child(lock_twice);
    await_call(child, SYS_futex);
    tell("child=%d", (int)child);
    say_ready();
    (void)waitpid(child, NULL, 0);
}

/* --- circles ------------------------------------------------------------------------------ */

static int back[2];

static void read_back(void) {
    char byte;
    check(close(ends[0]));
    check(close(back[1]));
    (void)!read(back[0], &byte, 1);
}

/* Each reads what the other one would have to write. */
static void pipe_circle(void) {
    check(pipe(ends));
    check(pipe(back));
    pid_t child = start_child(read_back);
    check(close(ends[1]));
    check(close(back[0]));
    await_call(child, SYS_read);
    tell("peer=%d", (int)child);
    read_for_ever();
}

static void fill_pipe(void) {
    static char block[1 << 20];
    check(close(ends[0]));
    (void)!write(ends[1], block, sizeof block);
}

/* The parent would have to read first, and to wait then. */
static void child_fills_pipe(void) {
    check(pipe(ends));
    pid_t child = start_child(fill_pipe);
    check(close(ends[1]));
    await_call(child, SYS_write);
    tell("child=%d", (int)child);
    say_ready();
    (void)waitpid(child, NULL, 0);
}

static void read_other_end(void) {
    char byte;
    check(close(ends[0]));
    (void)!read(ends[1], &byte, 1);
}

/* Each may just wait for the end of the other. */
static void socket_watched(void) {
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    pid_t child = start_child(read_other_end);
    check(close(ends[1]));
    await_call(child, SYS_read);
    read_for_ever();
}

static void many_zombies(void) {
    for (int i = 0; i < 300; i++) {
        siginfo_t info;
        pid_t child = fork();
        if (child == 0) {
            _exit(0);
        }
        check(child < 0 ? -1 : waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
    }
    say_ready();
    wait_for_ever();
}

/* --- connections -------------------------------------------------------------------------- */

static void close_wait(void) {
    struct sockaddr_in address;
    int listener = listen_here(16, &address);
    for (int i = 0; i < 100; i++) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        check(connect(client, (struct sockaddr *)&address, sizeof address));
        check(accept(listener, NULL, NULL) < 0 ? -1 : 0);
        check(close(client));
    }
    say_ready();
    wait_for_ever();
}

static void server(void) {
    struct sockaddr_in address;
    int listener = listen_here(16, &address);
    say_ready();
    (void)accept(listener, NULL, NULL);
}

/* A backlog of n has room for n + 1 connections; the SYN of the next is dropped. */
static void fill_backlog(int backlog, struct sockaddr_in *ret_address) {
    (void)listen_here(backlog, ret_address);
    for (int i = 0; i <= backlog; i++) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        check(connect(client, (struct sockaddr *)ret_address, sizeof *ret_address));
    }
    tell("port=%d", ntohs(ret_address->sin_port));
}

static void tcp_accept_queue(void) {
    struct sockaddr_in address;
    fill_backlog(4, &address);
    say_ready();
    wait_for_ever();
}

static struct sockaddr_in full_server;

static void keep_backlog_full(void) {
    fill_backlog(1, &full_server);
    check(write(ends[1], &full_server, sizeof full_server) == sizeof full_server ? 0 : -1);
}

static void connect_to_full(void) {
    check(pipe(ends));
    tell("peer=%d", (int)start_child(keep_backlog_full));
    check(read(ends[0], &full_server, sizeof full_server) == sizeof full_server ? 0 : -1);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    say_ready();
    (void)connect(client, (struct sockaddr *)&full_server, sizeof full_server);
}

static const struct sockaddr_un unix_address = {.sun_family = AF_UNIX, .sun_path = "full.socket"};

static void fill_unix_backlog(void) {
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(bind(listener, (const struct sockaddr *)&unix_address, sizeof unix_address));
    check(listen(listener, 4));
    for (int i = 0; i <= 4; i++) {
        int client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        check(connect(client, (const struct sockaddr *)&unix_address, sizeof unix_address));
    }
}

static void unix_accept_queue(void) {
    fill_unix_backlog();
    say_ready();
    wait_for_ever();
}

static void listen_only(void) {
    (void)listen_here(4, &full_server);
    check(write(ends[1], &full_server, sizeof full_server) == sizeof full_server ? 0 : -1);
}

static void listen_only_unix(void) {
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(bind(listener, (const struct sockaddr *)&unix_address, sizeof unix_address));
    check(listen(listener, 4));
    check(write(ends[1], "", 1) == 1 ? 0 : -1);
}

static void keep_unix_backlog_full(void) {
    fill_unix_backlog();
    check(write(ends[1], "", 1) == 1 ? 0 : -1);
}

static void connect_to_full_unix(void) {
    char byte;
    check(pipe(ends));
    tell("peer=%d", (int)start_child(keep_unix_backlog_full));
    check(read(ends[0], &byte, 1) == 1 ? 0 : -1);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    say_ready();
    (void)connect(client, (const struct sockaddr *)&unix_address, sizeof unix_address);
}

/* The kernel has accepted the connection; the server never does. */
static void not_accepted(void) {
    char byte;
    check(pipe(ends));
    tell("peer=%d", (int)start_child(listen_only));
    check(read(ends[0], &full_server, sizeof full_server) == sizeof full_server ? 0 : -1);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(client, (struct sockaddr *)&full_server, sizeof full_server));
    say_ready();
    (void)!read(client, &byte, 1);
}

static void not_accepted_unix(void) {
    char byte;
    check(pipe(ends));
    tell("peer=%d", (int)start_child(listen_only_unix));
    check(read(ends[0], &byte, 1) == 1 ? 0 : -1);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    check(connect(client, (const struct sockaddr *)&unix_address, sizeof unix_address));
    say_ready();
    (void)!read(client, &byte, 1);
}

static void pipe_full(void) {
    static char block[1 << 20];
    check(pipe(ends));
    pid_t reader = start_child(wait_for_ever);
    check(close(ends[0]));
    tell("peer=%d", (int)reader);
    say_ready();
    (void)!write(ends[1], block, sizeof block);
}

/* --- states ------------------------------------------------------------------------------- */

/* The parent of a child made by vfork waits for it without being interruptible. */
static void uninterruptible(void) {
    say_ready();
    if (vfork() == 0) {
        wait_for_ever();
    }
}

static void stop_all(void) {
    say_ready();
    check(raise(SIGSTOP));
    wait_for_ever();
}

/* The one to look at is the child. */
static void traced(void) {
    pid_t child = start_child(wait_for_ever);
    check(ptrace(PTRACE_SEIZE, child, NULL, NULL));
    check(ptrace(PTRACE_INTERRUPT, child, NULL, NULL));
    check(waitpid(child, NULL, __WALL) == child ? 0 : -1);
    tell("subject=%d", (int)child);
    tell("tracer=%d", (int)getpid());
    say_ready();
    wait_for_ever();
}

const sick_program sick_peers[] = {{"pipe-peer-stopped", pipe_peer_stopped},
                                   {"unix-peer-stopped", unix_peer_stopped},
                                   {"tcp-peer-stopped", tcp_peer_stopped},
                                   {"epoll-peer-stopped", epoll_peer_stopped},
                                   {"client-stopped", client_stopped},
                                   {"source-stopped", source_stopped},
                                   {"peer-idle", peer_idle},
                                   {"own-pipe-open", own_pipe_open},
                                   {"own-event", own_event},
                                   {"own-event-polled", own_event_polled},
                                   {"own-event-shared", own_event_shared},
                                   {"own-event-of-aio", own_event_of_aio},
                                   {"own-pipe-shared", own_pipe_shared},
                                   {"workers-take-turns", workers_take_turns},
                                   {"posted-by-handler", posted_by_handler},
                                   {"question-not-read", question_not_read},
                                   {"question-not-answered", question_not_answered},
                                   {"question-not-answered-ipv6", question_not_answered_ipv6},
                                   {"subscribed", subscribed},
                                   {"messages-not-read", messages_not_read},
                                   {"input-not-read", input_not_read},
                                   {"listener-not-drained", listener_not_drained},
                                   {"datagrams-not-read", datagrams_not_read},
                                   {"own-client", own_client},
                                   {"input-of-child", input_of_child},
                                   {"client-thinks", client_thinks},
                                   {"chain-to-stopped", chain_to_stopped},
                                   {"chain-to-file-lock", chain_to_file_lock},
                                   {"child-stopped", child_stopped},
                                   {"child-hangs", child_hangs},
                                   {"pipe-circle", pipe_circle},
                                   {"child-fills-pipe", child_fills_pipe},
                                   {"socket-watched", socket_watched},
                                   {"many-zombies", many_zombies},
                                   {"close-wait", close_wait},
                                   {"server", server},
                                   {"tcp-accept-queue", tcp_accept_queue},
                                   {"unix-accept-queue", unix_accept_queue},
                                   {"connect-to-full", connect_to_full},
                                   {"connect-to-full-unix", connect_to_full_unix},
                                   {"not-accepted", not_accepted},
                                   {"not-accepted-unix", not_accepted_unix},
                                   {"pipe-full", pipe_full},
                                   {"uninterruptible", uninterruptible},
                                   {"stopped", stop_all},
                                   {"traced", traced},
                                   {NULL, NULL}};
