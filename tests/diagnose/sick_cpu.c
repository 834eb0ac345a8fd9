/* Programs that use a processor too much, or do not get one. */
#include "sick.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Names that a finding can have: they are called, and call. */
__attribute__((noinline)) static void decode_pixels(void) {
    for (volatile uint64_t i = 0;; i++) {}
}

__attribute__((noinline)) static void decode_picture(void) {
    decode_pixels();
    __asm__ volatile(""); /* not a tail call */
}

static void spin(void) {
    say_ready();
    decode_picture();
}

static void *decode_in_thread(void *unused) {
    decode_picture();
    return unused;
}

static void spin_in_thread(void) {
    tell("spinner=%d", (int)start(decode_in_thread, NULL, "decoder"));
    say_ready();
    wait_for_ever();
}

/* Uses a CPU for that long. */
static void *work(void *milliseconds) {
    struct timespec now;
    int64_t end_ms = 0, now_ms;
    do {
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
        end_ms = end_ms == 0 ? now_ms + (intptr_t)milliseconds : end_ms;
    } while (now_ms < end_ms);
    return NULL;
}

static void work_in_turns(intptr_t own_ms, intptr_t ended_ms) {
    say_ready();
    for (;;) {
        pthread_t thread;
        (void)work((void *)own_ms);
        check(pthread_create(&thread, NULL, work, (void *)ended_ms));
        check(pthread_join(thread, NULL));
    }
}

static void threads_come_and_go(void) {
    work_in_turns(1, 20);
}

/* The thread that stays does most of the work. */
static void threads_help(void) {
    work_in_turns(60, 30);
}

static void spin_in_library(void) {
    tell("spinner=%d", (int)start(sick_library_spin, NULL, "filter"));
    say_ready();
    wait_for_ever();
}

static pthread_spinlock_t spin_lock;

static void spin_on_lock(void) {
    check(pthread_spin_init(&spin_lock, PTHREAD_PROCESS_PRIVATE));
    check(pthread_spin_lock(&spin_lock));
    say_ready();
    check(pthread_spin_lock(&spin_lock));
}

static void poll_without_timeout(void) {
    say_ready();
    for (;;) {
        (void)poll(NULL, 0, 0);
    }
}

/* A child that fails at once, and the next one. */
static void fork_again(void) {
    say_ready();
    for (;;) {
        pid_t child = fork();
        if (child == 0) {
            _exit(3);
        }
        check(waitpid(child, NULL, 0) == child ? 0 : -1);
    }
}

static struct sockaddr_in server;

static void ask_for_ever(void) {
    char byte;
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        /* Nothing of it stays in the kernel, where a capture would have to read it. */
        check(setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger)));
        check(connect(fd, (struct sockaddr *)&server, sizeof server));
        (void)read(fd, &byte, 1);
        (void)close(fd);
    }
}

/* A server that begins a child for each request, of which each says that it found nothing. */
static void fork_for_requests(void) {
    int listener = listen_here(8, &server);
    (void)start_child(ask_for_ever);
    say_ready();
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        pid_t child = fork();
        if (child == 0) {
            _exit(1);
        }
        check(waitpid(child, NULL, 0) == child ? 0 : -1);
        (void)close(fd);
    }
}

/* As of one that takes the end of a file for no data yet. */
static void read_end_of_file(void) {
    char byte;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    say_ready();
    while (read(fd, &byte, 1) == 0) {}
}

static void yield(void) {
    say_ready();
    for (;;) {
        (void)sched_yield();
    }
}

/* A listener that was closed: each attempt is refused at once. */
static void connect_again(void) {
    struct sockaddr_in address;
    check(close(listen_here(1, &address)));
    say_ready();
    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        (void)connect(fd, (struct sockaddr *)&address, sizeof address);
        (void)close(fd);
    }
}

/* The other end was closed, and this one is asked for again and again. */
static void poll_closed_pipe(void) {
    int ends[2];
    check(pipe(ends));
    check(close(ends[1]));
    say_ready();
    for (;;) {
        struct pollfd end = {.fd = ends[0], .events = POLLIN};
        (void)poll(&end, 1, -1);
    }
}

/* A byte that nobody takes. */
static void wait_for_what_is_there(void) {
    int ends[2], epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    check(pipe(ends));
    check(write(ends[1], "x", 1) == 1 ? 0 : -1);
    check(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event));
    say_ready();
    for (;;) {
        (void)epoll_wait(epoll, &event, 1, -1);
    }
}

static void read_without_waiting(void) {
    int ends[2];
    char byte;
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends));
    say_ready();
    while (read(ends[0], &byte, 1) < 0) {}
}

/* A connection waits, and there is no descriptor left for it. */
static void accept_without_descriptors(void) {
    struct sockaddr_in address;
    struct rlimit limit = {32, 32};
    int listener = listen_here(8, &address);
    check(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address));
    check(setrlimit(RLIMIT_NOFILE, &limit));
    while (dup(listener) >= 0) {}
    say_ready();
    for (;;) {
        struct pollfd end = {.fd = listener, .events = POLLIN};
        (void)poll(&end, 1, -1);
        (void)accept(listener, NULL, NULL);
    }
}

static void ask_for_child(void) {
    (void)start_child(wait_for_ever);
    say_ready();
    while (waitpid(-1, NULL, WNOHANG) == 0) {}
}

/* The same error again and again. */
static void log_again(void) {
    static const char line[] = "cannot accept a connection: Too many open files\n";
    int fd = open("log.txt", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    say_ready();
    while (pwrite(fd, line, sizeof line - 1, 0) > 0) {}
}

static void work_a_little(void) {
    say_ready();
    for (;;) {
        for (volatile uint64_t i = 0; i < 100000; i++) {}
        (void)usleep(10000);
    }
}

/* As one that looks for work, and has none. */
__attribute__((noinline)) static void look_again(void) {
    for (;;) {
        (void)usleep(20);
    }
}

static void *look_in_thread(void *unused) {
    look_again();
    return unused;
}

static void look_for_work(void) {
    tell("looker=%d", (int)start(look_in_thread, NULL, "looker"));
    say_ready();
    wait_for_ever();
}

static void read_timer(void) {
    struct itimerspec often = {{0, 200000}, {0, 200000}};
    uint64_t count;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    check(timerfd_settime(timer, 0, &often, NULL));
    say_ready();
    while (read(timer, &count, sizeof count) > 0) {}
}

/* A computation that says how far it is. */
static void compute(void) {
    say_ready();
    for (unsigned step = 0;; step++) {
        for (volatile uint64_t i = 0; i < 1000000; i++) {}
        (void)printf("step %u\n", step);
        (void)fflush(stdout);
    }
}

static void poll_for_work(void) {
    int ends[2];
    check(pipe(ends));
    say_ready();
    for (;;) {
        struct pollfd end = {.fd = ends[0], .events = POLLIN};
        (void)poll(&end, 1, 1);
    }
}

static void on_alarm(int number) {
    (void)number;
}

static void work_on_alarm(int number) {
    for (volatile int i = 0; i < 2000; i++) {}
    (void)number;
}

/* A timer of which each tick runs a handler. */
static void set_alarm(int interval_us, void (*handler)(int)) {
    const struct itimerval often = {.it_interval = {.tv_usec = interval_us},
                                    .it_value = {.tv_usec = interval_us}};
    const struct sigaction action = {.sa_handler = handler};
    check(sigaction(SIGALRM, &action, NULL));
    check(setitimer(ITIMER_REAL, &often, NULL));
    say_ready();
    wait_for_ever();
}

static void alarm_often(void) {
    set_alarm(1000, on_alarm);
}

/* It hardly sleeps in between. */
static void alarm_too_often(void) {
    set_alarm(20, work_on_alarm);
}

static void signal_often(void) {
    while (kill(getppid(), SIGUSR1) == 0) {
        (void)usleep(500);
    }
}

/* Healthy: another process asks it so often, by a signal. */
static void signalled_often(void) {
    const struct sigaction action = {.sa_handler = on_alarm};
    check(sigaction(SIGUSR1, &action, NULL));
    (void)start_child(signal_often);
    say_ready();
    wait_for_ever();
}

static int questions[2];

static void ask_often(void) {
    char byte = 0;
    while (write(questions[1], &byte, 1) == 1 && read(questions[1], &byte, 1) == 1) {}
}

/* A server whose one client asks as soon as it has its answer. */
static void answer_often(void) {
    struct pollfd end = {.events = POLLIN};
    char byte;
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, questions));
    (void)start_child(ask_often);
    end.fd = questions[0];
    say_ready();
    while (poll(&end, 1, 60000) == 1 && read(end.fd, &byte, 1) == 1) {
        check(write(end.fd, &byte, 1) == 1 ? 0 : -1);
    }
}

static void compete(void) {
    for (volatile uint64_t i = 0;; i++) {}
}

/* Byte by byte. */
static void write_bits(void) {
    int file = open("export.csv", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    say_ready();
    for (unsigned i = 0; write(file, "1", 1) == 1; i++) {
        if (i % (1 << 24) == 0) {
            check(ftruncate(file, 0));
        }
    }
}

/* Of a full disk it is told again and again, as by a log library that does not give up. */
static void write_in_vain(void) {
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    say_ready();
    while (write(full, "a line\n", 7) < 0) {}
}

/* All on one processor, and this one the least important. */
static void starve_with(int policy) {
    cpu_set_t one;
    CPU_ZERO(&one);
    check(sched_getaffinity(0, sizeof one, &one));
    size_t processor = 0;
    while (!CPU_ISSET(processor, &one)) {
        processor++;
    }
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    check(sched_setaffinity(0, sizeof one, &one));
    say_ready();
    for (int i = 0; i < 4; i++) {
        (void)start_child(compete);
    }
    const struct sched_param none = {.sched_priority = 0};
    check(policy == SCHED_IDLE ? sched_setscheduler(0, policy, &none)
                               : setpriority(PRIO_PROCESS, 0, 19));
    decode_picture();
}

static void starve(void) {
    starve_with(SCHED_OTHER);
}

static void starve_idle(void) {
    starve_with(SCHED_IDLE);
}

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t shared_by_two = PTHREAD_MUTEX_INITIALIZER;

/* The lock is free only while it goes from one to the next. */
static void *lock_always(void *mutex) {
    for (;;) {
        check(pthread_mutex_lock(mutex));
        (void)usleep(2000);
        check(pthread_mutex_unlock(mutex));
    }
    return NULL;
}

/* The first threads share another lock. */
static void contend(void) {
    pid_t last = 0;
    for (int i = 0; i < 2; i++) {
        (void)start(lock_always, &shared_by_two, "pair");
    }
    for (int i = 0; i < 16; i++) { /* each has its turn within a window, on a busy machine too */
        last = start(lock_always, &contended, "worker");
    }
    await_call(last, SYS_futex);
    say_ready();
    wait_for_ever();
}

const sick_program sick_cpu[] = {{"spin", spin},
                                 {"spin-in-thread", spin_in_thread},
                                 {"fork-loop", fork_again},
                                 {"forks-for-requests", fork_for_requests},
                                 {"spin-in-library", spin_in_library},
                                 {"spin-on-lock", spin_on_lock},
                                 {"threads-come-and-go", threads_come_and_go},
                                 {"threads-help", threads_help},
                                 {"poll-spin", poll_without_timeout},
                                 {"read-spin", read_end_of_file},
                                 {"yield-spin", yield},
                                 {"connect-spin", connect_again},
                                 {"hangup-spin", poll_closed_pipe},
                                 {"epoll-spin", wait_for_what_is_there},
                                 {"again-spin", read_without_waiting},
                                 {"accept-spin", accept_without_descriptors},
                                 {"child-spin", ask_for_child},
                                 {"log-spin", log_again},
                                 {"work-a-little", work_a_little},
                                 {"look-for-work", look_for_work},
                                 {"poll-for-work", poll_for_work},
                                 {"timer-often", read_timer},
                                 {"progress", compute},
                                 {"answer-often", answer_often},
                                 {"alarm-often", alarm_often},
                                 {"alarm-too-often", alarm_too_often},
                                 {"signalled-often", signalled_often},
                                 {"byte-by-byte", write_bits},
                                 {"write-in-vain", write_in_vain},
                                 {"starved", starve},
                                 {"starved-idle", starve_idle},
                                 {"contended", contend},
                                 {NULL, NULL}};
