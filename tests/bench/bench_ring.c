/*
 * What an append costs: in our ring, in memory and in a file, and in the ring that anybody writes
 * first, a mutex around a list of allocations; how two threads on two rings get on; and what a
 * writer notices of a reader. Prints rows of Markdown tables; tests/bench/ring puts them together.
 *
 *     bench_ring appends|threads|reader [DIR]      DIR is where the file is (default: /dev/shm)
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/list_ring.h"
#include "ring/ring.h"
#include "support/check.h"

enum { capacity_bytes = 32 << 20, repeat_count = 15, stamp_count = 4000000 };

static const size_t sizes[] = {64, 1024, 16384};
static unsigned char message[16384];

typedef void append_fn(void *ring, size_t byte_count);

static void append_ours(void *ring, size_t byte_count) {
    struct iovec part = {.iov_base = message, .iov_len = byte_count};
    (void)bp_ring_append(ring, 1, &part, 1);
}

static void append_to_list(void *list, size_t byte_count) {
    keep_in_list(list, message, byte_count, capacity_bytes);
}

/* What the machine can do: the same bytes into an area of the same size, and nothing else. */
static void append_by_memcpy(void *area, size_t byte_count) {
    static size_t offset;
    offset = offset + byte_count > capacity_bytes ? 0 : offset;
    memcpy((unsigned char *)area + offset, message, byte_count);
    __asm__ volatile("" ::: "memory");
    offset += byte_count;
}

static double ns_per_append(append_fn *append, void *ring, size_t byte_count, unsigned count) {
    uint64_t began_ns = bp_clock_monotonic_ns();
    for (unsigned i = 0; i < count; i++) {
        append(ring, byte_count);
    }
    return (double)(bp_clock_monotonic_ns() - began_ns) / count;
}

static int compare_doubles(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return a < b ? -1 : a > b;
}

static void print_appends(const char *what, append_fn *append, void *ring) {
    printf("| %s |", what);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double ns[repeat_count];
        unsigned count = (unsigned)((64u << 20) / (sizes[i] + 128));
        (void)ns_per_append(append, ring, sizes[i], count); /* once round, so that it is full */
        for (int repeat = 0; repeat < repeat_count; repeat++) {
            ns[repeat] = ns_per_append(append, ring, sizes[i], count);
        }
        qsort(ns, repeat_count, sizeof ns[0], compare_doubles);
        printf(" %.0f (%.0f) |", ns[repeat_count / 2], ns[0]);
    }
    printf("\n");
}

static bp_ring *new_ring(void) {
    bp_ring *ring = NULL;
    CHECK(bp_ring_new(capacity_bytes, &ring, NULL) == BUGPACK_OK);
    return ring;
}

static bp_ring *new_mapped_ring(const char *directory) {
    char path[400];
    bp_ring *ring = NULL;
    (void)snprintf(path, sizeof path, "%s/bugpack-bench-ring.%ld", directory, (long)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && unlink(path) == 0);
    CHECK(bp_ring_new_mapped(fd, capacity_bytes, &ring, NULL) == BUGPACK_OK);
    return ring;
}

static void bench_appends(const char *directory) {
    bp_ring *ring = new_ring();
    print_appends("bugpack, in memory", append_ours, ring);
    bp_ring_free(ring);
    ring = new_mapped_ring(directory);
    print_appends("bugpack, in a mapped file", append_ours, ring);
    bp_ring_free(ring);
    list_ring list = {.oldest = NULL};
    list.newest = &list.oldest;
    CHECK(pthread_mutex_init(&list.mutex, NULL) == 0);
    print_appends("mutex and malloc", append_to_list, &list);
    void *area = malloc(capacity_bytes);
    CHECK(area != NULL);
    print_appends("memcpy alone, without a clock", append_by_memcpy, area);
    free(area);
}

static pthread_barrier_t barrier;

static void *append_many(void *ring) {
    static _Thread_local double ns;
    (void)pthread_barrier_wait(&barrier);
    ns = ns_per_append(append_ours, ring, 64, 4000000);
    double *result = malloc(sizeof *result);
    CHECK(result != NULL);
    *result = ns;
    return result;
}

/* The slower of the threads, the median of five tries. */
static double run_threads(unsigned thread_count, bp_ring **rings) {
    double slowest[5];
    for (int repeat = 0; repeat < 5; repeat++) {
        pthread_t threads[2];
        CHECK(pthread_barrier_init(&barrier, NULL, thread_count) == 0);
        for (unsigned i = 0; i < thread_count; i++) {
            CHECK(pthread_create(&threads[i], NULL, append_many, rings[i]) == 0);
        }
        slowest[repeat] = 0;
        for (unsigned i = 0; i < thread_count; i++) {
            void *result = NULL;
            CHECK(pthread_join(threads[i], &result) == 0);
            double ns = *(double *)result;
            slowest[repeat] = ns > slowest[repeat] ? ns : slowest[repeat];
            free(result);
        }
        (void)pthread_barrier_destroy(&barrier);
    }
    qsort(slowest, 5, sizeof slowest[0], compare_doubles);
    return slowest[2];
}

static void bench_threads(void) {
    bp_ring *rings[2] = {new_ring(), new_ring()};
    bp_ring *same[2] = {rings[0], rings[0]};
    printf("| one thread, one ring | %.0f |\n", run_threads(1, rings));
    printf("| two threads, a ring each | %.0f |\n", run_threads(2, rings));
    printf("| two threads, the same ring | %.0f |\n", run_threads(2, same));
    bp_ring_free(rings[0]);
    bp_ring_free(rings[1]);
}

static atomic_bool is_over;

static bugpack_status discard(void *count, const void *bytes, size_t byte_count) {
    (void)bytes;
    *(uint64_t *)count += byte_count;
    return BUGPACK_OK;
}

static void *copy_forever(void *ring) {
    uint64_t byte_count = 0;
    while (!atomic_load(&is_over)) {
        bp_ring_view view;
        CHECK(bp_ring_copy(ring, UINT64_MAX, discard, &byte_count, &view, NULL) == BUGPACK_OK);
    }
    return NULL;
}

static int compare_u32(const void *one, const void *other) {
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return a < b ? -1 : a > b;
}

static void bench_reader(void) {
    static uint32_t ns[stamp_count];
    bp_ring *ring = new_ring();
    (void)ns_per_append(append_ours, ring, 64, 1000000);
    for (int has_reader = 0; has_reader < 2; has_reader++) {
        pthread_t reader;
        atomic_store(&is_over, false);
        if (has_reader != 0) {
            CHECK(pthread_create(&reader, NULL, copy_forever, ring) == 0);
        }
        for (size_t i = 0; i < stamp_count; i++) {
            uint64_t began_ns = bp_clock_monotonic_ns();
            append_ours(ring, 64);
            ns[i] = (uint32_t)(bp_clock_monotonic_ns() - began_ns);
        }
        atomic_store(&is_over, true);
        if (has_reader != 0) {
            CHECK(pthread_join(reader, NULL) == 0);
        }
        qsort(ns, stamp_count, sizeof ns[0], compare_u32);
        printf("| %s | %u | %u | %u | %.1f |\n",
               has_reader != 0 ? "while a reader copies it over and over" : "alone",
               ns[stamp_count / 2], ns[stamp_count / 1000 * 999], ns[stamp_count / 100000 * 99999],
               ns[stamp_count - 1] / 1e3);
    }
    bp_ring_free(ring);
}

/* glibc locks and allocates cheaper while there is one thread alone, but no host has only one. */
static void *sleep_forever(void *unused) {
    while (pause() != 0) {}
    return unused;
}

int main(int argument_count, char **arguments) {
    const char *what = argument_count > 1 ? arguments[1] : "";
    memset(message, 0x5a, sizeof message);
    pthread_t sleeper;
    CHECK(pthread_create(&sleeper, NULL, sleep_forever, NULL) == 0);
    if (strcmp(what, "appends") == 0) {
        bench_appends(argument_count > 2 ? arguments[2] : "/dev/shm");
    } else if (strcmp(what, "threads") == 0) {
        bench_threads();
    } else if (strcmp(what, "reader") == 0) {
        bench_reader();
    } else {
        (void)fprintf(stderr, "usage: bench_ring appends|threads|reader [DIR]\n");
        return 2;
    }
    return 0;
}
