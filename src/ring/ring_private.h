/*
 * Shared by the files of a ring.
 */
#ifndef BP_RING_RING_PRIVATE_H
#define BP_RING_RING_PRIVATE_H

#include <stdbool.h>

#include "base/lock.h"
#include "base/sanitizer.h"
#include "ring/anchor.h"
#include "ring/frame.h"

struct bp_ring {
    /* Read by appends and readers; written when the ring is made and when it is closed. */
    bp_frame_page *page; /* the mapping; data follows at BP_FRAME_DATA_START; NULL: closed */
    unsigned char *data;
    uint64_t capacity;
    uint64_t seed;
    size_t mapped_bytes;
    _Atomic bool is_in_file;
    bp_anchor_entry *anchor; /* NULL: not published */
    /*
     * On its own cache line: everything that an append changes. Nothing is taken inside the lock.
     * It is not in the file, because whoever maps a dead writer's file must not find it locked.
     */
    _Alignas(64) bp_lock lock;
    /* The writers' own copies; the page repeats them for readers. Nothing in a file, which others
     * might reach, decides where an append writes. */
    uint64_t head, tail; /* positions */
    uint64_t sequence, refused_count;
    uint64_t head_offset, tail_offset;
    uint64_t wrap_offset; /* where frames ended when head last returned to offset 0 */
    bool is_sealed;
};

/* Zeroed memory for a ring, not touched; a forked child sees zeros. NULL with errno. */
void *bp_ring_map_memory(size_t byte_count);

/*
 * ThreadSanitizer does not support fences, and gcc refuses them under it. The machines it runs on
 * keep the order of stores and of loads by themselves.
 */
static inline void bp_ring_fence(memory_order order) {
#if BP_THREAD_SANITIZER
    atomic_signal_fence(order);
#else
    atomic_thread_fence(order);
#endif
}

#endif
