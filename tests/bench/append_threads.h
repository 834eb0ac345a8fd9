/*
 * What an append costs while many threads make some on one ring: a row of a Markdown table. In a
 * header, so that the peer's program needs nothing of ours.
 */
#ifndef TESTS_BENCH_APPEND_THREADS_H
#define TESTS_BENCH_APPEND_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const unsigned thread_counts[] = {1, 2, 4, 16, 64};
enum { threads_max = 64, threads_repeat_count = 45, appends_per_core = 100000 };

typedef void append_fn(void *ring, size_t byte_count);

typedef struct append_threads {
    append_fn *append;
    void *ring;
    unsigned count; /* of each thread */
    pthread_barrier_t barrier;
    atomic_uint started_count;
    _Atomic uint64_t cpu_ns;             /* of all threads */
    _Atomic uint64_t began_ns, ended_ns; /* the first, and the last */
} append_threads;

static uint64_t read_ns(clockid_t id) {
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare_doubles(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return a < b ? -1 : a > b;
}

static void *append_many(void *argument) {
    append_threads *it = argument;
    uint64_t none = 0;
#ifdef __linux__ /* on a core each, because a few milliseconds are not enough to be moved to one   \
                  */
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(atomic_fetch_add(&it->started_count, 1) % (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
            &core);
    (void)pthread_setaffinity_np(pthread_self(), sizeof core, &core);
#endif
    (void)pthread_barrier_wait(&it->barrier);
    uint64_t cpu_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
    (void)atomic_compare_exchange_strong(&it->began_ns, &none, read_ns(CLOCK_MONOTONIC));
    for (unsigned i = 0; i < it->count; i++) {
        it->append(it->ring, 64);
    }
    atomic_store(&it->ended_ns, read_ns(CLOCK_MONOTONIC));
    atomic_fetch_add(&it->cpu_ns, read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    return NULL;
}

/* The time that an append takes on its core: with as many threads as cores, what each thread waits
 * for it. And the time that it computes. */
static void time_threads(unsigned thread_count, append_fn *append, void *ring, double *ret_ns,
                         double *ret_cpu_ns) {
    unsigned core_count = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    unsigned busy_count = thread_count < core_count ? thread_count : core_count;
    append_threads it = {
        .append = append, .ring = ring, .count = appends_per_core * busy_count / thread_count};
    pthread_t threads[threads_max];
    int failed = pthread_barrier_init(&it.barrier, NULL, thread_count);
    for (unsigned i = 0; i < thread_count && failed == 0; i++) {
        failed = pthread_create(&threads[i], NULL, append_many, &it);
    }
    if (failed != 0) {
        (void)fprintf(stderr, "cannot start %u threads\n", thread_count);
        exit(1);
    }
    for (unsigned i = 0; i < thread_count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_barrier_destroy(&it.barrier);
    double total_count = (double)it.count * thread_count;
    *ret_ns = (double)(it.ended_ns - it.began_ns) * busy_count / total_count;
    *ret_cpu_ns = (double)it.cpu_ns / total_count;
}

/* For each number of threads the best time of many tries, and the median of what they compute. */
static void print_threads(const char *what, append_fn *append, void *ring) {
    printf("| %s |", what);
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        double ns[threads_repeat_count], cpu_ns[threads_repeat_count];
        for (int repeat = 0; repeat < threads_repeat_count; repeat++) {
            time_threads(thread_counts[i], append, ring, &ns[repeat], &cpu_ns[repeat]);
        }
        qsort(ns, threads_repeat_count, sizeof ns[0], compare_doubles);
        qsort(cpu_ns, threads_repeat_count, sizeof cpu_ns[0], compare_doubles);
        printf(" %.0f (%.0f) |", ns[0], cpu_ns[threads_repeat_count / 2]);
        (void)fflush(stdout);
    }
    printf("\n");
}

#endif
