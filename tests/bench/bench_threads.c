/*
 * What threads.json costs: the threads of a process wait for one mutex, so that each owner is read
 * twice, too.
 *
 *   bench_threads THREADS    median µs of CPU time, of 15: reading the same files plainly, our own
 *                            threads, those of another process, and printing them
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/threads.h"

enum { round_count = 15, stack_bytes = 64 * 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_mutex(void *unused) {
    (void)pthread_mutex_lock(&mutex);
    return unused;
}

static void fail(const char *what) {
    (void)fprintf(stderr, "%s failed\n", what);
    exit(1);
}

static size_t take(pid_t pid, bp_process_threads *process) {
    size_t waiting_count = 0;
    if (bp_threads_read(pid, UINT64_MAX, process, NULL) != BUGPACK_OK) {
        fail("reading the threads");
    }
    for (size_t i = 0; i < process->thread_count; i++) {
        waiting_count += process->threads[i].is_waiting;
    }
    return waiting_count;
}

/* Returns when all of them wait. */
static void start_threads(size_t count) {
    pthread_attr_t attributes;
    bp_process_threads process;
    size_t waiting_count = 0;
    (void)pthread_mutex_lock(&mutex);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    for (size_t i = 1; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, wait_for_mutex, NULL) != 0) {
            fail("starting a thread");
        }
    }
    while (waiting_count < count - 1) {
        waiting_count = take(0, &process);
        bp_process_threads_release(&process);
    }
}

static void read_plainly(pid_t pid, const bp_process_threads *process) {
    static const char *const names[] = {"stat", "status", "syscall", "wchan", "stack"};
    for (size_t i = 0; i < process->thread_count; i++) {
        for (size_t name = 0; name < sizeof names / sizeof names[0]; name++) {
            char path[64];
            char text[4096];
            (void)snprintf(path, sizeof path, "/proc/%d/task/%llu/%s", (int)pid,
                           (unsigned long long)process->threads[i].tid, names[name]);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            if (fd >= 0) { /* stack is root's */
                (void)!read(fd, text, sizeof text);
                (void)close(fd);
            }
        }
    }
}

static int compare(const void *one, const void *other) {
    uint64_t left = *(const uint64_t *)one;
    uint64_t right = *(const uint64_t *)other;
    return (left > right) - (left < right);
}

static double median_us(uint64_t times_ns[round_count]) {
    qsort(times_ns, round_count, sizeof times_ns[0], compare);
    return (double)times_ns[round_count / 2] / 1000;
}

static double measure_own(void) {
    uint64_t times_ns[round_count];
    for (size_t i = 0; i < round_count; i++) {
        bp_process_threads process;
        uint64_t began_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        (void)take(0, &process);
        times_ns[i] = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
        bp_process_threads_release(&process);
    }
    return median_us(times_ns);
}

/* Alternating, so that a busy machine is busy for all of them. */
static void measure(pid_t pid, size_t count, double own_us) {
    uint64_t plain_ns[round_count], read_ns[round_count], print_ns[round_count];
    for (size_t i = 0; i < round_count; i++) {
        bp_process_threads process;
        bp_buffer text;
        uint64_t began_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        if (take(pid, &process) != count - 1) {
            fail("finding all that wait");
        }
        uint64_t read_at_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        bp_buffer_init(&text, (size_t)256 << 20);
        if (bp_threads_print(&process, 1, &(bp_fd_search){.was_needed = false}, &text, NULL) !=
            BUGPACK_OK) {
            fail("printing");
        }
        uint64_t printed_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        read_plainly(pid, &process);
        plain_ns[i] = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - printed_ns;
        print_ns[i] = printed_ns - read_at_ns;
        read_ns[i] = read_at_ns - began_ns;
        bp_buffer_release(&text);
        bp_process_threads_release(&process);
    }
    (void)printf("| %zu | %.0f | %.0f | %.0f | %.0f |\n", count, median_us(plain_ns), own_us,
                 median_us(read_ns), median_us(print_ns));
}

int main(int argument_count, char **arguments) {
    size_t count = argument_count == 2 ? strtoul(arguments[1], NULL, 10) : 0;
    int ready[2];
    double own_us = 0;
    if (count < 2 || count > 30000 || pipe(ready) != 0) {
        (void)fputs("usage: bench_threads THREADS\n", stderr);
        return 2;
    }
    pid_t pid = fork();
    if (pid == 0) {
        start_threads(count);
        own_us = measure_own();
        bool is_written = write(ready[1], &own_us, sizeof own_us) == sizeof own_us;
        return is_written ? pause() : 1;
    }
    (void)close(ready[1]);
    if (pid < 0 || read(ready[0], &own_us, sizeof own_us) != sizeof own_us) {
        fail("starting the process");
    }
    measure(pid, count, own_us);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return 0;
}
