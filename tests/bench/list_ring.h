/*
 * What everybody writes first: a mutex around a list of allocations, of which the oldest go when
 * there are too many bytes. In a header, so that a compiler may treat it as well as it can.
 */
#ifndef TESTS_BENCH_LIST_RING_H
#define TESTS_BENCH_LIST_RING_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "support/check.h"

typedef struct node {
    struct node *next;
    uint64_t monotonic_ns;
    size_t byte_count;
    unsigned char bytes[];
} node;

/* Begins as {.oldest = NULL} with `newest` at `oldest`, and the mutex initialised. */
typedef struct list_ring {
    pthread_mutex_t mutex;
    node *oldest, **newest;
    size_t used_bytes;
} list_ring;

static inline void keep_in_list(list_ring *list, const void *bytes, size_t byte_count,
                                size_t max_bytes) {
    node *added = malloc(sizeof *added + byte_count);
    CHECK(added != NULL);
    *added = (node){.monotonic_ns = bp_clock_monotonic_ns(), .byte_count = byte_count};
    memcpy(added->bytes, bytes, byte_count);
    (void)pthread_mutex_lock(&list->mutex);
    *list->newest = added;
    list->newest = &added->next;
    list->used_bytes += sizeof *added + byte_count;
    while (list->used_bytes > max_bytes) {
        node *gone = list->oldest;
        list->oldest = gone->next;
        list->used_bytes -= sizeof *gone + gone->byte_count;
        free(gone);
    }
    (void)pthread_mutex_unlock(&list->mutex);
}

#endif
