/*
 * What one snapshot costs, by the number of threads: of our own process, and of another one.
 *
 *   bench_sampler THREADS                       prints the medians in microseconds
 *   bench_sampler --target THREADS              has threads and waits, for another program to read
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/idle_threads.h"
#include "platform/task.h"

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static pid_t start_target(unsigned thread_count) {
    int ready[2];
    char byte = 0;
    if (pipe(ready) != 0) {
        fail("pipe");
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        start_idle_threads(thread_count);
        (void)!write(ready[1], &byte, 1);
        for (;;) {
            (void)pause();
        }
    }
    if (pid < 0 || read(ready[0], &byte, 1) != 1) {
        fail("cannot start the other process");
    }
    return pid;
}

typedef struct snapshot_context {
    bp_task *task;
    bool with_names, rereads;
    unsigned thread_count;
} snapshot_context;

static void take_snapshot(const snapshot_context *what) {
    bp_task_snapshot snapshot = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (what->rereads) {
        bp_task_reread_names(what->task);
    }
    if (bp_task_snapshot_take(what->task, what->with_names, &snapshot, &error) != BUGPACK_OK ||
        snapshot.thread_count != what->thread_count) {
        (void)fprintf(stderr, "a snapshot of %zu threads: %s\n", snapshot.thread_count,
                      error.message);
        exit(1);
    }
    bp_task_snapshot_release(&snapshot);
}

static int compare_times(const void *a, const void *b) {
    const uint64_t *left = a;
    const uint64_t *right = b;
    return (*left > *right) - (*left < *right);
}

/* The median of some runs after one that warms up, in microseconds. */
static double measure(const snapshot_context *context) {
    enum { RUNS = 15 };
    uint64_t times_ns[RUNS];
    take_snapshot(context);
    for (size_t i = 0; i < RUNS; i++) {
        uint64_t begin_ns = bp_clock_monotonic_ns();
        take_snapshot(context);
        times_ns[i] = bp_clock_monotonic_ns() - begin_ns;
    }
    qsort(times_ns, RUNS, sizeof times_ns[0], compare_times);
    return (double)times_ns[RUNS / 2] / 1000.0;
}

static double measure_snapshots(pid_t pid, bool with_names, bool rereads, unsigned thread_count) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    snapshot_context context = {
        .with_names = with_names, .rereads = rereads, .thread_count = thread_count};
    if (bp_task_open(pid, false, &context.task, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    double median_us = measure(&context);
    bp_task_close(context.task);
    return median_us;
}

int main(int argument_count, char **arguments) {
    bool is_target = argument_count == 3 && strcmp(arguments[1], "--target") == 0;
    unsigned long thread_count =
        argument_count > 1 ? strtoul(arguments[argument_count - 1], NULL, 10) : 0;
    if ((argument_count != 2 && !is_target) || thread_count < 1 || thread_count > 100000) {
        (void)fprintf(stderr, "usage: bench_sampler [--target] THREADS\n");
        return 2;
    }
    if (is_target) {
        start_idle_threads((unsigned)thread_count);
        (void)puts("ready");
        (void)fflush(stdout);
        (void)getchar();
        return 0;
    }
    pid_t other = start_target((unsigned)thread_count);
    double other_us = measure_snapshots(other, false, false, (unsigned)thread_count);
    double other_names_us = measure_snapshots(other, true, false, (unsigned)thread_count);
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    start_idle_threads((unsigned)thread_count);
    double own_us = measure_snapshots(0, true, false, (unsigned)thread_count);
    double own_reread_us = measure_snapshots(0, true, true, (unsigned)thread_count);
    (void)printf("%.0f %.0f %.0f %.0f\n", own_us, own_reread_us, other_us, other_names_us);
    return 0;
}
