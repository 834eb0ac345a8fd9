/*
 * What the files of this room share of a ring.
 */
#ifndef BP_RING_RING_PRIVATE_H
#define BP_RING_RING_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>

#include "ring/frame.h"

struct bp_ring {
    /* Read by appends and readers, written when it is made, and again when it is retired. */
    bp_frame_page *page; /* in the mapping; data follows at BP_FRAME_DATA_START; NULL: retired */
    unsigned char *data;
    uint64_t capacity;
    uint64_t seed;
    size_t mapped_bytes;
    int fd; /* -1: no file */
    _Atomic bool is_detached;
    /* A line of their own for what every append changes. The mutex is here and not in the file:
     * whoever maps a dead writer's file must not find it locked. */
    _Alignas(64) pthread_mutex_t mutex;
    /* The writers' own, which the page repeats for readers: nothing that stands in a file, where
     * others might reach it, decides where an append writes. */
    uint64_t head, tail; /* positions */
    uint64_t sequence, refused_count;
    uint64_t head_offset, tail_offset;
    uint64_t wrap_offset; /* where frames ended when head last went back to 0 */
    bool is_closed;
};

/* Makes a ring over `mapping`, `mapped_bytes` that are all 0. Takes the mapping on success. */
bugpack_status bp_ring_make(void *mapping, size_t mapped_bytes, uint64_t capacity, int fd,
                            bp_ring **ret_ring, bugpack_error *error);

/* INVALID, or how many bytes a ring of `capacity_bytes` really has, a multiple of 4 KiB. */
bugpack_status bp_ring_round_capacity(size_t capacity_bytes, uint64_t *ret_capacity,
                                      bugpack_error *error);

/* Zeroed memory for a ring, all pages touched; a forked child sees zeros. NULL with errno. */
void *bp_ring_map_memory(size_t byte_count);

/*
 * ThreadSanitizer does not know fences, and gcc refuses them under it. What is compiled for it runs
 * on machines that keep the order of stores, and of loads, by themselves.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BP_RING_NO_FENCES 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define BP_RING_NO_FENCES 1
#endif

static inline void bp_ring_fence(memory_order order) {
#ifdef BP_RING_NO_FENCES
    atomic_signal_fence(order);
#else
    atomic_thread_fence(order);
#endif
}

/* The ring's lock is held, so that a load and a store do what an atomic addition would. */
static inline void bp_ring_tally_add(bp_ring_tally *tally, uint64_t amount, uint64_t stamp_ns) {
    uint64_t count = atomic_load_explicit(&tally->record_count, memory_order_relaxed);
    uint64_t sum = atomic_load_explicit(&tally->amount, memory_order_relaxed);
    atomic_store_explicit(&tally->record_count, count + 1, memory_order_relaxed);
    atomic_store_explicit(&tally->amount, sum + amount, memory_order_relaxed);
    if (stamp_ns > atomic_load_explicit(&tally->last_ns, memory_order_relaxed)) {
        atomic_store_explicit(&tally->last_ns, stamp_ns, memory_order_relaxed);
    }
}

/*
 * Copies out of a ring while writers write into it. What comes is only good when the tail has not
 * passed `from` afterwards, as in a seqlock: look at it after bp_ring_fence(acquire).
 * All three are multiples of 8.
 */
void bp_ring_copy_racing(void *to, const void *from, size_t byte_count);

#endif
