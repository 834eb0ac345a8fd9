/*
 * What a reading of the heap's state costs, and how long another thread's malloc waits for it, in a
 * heap that has been cut up.
 *
 *   bench_heap_state FREE_BLOCKS     prints: allocator, median and largest microseconds of a
 * reading, and the largest malloc beside it
 */
#include <bugpack/bugpack.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "support/check.h"

enum { reading_count = 101, block_bytes = 2000 };

static atomic_bool must_end;
static char **blocks;
static size_t block_count;

/*
 * Every second block is given back, so that what is free cannot be joined. The sizes differ, so
 * that caches of one size do not take them all.
 */
static void cut_up(size_t free_count) {
    block_count = 2 * free_count;
    blocks = calloc(block_count + 1, sizeof *blocks);
    CHECK(blocks != NULL);
    for (size_t i = 0; i < block_count; i++) {
        blocks[i] = malloc(block_bytes + i % 64 * 16);
        CHECK(blocks[i] != NULL);
    }
    for (size_t i = 0; i < block_count; i += 2) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
}

static int compare(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
static uint64_t times[reading_count];

/* On a thread of its own, as a report does it. */
static void *read_states(void *unused) {
    (void)unused;
    for (size_t i = 0; i < reading_count; i++) {
        uint64_t began_ns = bp_clock_monotonic_ns();
        CHECK(bugpack_heap_state_read(&state, NULL) == BUGPACK_OK);
        times[i] = bp_clock_monotonic_ns() - began_ns;
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
    }
    atomic_store(&must_end, true);
    return NULL;
}

/* The host's thread goes on in the arena that was cut up, with sizes that no cache of its own
 * holds. Returns the longest that it waited. */
static uint64_t allocate(void) {
    uint64_t longest_ns = 0;
    for (size_t i = 1; !atomic_load(&must_end); i += 2) {
        uint64_t began_ns = bp_clock_monotonic_ns();
        char *volatile block = malloc(block_bytes + i % 64 * 16);
        uint64_t took_ns = bp_clock_monotonic_ns() - began_ns;
        free(block);
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
    }
    return longest_ns;
}

int main(int argument_count, char **arguments) {
    size_t free_count = argument_count == 2 ? strtoul(arguments[1], NULL, 10) : SIZE_MAX;
    if (free_count > 10000000) {
        (void)fprintf(stderr, "usage: bench_heap_state FREE_BLOCKS\n");
        return 2;
    }
    cut_up(free_count);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, read_states, NULL) == 0);
    uint64_t longest_ns = allocate();
    CHECK(pthread_join(thread, NULL) == 0);
    qsort(times, reading_count, sizeof times[0], compare);
    (void)printf("%s %.0f %.0f %.0f\n", state.allocator, (double)times[reading_count / 2] / 1000.0,
                 (double)times[reading_count - 1] / 1000.0, (double)longest_ns / 1000.0);
    for (size_t i = 0; i < block_count; i++) {
        free(blocks[i]);
    }
    free(blocks);
    return 0;
}
