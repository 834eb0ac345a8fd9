#include "ring/ring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static const size_t page_bytes = 4096;
static const size_t capacity_max_bytes = (size_t)1 << 30;

/* A reader holds the lock for at most this much copying: about ten microseconds. */
static const size_t piece_bytes = 64 * 1024;

/* Between two pieces a reader waits at most so long for those that the lock is due to. */
static const uint64_t give_way_ns = BP_NS_PER_MS / 4;
static const uint64_t spin_ns = BP_NS_PER_MS / 50;

struct bp_ring {
    pthread_mutex_t mutex;
    /* How many of the host's calls found the lock taken, and how many of those have had it since.
     * The difference is who waits. */
    atomic_uint_fast64_t queued_count;
    atomic_uint_fast64_t served_count;
    unsigned char *bytes;
    size_t capacity;
    /* Positions count bytes since the ring was made and are taken modulo the capacity, so that
     * head - tail is always what is in use. */
    uint64_t head;
    uint64_t tail;
    uint64_t newest_sequence;
    uint64_t refused_count;
};

bugpack_status bp_ring_new(size_t capacity_bytes, bp_ring **ret_ring, bugpack_error *error) {
    if (capacity_bytes < page_bytes || capacity_bytes > capacity_max_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "a ring of %zu bytes is not between 4 KiB and 1 GiB", capacity_bytes);
    }
    bp_ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL) {
        return bp_fail_memory(error, "make a ring");
    }
    ring->capacity = (capacity_bytes + page_bytes - 1) / page_bytes * page_bytes;
    ring->bytes = malloc(ring->capacity);
    if (ring->bytes == NULL || pthread_mutex_init(&ring->mutex, NULL) != 0) {
        free(ring->bytes);
        free(ring);
        return bp_fail_memory(error, "make a ring");
    }
    /* Touch every page now, so that no append has to wait for a page fault later. */
    memset(ring->bytes, 0, ring->capacity);
    *ret_ring = ring;
    return BUGPACK_OK;
}

void bp_ring_free(bp_ring *ring) {
    if (ring == NULL) {
        return;
    }
    (void)pthread_mutex_destroy(&ring->mutex);
    free(ring->bytes);
    free(ring);
}

static uint64_t framed_bytes(uint64_t payload_bytes) {
    return (sizeof(bp_ring_record) + payload_bytes + 7) & ~(uint64_t)7;
}

size_t bp_ring_payload_max_bytes(const bp_ring *ring) {
    return ring->capacity / 4 - sizeof(bp_ring_record);
}

static void put(bp_ring *ring, uint64_t position, const void *bytes, size_t byte_count) {
    size_t offset = (size_t)(position % ring->capacity);
    size_t first = ring->capacity - offset < byte_count ? ring->capacity - offset : byte_count;
    memcpy(ring->bytes + offset, bytes, first);
    memcpy(ring->bytes, (const unsigned char *)bytes + first, byte_count - first);
}

static void get(const bp_ring *ring, uint64_t position, void *bytes, size_t byte_count) {
    size_t offset = (size_t)(position % ring->capacity);
    size_t first = ring->capacity - offset < byte_count ? ring->capacity - offset : byte_count;
    memcpy(bytes, ring->bytes + offset, first);
    memcpy((unsigned char *)bytes + first, ring->bytes, byte_count - first);
}

/* A host's thread that has to wait says so, and is let in before a reader takes the lock again. */
static void lock_with_priority(bp_ring *ring) {
    if (pthread_mutex_trylock(&ring->mutex) != 0) {
        (void)atomic_fetch_add(&ring->queued_count, 1);
        (void)pthread_mutex_lock(&ring->mutex);
        (void)atomic_fetch_add(&ring->served_count, 1);
    }
}

/*
 * Lets those in who wait now. A mutex is not fair: whoever unlocks it and locks it again at once is
 * there before a waiter has woken up, and so a reader could keep a writer out for as long as the
 * whole copy takes. Most wake up within the first microseconds; then sleeping gives them our CPU,
 * and the bound is for one that gets none.
 */
static void give_way(bp_ring *ring) {
    uint64_t queued_count = atomic_load(&ring->queued_count);
    if (atomic_load(&ring->served_count) >= queued_count) {
        return;
    }
    uint64_t began_ns = bp_clock_monotonic_ns();
    uint64_t now_ns = began_ns;
    while (atomic_load(&ring->served_count) < queued_count && now_ns - began_ns < give_way_ns) {
        if (now_ns - began_ns > spin_ns) {
            bp_clock_sleep_until(now_ns + spin_ns);
        }
        now_ns = bp_clock_monotonic_ns();
    }
}

static uint64_t framed_bytes_at(const bp_ring *ring, uint64_t position) {
    bp_ring_record record;
    get(ring, position, &record, sizeof record);
    return framed_bytes(record.payload_bytes);
}

uint64_t bp_ring_append(bp_ring *ring, bp_instant at, const struct iovec *parts,
                        size_t part_count) {
    bp_ring_record record = {.at = at};
    for (size_t i = 0; i < part_count; i++) {
        record.payload_bytes += parts[i].iov_len;
    }
    uint64_t needed = framed_bytes(record.payload_bytes);
    lock_with_priority(ring);
    if (record.payload_bytes > bp_ring_payload_max_bytes(ring)) {
        ring->refused_count++;
        (void)pthread_mutex_unlock(&ring->mutex);
        return 0;
    }
    while (ring->head + needed - ring->tail > ring->capacity) {
        ring->tail += framed_bytes_at(ring, ring->tail);
    }
    record.sequence = ++ring->newest_sequence;
    uint64_t position = ring->head;
    put(ring, position, &record, sizeof record);
    position += sizeof record;
    for (size_t i = 0; i < part_count; i++) {
        if (parts[i].iov_len > 0) {
            put(ring, position, parts[i].iov_base, parts[i].iov_len);
            position += parts[i].iov_len;
        }
    }
    ring->head += needed;
    (void)pthread_mutex_unlock(&ring->mutex);
    return record.sequence;
}

uint64_t bp_ring_mark(bp_ring *ring) {
    lock_with_priority(ring);
    uint64_t mark = ring->newest_sequence;
    (void)pthread_mutex_unlock(&ring->mutex);
    return mark;
}

/*
 * Copies whole records from `*position` until the piece is full, the mark is passed or the ring
 * ends. The lock is held; `out` has room for all that can come. True while there may be more.
 */
static bool copy_piece(bp_ring *ring, uint64_t mark, uint64_t *position, bp_buffer *out,
                       bp_ring_view *view) {
    if (*position < ring->tail) {
        *position = ring->tail;
    }
    size_t copied = 0;
    while (*position < ring->head && copied < piece_bytes) {
        bp_ring_record record;
        get(ring, *position, &record, sizeof record);
        size_t framed = (size_t)framed_bytes(record.payload_bytes);
        char *end = record.sequence <= mark ? bp_buffer_reserve(out, framed) : NULL;
        if (end == NULL) {
            return false;
        }
        get(ring, *position, end, framed);
        bp_buffer_commit(out, framed);
        view->first_sequence = view->record_count == 0 ? record.sequence : view->first_sequence;
        view->last_sequence = record.sequence;
        view->record_count++;
        *position += framed;
        copied += framed;
    }
    return *position < ring->head;
}

bugpack_status bp_ring_copy(bp_ring *ring, uint64_t mark, bp_buffer *out, bp_ring_view *ret_view,
                            bugpack_error *error) {
    (void)pthread_mutex_lock(&ring->mutex);
    uint64_t position = ring->tail;
    size_t in_use = (size_t)(ring->head - ring->tail);
    mark = mark < ring->newest_sequence ? mark : ring->newest_sequence;
    (void)pthread_mutex_unlock(&ring->mutex);
    /* All the room at once and before the lock: what is up to the mark can only become less. */
    if (bp_buffer_reserve(out, in_use) == NULL) {
        return bp_fail_memory(error, "copy a ring");
    }
    bp_ring_view view = {0};
    bool has_more;
    do {
        (void)pthread_mutex_lock(&ring->mutex);
        has_more = copy_piece(ring, mark, &position, out, &view);
        view.refused_count = ring->refused_count;
        (void)pthread_mutex_unlock(&ring->mutex);
        if (has_more) {
            give_way(ring);
        }
    } while (has_more);
    if (out->status != BUGPACK_OK) {
        return bp_fail_memory(error, "copy a ring");
    }
    view.evicted_count = mark - view.record_count;
    *ret_view = view;
    return BUGPACK_OK;
}

const bp_ring_record *bp_ring_next(const bp_buffer *copy, size_t *offset,
                                   const void **ret_payload) {
    size_t left = copy->size - *offset;
    if (left < sizeof(bp_ring_record)) {
        return NULL;
    }
    const void *at = copy->data + *offset;
    const bp_ring_record *record = at;
    if (record->payload_bytes > left - sizeof *record ||
        framed_bytes(record->payload_bytes) > left) {
        return NULL;
    }
    *ret_payload = copy->data + *offset + sizeof *record;
    *offset += (size_t)framed_bytes(record->payload_bytes);
    return record;
}
