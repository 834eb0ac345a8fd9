/*
 * What an append costs: in our ring, in memory and in a file, and in the ring that anybody writes
 * first, a mutex around a list of allocations; with many threads on one ring; while another writer
 * holds its place; and what a writer notices of a reader. Prints rows of Markdown tables;
 * tests/bench/ring puts them together.
 *
 *     bench_ring appends|threads|held|reader [DIR]      DIR is where the file is (default:
 * /dev/shm)
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/append_threads.h"
#include "bench/list_ring.h"
#include "ring/ring.h"
#include "support/check.h"

enum { capacity_bytes = 32 << 20, repeat_count = 15, stamp_count = 4000000 };

static const size_t sizes[] = {64, 1024, 16384};
static unsigned char message[16384];

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

static bp_ring *new_shared_ring(void) {
    bp_ring *ring = new_ring();
    CHECK(bp_ring_share(ring, NULL) == BUGPACK_OK);
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

static void init_list(list_ring *list) {
    *list = (list_ring){.oldest = NULL};
    list->newest = &list->oldest;
    CHECK(pthread_mutex_init(&list->mutex, NULL) == 0);
}

static void bench_appends(const char *directory) {
    bp_ring *ring = new_ring();
    print_appends("bugpack, in memory", append_ours, ring);
    bp_ring_free(ring);
    ring = new_shared_ring();
    print_appends("bugpack, shared, in memory", append_ours, ring);
    bp_ring_free(ring);
    ring = new_mapped_ring(directory);
    print_appends("bugpack, in a mapped file", append_ours, ring);
    bp_ring_free(ring);
    list_ring list;
    init_list(&list);
    print_appends("mutex and malloc", append_to_list, &list);
    void *area = malloc(capacity_bytes);
    CHECK(area != NULL);
    print_appends("memcpy alone, without a clock", append_by_memcpy, area);
    free(area);
}

/* --- many threads on one ring -------------------------------------------------------------- */

static void bench_threads(void) {
    bp_ring *shared = new_shared_ring(), *plain = new_ring();
    list_ring list;
    init_list(&list);
    print_threads("bugpack, shared, as log and traffic", append_ours, shared);
    print_threads("bugpack, with one lane, as notifications", append_ours, plain);
    print_threads("mutex and malloc", append_to_list, &list);
    bp_ring_free(shared);
    bp_ring_free(plain);
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

/* --- a writer that holds its place ---------------------------------------------------------- */

static void hold_place(int signal_number) {
    (void)signal_number;
    (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void *append_until_over(void *argument) {
    const append_threads *it = argument;
    while (!atomic_load(&is_over)) {
        it->append(it->ring, 64);
    }
    return NULL;
}

/* Another writer is interrupted for 2 ms, mostly in the middle of an append, again and again. */
static void print_held(const char *what, append_fn *append, void *ring) {
    static uint32_t ns[stamp_count / 4];
    const size_t count = sizeof ns / sizeof ns[0];
    append_threads it = {.append = append, .ring = ring};
    pthread_t other;
    atomic_store(&is_over, false);
    CHECK(pthread_create(&other, NULL, append_until_over, &it) == 0);
    uint64_t due_ns = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t began_ns = bp_clock_monotonic_ns();
        append(ring, 64);
        uint64_t ended_ns = bp_clock_monotonic_ns();
        ns[i] = (uint32_t)(ended_ns - began_ns);
        if (ended_ns > due_ns) {
            CHECK(pthread_kill(other, SIGUSR1) == 0);
            due_ns = ended_ns + 2200000;
        }
    }
    atomic_store(&is_over, true);
    CHECK(pthread_join(other, NULL) == 0);
    qsort(ns, count, sizeof ns[0], compare_u32);
    printf("| %s | %u | %u | %.1f | %.1f |\n", what, ns[count / 2], ns[count / 1000 * 999],
           ns[count / 10000 * 9999] / 1e3, ns[count - 1] / 1e3);
}

static void bench_held(void) {
    bp_ring *shared = new_shared_ring(), *plain = new_ring();
    const struct sigaction action = {.sa_handler = hold_place};
    list_ring list;
    init_list(&list);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    print_held("bugpack, shared, as log and traffic", append_ours, shared);
    print_held("bugpack, with one lane, as notifications", append_ours, plain);
    print_held("mutex and malloc", append_to_list, &list);
    bp_ring_free(shared);
    bp_ring_free(plain);
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
    } else if (strcmp(what, "held") == 0) {
        bench_held();
    } else if (strcmp(what, "reader") == 0) {
        bench_reader();
    } else {
        (void)fprintf(stderr, "usage: bench_ring appends|threads|held|reader [DIR]\n");
        return 2;
    }
    return 0;
}
