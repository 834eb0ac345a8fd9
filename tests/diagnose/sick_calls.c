/* Programs that wait in a call for one object: a FIFO, a queue, a terminal, a semaphore, a file. */
#include "sick.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <mqueue.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int closed_fd;

static void *accept_clients(void *unused) {
    while (accept(closed_fd, NULL, NULL) >= 0) {}
    return unused;
}

/* A server that ends: close(2) does not wake the thread that it waits for. */
static void descriptor_closed(void) {
    struct sockaddr_in address;
    closed_fd = listen_here(4, &address);
    pid_t acceptor = start(accept_clients, NULL, "acceptor");
    tell("acceptor=%d", (int)acceptor);
    await_call(acceptor, SYS_accept);
    check(close(closed_fd));
    say_ready();
    wait_for_ever();
}

static void *accept_alone(void *unused) {
    struct sockaddr_in address;
    check(unshare(CLONE_FILES));
    closed_fd = listen_here(4, &address);
    return accept_clients(unused);
}

/* Healthy: the descriptor is open in the thread's own table alone. */
static void own_descriptors(void) {
    await_call(start(accept_alone, NULL, "acceptor"), SYS_accept);
    say_ready();
    wait_for_ever();
}

static void open_fifo(int access) {
    check(mkfifo("commands", 0600));
    say_ready();
    (void)!open("commands", access);
}

static void fifo_not_read(void) {
    open_fifo(O_WRONLY);
}

static void fifo_not_written(void) {
    open_fifo(O_RDONLY);
}

static mqd_t open_queue(void) {
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[32];
    (void)snprintf(name, sizeof name, "/sick-%d", (int)getpid());
    mqd_t queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    check(queue < 0 ? -1 : 0);
    check(mq_unlink(name));
    return queue;
}

static void queue_full(void) {
    mqd_t queue = open_queue();
    check(mq_send(queue, "job", 3, 0));
    say_ready();
    (void)mq_send(queue, "job", 3, 0);
}

/* Healthy: a worker that waits for its next job. */
static void queue_empty(void) {
    char job[8];
    mqd_t queue = open_queue();
    say_ready();
    (void)mq_receive(queue, job, sizeof job, NULL);
}

static void terminal_stopped(void) {
    int screen = posix_openpt(O_RDWR | O_NOCTTY);
    check(grantpt(screen));
    check(unlockpt(screen));
    int terminal = open(ptsname(screen), O_RDWR | O_NOCTTY);
    check(terminal < 0 ? -1 : 0);
    check(tcflow(terminal, TCOOFF));
    say_ready();
    (void)!write(terminal, "ready\n", 6);
}

static int set;

static void take(void) {
    struct sembuf operation = {.sem_num = 1, .sem_op = -1};
    check(semop(set, &operation, 1));
}

static void take_and_end(void) {
    take();
    exit(0);
}

/* The driver removes the set. */
static void make_set(void) {
    set = semget(IPC_PRIVATE, 2, 0600);
    check(set < 0 ? -1 : 0);
    tell("set=%d", set);
    check(semctl(set, 1, SETVAL, 1));
}

static void semaphore_left(void) {
    make_set();
    pid_t child = start_child(take_and_end);
    check(waitpid(child, NULL, 0) == child ? 0 : -1);
    tell("holder=%d", (int)child);
    say_ready();
    take();
}

static void semaphore_held(void) {
    make_set();
    pid_t child = start_child(take);
    await_call(child, SYS_rt_sigsuspend);
    tell("holder=%d", (int)child);
    say_ready();
    take();
}

static void take_twice(void) {
    take();
    take();
}

/* Healthy: of two workers the one has done the only piece of work, and both wait for more. */
static void semaphore_pool(void) {
    make_set();
    await_call(start_child(take_twice), SYS_semtimedop);
    say_ready();
    take();
}

/* A server of a file system that has answered the first request, as it has to, and no other. */
static int connection;

static void serve(void) {
    static char request[1 << 16];
    const struct fuse_in_header *header = (const void *)request;
    struct {
        struct fuse_out_header header;
        struct fuse_init_out init;
    } reply = {.header = {.len = sizeof reply},
               .init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096}};
    check(read(connection, request, sizeof request) > 0 ? 0 : -1);
    reply.header.unique = header->unique;
    check(write(connection, &reply, sizeof reply) == sizeof reply ? 0 : -1);
    wait_for_ever();
}

static void file_not_served(void) {
    char options[96];
    connection = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    check(connection < 0 ? -1 : 0);
    (void)snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0",
                   connection);
    check(mount("nas:/export", "mounted", "fuse.sick", 0, options));
    pid_t server = start_child(serve);
    check(close(connection));
    tell("server=%d", (int)server);
    await_call(server, SYS_rt_sigsuspend);
    say_ready();
    (void)!open("mounted/data/prices.csv", O_RDONLY);
}

const sick_program sick_calls[] = {{"descriptor-closed", descriptor_closed},
                                   {"own-descriptors", own_descriptors},
                                   {"fifo-not-read", fifo_not_read},
                                   {"fifo-not-written", fifo_not_written},
                                   {"queue-full", queue_full},
                                   {"queue-empty", queue_empty},
                                   {"terminal-stopped", terminal_stopped},
                                   {"semaphore-left", semaphore_left},
                                   {"semaphore-held", semaphore_held},
                                   {"semaphore-pool", semaphore_pool},
                                   {"file-not-served", file_not_served},
                                   {NULL, NULL}};
