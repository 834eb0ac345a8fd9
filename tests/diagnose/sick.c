/*
 * Programs with one sickness each, and healthy ones that look a little like them:
 *
 *     sick NAME
 *
 * Each says "ready" on standard output when its state is reached, and stays in it; those that end
 * do so by themselves.
 */
#define _GNU_SOURCE /* pthread_setname_np */
#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void say_ready(void) {
    (void)puts("ready");
    (void)fflush(stdout);
}

static void wait_for_ever(void) {
    for (;;) {
        (void)pause();
    }
}

static void check(int result) {
    if (result != 0) {
        perror("sick");
        exit(2);
    }
}

static void start(void *(*run)(void *), const char *name) {
    pthread_t thread;
    pthread_attr_t attributes;
    check(pthread_attr_init(&attributes));
    check(pthread_attr_setstacksize(&attributes, 64 << 10));
    check(pthread_create(&thread, &attributes, run, NULL));
    check(pthread_setname_np(thread, name));
    check(pthread_attr_destroy(&attributes));
}

static void *pause_in_thread(void *unused) {
    wait_for_ever();
    return unused;
}

/* --- locks -------------------------------------------------------------------------------- */

static void *hold_lock(void *unused) {
    check(pthread_mutex_lock(&lock));
    (void)sleep(1000);
    return unused;
}

static void *want_lock(void *unused) {
    check(pthread_mutex_lock(&lock));
    check(pthread_mutex_unlock(&lock));
    return unused;
}

static void lock_held(void) {
    start(hold_lock, "holder");
    (void)usleep(100000);
    for (int i = 0; i < 6; i++) {
        start(want_lock, "worker");
    }
    say_ready();
    wait_for_ever();
}

static void *hold_outer_want_lock(void *unused) {
    check(pthread_mutex_lock(&outer));
    return want_lock(unused);
}

static void *want_outer(void *unused) {
    check(pthread_mutex_lock(&outer));
    return unused;
}

/* Those that wait for the second lock wait for the holder of the first. */
static void lock_chain(void) {
    start(hold_lock, "holder");
    (void)usleep(100000);
    start(hold_outer_want_lock, "middle");
    (void)usleep(100000);
    start(want_outer, "last");
    say_ready();
    wait_for_ever();
}

static void *lock_and_work(void *unused) {
    for (;;) {
        check(pthread_mutex_lock(&lock));
        (void)usleep(500);
        check(pthread_mutex_unlock(&lock));
        (void)usleep(500);
    }
    return unused;
}

static void lock_in_use(void) {
    for (int i = 0; i < 4; i++) {
        start(lock_and_work, "worker");
    }
    say_ready();
    wait_for_ever();
}

static void *wait_for_work(void *unused) {
    check(pthread_mutex_lock(&lock));
    for (;;) {
        check(pthread_cond_wait(&never, &lock));
    }
    return unused;
}

static void idle_pool(void) {
    for (int i = 0; i < 16; i++) {
        start(wait_for_work, "pool");
    }
    say_ready();
    wait_for_ever();
}

/* --- processors --------------------------------------------------------------------------- */

static void spin(void) {
    say_ready();
    for (volatile uint64_t i = 0;; i++) {}
}

static void poll_without_timeout(void) {
    say_ready();
    for (;;) {
        (void)poll(NULL, 0, 0);
    }
}

static void work_a_little(void) {
    say_ready();
    for (;;) {
        for (volatile uint64_t i = 0; i < 100000; i++) {}
        (void)usleep(10000);
    }
}

static void many_threads(void) {
    for (int i = 0; i < 600; i++) {
        start(pause_in_thread, "connection");
    }
    say_ready();
    wait_for_ever();
}

/* --- peers -------------------------------------------------------------------------------- */

static void read_from_child(int signal_number) {
    int ends[2];
    char byte;
    check(pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        wait_for_ever();
    }
    (void)close(ends[1]);
    if (signal_number != 0) {
        check(kill(child, signal_number));
        (void)waitpid(child, NULL, WUNTRACED);
    }
    say_ready();
    (void)!read(ends[0], &byte, 1);
}

static void peer_stopped(void) {
    read_from_child(SIGSTOP);
}

static void peer_waits(void) {
    read_from_child(0);
}

static int listen_here(struct sockaddr_in *address) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof *address;
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    check(bind(listener, (struct sockaddr *)address, size));
    check(listen(listener, 16));
    check(getsockname(listener, (struct sockaddr *)address, &size));
    return listener;
}

static void close_wait(void) {
    struct sockaddr_in address;
    int listener = listen_here(&address);
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
    int listener = listen_here(&address);
    say_ready();
    (void)accept(listener, NULL, NULL);
}

/* The parent of a child made by vfork waits for it without being interruptible. */
static void uninterruptible(void) {
    say_ready();
    if (vfork() == 0) {
        wait_for_ever();
    }
}

/* --- resources ---------------------------------------------------------------------------- */

static void descriptors(void) {
    struct rlimit limit = {64, 64};
    check(setrlimit(RLIMIT_NOFILE, &limit));
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {}
    check(close(63));
    say_ready();
    wait_for_ever();
}

static void deleted_file(void) {
    char name[] = "sick-XXXXXX";
    int fd = mkstemp(name);
    check(unlink(name));
    check(ftruncate(fd, (off_t)128 << 20));
    say_ready();
    wait_for_ever();
}

static void stop_all(void) {
    say_ready();
    check(raise(SIGSTOP));
    wait_for_ever();
}

/* --- ends --------------------------------------------------------------------------------- */

static void abort_by_assert(void) {
    int answer = 41;
    assert(answer == 42);
}

static void free_twice(void) {
    char *volatile block = malloc(16);
    char *volatile again = block;
    free(block);
    free(again);
}

static void fail_with_words(void) {
    (void)fputs("cannot open /etc/viewer.conf: Permission denied\n", stderr);
    exit(3);
}

static void call_nothing(void) {
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

int main(int argument_count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {{"lock-held", lock_held},
                    {"lock-chain", lock_chain},
                    {"lock-in-use", lock_in_use},
                    {"idle-pool", idle_pool},
                    {"spin", spin},
                    {"poll-spin", poll_without_timeout},
                    {"work-a-little", work_a_little},
                    {"many-threads", many_threads},
                    {"peer-stopped", peer_stopped},
                    {"peer-waits", peer_waits},
                    {"close-wait", close_wait},
                    {"server", server},
                    {"uninterruptible", uninterruptible},
                    {"descriptors", descriptors},
                    {"deleted-file", deleted_file},
                    {"deleted-executable", wait_for_ever},
                    {"stopped", stop_all},
                    {"assert", abort_by_assert},
                    {"double-free", free_twice},
                    {"words", fail_with_words},
                    {"null", call_nothing}};
    for (size_t i = 0; argument_count == 2 && i < sizeof programs / sizeof programs[0]; i++) {
        if (strcmp(arguments[1], programs[i].name) == 0) {
            programs[i].run();
            return 0;
        }
    }
    return 2;
}
