/*
 * What one snapshot costs, by the number of threads: our own process, another process, and the
 * plain way that most monitors go, which is to read stat and comm of every thread.
 *
 *   bench_sampler THREADS                       prints the medians in microseconds
 *   bench_sampler --target THREADS              has threads and waits, for another program to read
 */
#include <dirent.h>
#include <fcntl.h>
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

/* One of the things to measure. */
typedef void measured(void *context);

typedef struct snapshot_context {
    bp_task *task;
    bool with_names, rereads;
    unsigned thread_count;
} snapshot_context;

static void take_snapshot(void *context) {
    const snapshot_context *what = context;
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

static void read_plainly(const char *directory, const char *tid, const char *file) {
    char path[512];
    char text[2048];
    (void)snprintf(path, sizeof path, "%s/%s/%s", directory, tid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text) <= 0) {
        fail(path);
    }
    (void)close(fd);
}

/* Only the reading: not even the parsing is counted against the plain way. */
static void go_the_plain_way(void *context) {
    const pid_t *pid = context;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)*pid);
    DIR *directory = opendir(path);
    if (directory == NULL) {
        fail(path);
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] != '.') {
            read_plainly(path, entry->d_name, "stat");
            read_plainly(path, entry->d_name, "comm");
        }
    }
    (void)closedir(directory);
}

static int compare_times(const void *a, const void *b) {
    const uint64_t *left = a;
    const uint64_t *right = b;
    return (*left > *right) - (*left < *right);
}

/* The median of some runs after one that warms up, in microseconds. */
static double measure(measured *run, void *context) {
    enum { RUNS = 15 };
    uint64_t times_ns[RUNS];
    run(context);
    for (size_t i = 0; i < RUNS; i++) {
        uint64_t begin_ns = bp_clock_monotonic_ns();
        run(context);
        times_ns[i] = bp_clock_monotonic_ns() - begin_ns;
    }
    qsort(times_ns, RUNS, sizeof times_ns[0], compare_times);
    return (double)times_ns[RUNS / 2] / 1000.0;
}

static double measure_snapshots(pid_t pid, bool with_names, bool rereads, unsigned thread_count) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    snapshot_context context = {
        .with_names = with_names, .rereads = rereads, .thread_count = thread_count};
    if (bp_task_open(pid, &context.task, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    double median_us = measure(take_snapshot, &context);
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
    double plain_us = measure(go_the_plain_way, &other);
    (void)kill(other, SIGKILL);
    (void)waitpid(other, NULL, 0);
    start_idle_threads((unsigned)thread_count);
    double own_us = measure_snapshots(0, true, false, (unsigned)thread_count);
    double own_reread_us = measure_snapshots(0, true, true, (unsigned)thread_count);
    (void)printf("%.0f %.0f %.0f %.0f %.0f\n", own_us, own_reread_us, other_us, other_names_us,
                 plain_us);
    return 0;
}
