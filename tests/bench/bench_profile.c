/*
 * What a profile of the seconds before costs a host:
 *
 *     bench_profile THREADS HZ SECONDS
 *
 * So many threads wake ten times a second for a moment, as those of a server do, and one more uses
 * a processor for half of the time. Prints what the threads did, what the process used, and what
 * the opening took and holds. HZ of 0 is the host without a profile.
 */
#include <bugpack/bugpack.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "support/temp_dir.h"

static atomic_bool must_stop;
static atomic_ulong wake_count;
static volatile unsigned sink;

static double now_ms(clockid_t clock) {
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static atomic_ulong rounds;

static void work(double ms) {
    double until = now_ms(CLOCK_THREAD_CPUTIME_ID) + ms;
    while (now_ms(CLOCK_THREAD_CPUTIME_ID) < until) {
        for (unsigned i = 0; i < 1000; i++) {
            sink = (sink ^ i) * 2654435761u;
        }
        atomic_fetch_add(&rounds, 1);
    }
}

static void *wake_often(void *argument) {
    const struct timespec nap = {.tv_nsec = 100000000};
    while (!atomic_load(&must_stop)) {
        (void)nanosleep(&nap, NULL);
        atomic_fetch_add(&wake_count, 1);
        sink = sink + 1;
    }
    return argument;
}

/* Of that one thread. */
static atomic_ulong half_ns;

static void *work_half(void *argument) {
    const struct timespec nap = {.tv_nsec = 5000000};
    while (!atomic_load(&must_stop)) {
        work(5);
        (void)nanosleep(&nap, NULL);
        atomic_store(&half_ns, (unsigned long)(now_ms(CLOCK_THREAD_CPUTIME_ID) * 1e6));
    }
    return argument;
}

static unsigned count_descriptors(void) {
    unsigned count = 0;
    for (int fd = 0; fd < 65536; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

int main(int argument_count, char **arguments) {
    static const struct rlimit many = {65536, 65536};
    static bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    temp_dir dir;
    if (argument_count != 4 || !temp_dir_make(&dir)) {
        return 2;
    }
    size_t count = strtoul(arguments[1], NULL, 10);
    double seconds = strtod(arguments[3], NULL);
    pthread_t *threads = calloc(count + 1, sizeof *threads);
    pthread_attr_t small;
    (void)setrlimit(RLIMIT_NOFILE, &many);
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 65536);
    for (size_t i = 0; threads != NULL && i <= count; i++) {
        if (pthread_create(&threads[i], &small, i == 0 ? work_half : wake_often, NULL) != 0) {
            return 1;
        }
    }
    bugpack_session *session = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "bench-profile";
    options.report_dir = dir.path;
    options.recorder.is_in_memory = true;
    options.recorder.history_interval_ms = BUGPACK_OFF; /* its samples are not what is measured */
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.profile_hz = strtoul(arguments[2], NULL, 10);
    unsigned before = count_descriptors();
    double began_ms = now_ms(CLOCK_MONOTONIC);
    if (bugpack_open(&options, &session, NULL) != BUGPACK_OK) {
        return 1;
    }
    double open_ms = now_ms(CLOCK_MONOTONIC) - began_ms;
    unsigned held = count_descriptors() - before;
    unsigned long wakes = atomic_load(&wake_count);
    double cpu_ms = now_ms(CLOCK_PROCESS_CPUTIME_ID), busy_ms = (double)atomic_load(&half_ns) / 1e6;
    unsigned long done = atomic_load(&rounds);
    began_ms = now_ms(CLOCK_MONOTONIC);
    (void)usleep((useconds_t)(seconds * 1e6));
    busy_ms = (double)atomic_load(&half_ns) / 1e6 - busy_ms;
    done = atomic_load(&rounds) - done;
    cpu_ms = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_ms - busy_ms;
    double took_ms = now_ms(CLOCK_MONOTONIC) - began_ms;
    wakes = atomic_load(&wake_count) - wakes;
    double report_ms = now_ms(CLOCK_MONOTONIC);
    (void)bugpack_report(session, NULL, &result, NULL);
    report_ms = now_ms(CLOCK_MONOTONIC) - report_ms;
    double close_ms = now_ms(CLOCK_MONOTONIC);
    bugpack_close(session);
    close_ms = now_ms(CLOCK_MONOTONIC) - close_ms;
    (void)printf(
        "threads %zu hz %s: open %.2f ms, descriptors %u, CPU of those that wake %.3f %%, "
        "%.2f us a wake, %.1f rounds a ms of the busy one, report %.0f ms, close %.1f ms\n",
        count, arguments[2], open_ms, held, 100 * cpu_ms / took_ms, 1000 * cpu_ms / (double)wakes,
        (double)done / busy_ms, report_ms, close_ms);
    atomic_store(&must_stop, true);
    for (size_t i = 0; i <= count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    free(threads);
    temp_dir_remove(&dir);
    return 0;
}
