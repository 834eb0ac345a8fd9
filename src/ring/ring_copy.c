#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/status.h"
#include "ring/ring_private.h"

/*
 * Readers take no lock. A reader that is preempted with a lock held would delay every writer by a
 * time slice, several milliseconds, however little is copied under it. Instead a reader copies
 * first and then checks the tail, which writers move before they overwrite anything: bytes that the
 * tail has passed are discarded.
 */

static const size_t piece_bytes = 64 * 1024;

/*
 * A deliberate race, as in a seqlock: the result is valid only when the tail, read after
 * bp_ring_fence(acquire), has not passed `from`. All three arguments are multiples of 8.
 */
#if defined(__has_attribute)
#if __has_attribute(no_sanitize)
__attribute__((no_sanitize("thread")))
#endif
#endif
static void
copy_racing(void *to, const void *from, size_t byte_count) {
    uint64_t *out = to;
    const volatile uint64_t *in = from;
    for (size_t i = 0; i < byte_count / sizeof *out; i++) {
        out[i] = in[i];
    }
}

/* A copy under way. */
typedef struct copying {
    bp_ring *ring;
    uint64_t position, end; /* of what is still to be copied */
    uint64_t until_ns;
    uint64_t newest_sequence;
    uint64_t seen_count; /* in the view, or later than it */
    bp_buffer raw;       /* frames from `position` on; finished ones are compacted to records */
    size_t out_bytes;    /* of those records, at the front of `raw` */
    bp_ring_view view;
} copying;

/*
 * Fetches up to `wanted` bytes from `position`, which moves forward when records there are gone.
 * Fewer at the end of the data area or of the view; none without memory.
 */
static void fetch(copying *copy, size_t wanted) {
    bp_buffer_clear(&copy->raw);
    copy->out_bytes = 0;
    uint64_t offset = copy->position % copy->ring->capacity;
    uint64_t most = copy->ring->capacity - offset;
    most = most < copy->end - copy->position ? most : copy->end - copy->position;
    size_t byte_count = most < wanted ? (size_t)most : wanted;
    char *to = bp_buffer_reserve(&copy->raw, byte_count);
    if (to == NULL) {
        return;
    }
    copy_racing(to, copy->ring->data + offset, byte_count);
    bp_ring_fence(memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&copy->ring->page->tail, memory_order_relaxed);
    if (tail <= copy->position) {
        bp_buffer_commit(&copy->raw, byte_count);
        return;
    }
    /* The beginning was overwritten. The rest of the piece is whole and begins with a frame. */
    uint64_t lost = tail - copy->position;
    copy->position = tail;
    if (lost < byte_count) {
        memmove(to, to + lost, byte_count - (size_t)lost);
        bp_buffer_commit(&copy->raw, byte_count - (size_t)lost);
    }
}

static void take_record(copying *copy, const bp_ring_record *record, size_t record_bytes) {
    copy->seen_count++;
    if (record->monotonic_ns > copy->until_ns) {
        return; /* stamped before the lock, so a later record may still belong to the view */
    }
    bp_ring_view_add(&copy->view, record);
    /* Dropping the marks moves each record towards the front, so this may overlap. */
    memmove(copy->raw.data + copy->out_bytes, record, record_bytes);
    copy->out_bytes += record_bytes;
}

/* Whether a frame of this size can begin at `position`; if not, the file was overwritten. */
static bool can_hold(const copying *copy, uint64_t frame_bytes) {
    return frame_bytes <= copy->end - copy->position &&
           frame_bytes <= copy->ring->capacity - copy->position % copy->ring->capacity;
}

/*
 * Takes the whole frames of the fetched piece and moves `position` past them, or to the end when
 * the view ends. Returns the size of a frame that was cut off, so that it can be fetched whole,
 * else 0.
 */
static size_t take_fetched(copying *copy) {
    const char *at = copy->raw.data;
    const char *end = at + copy->raw.size;
    while (at < end) {
        bp_frame frame = {.mark = 0};
        size_t left = (size_t)(end - at);
        memcpy(&frame, at, left < sizeof frame ? left : sizeof frame);
        if (bp_frame_is_pad(frame.mark)) {
            copy->position += copy->ring->capacity - copy->position % copy->ring->capacity;
            return 0;
        }
        uint64_t frame_bytes =
            left < sizeof frame ? sizeof frame : bp_frame_bytes(frame.record.payload_bytes);
        if (!can_hold(copy, frame_bytes)) {
            copy->position = copy->end;
            return 0;
        }
        if (frame_bytes > left) {
            return (size_t)frame_bytes;
        }
        if (frame.record.sequence > copy->newest_sequence) {
            copy->position = copy->end;
            return 0;
        }
        const bp_ring_record *record = (const void *)(at + offsetof(bp_frame, record));
        copy->position += frame_bytes;
        at += frame_bytes;
        take_record(copy, record, (size_t)frame_bytes - offsetof(bp_frame, record));
    }
    return 0;
}

bugpack_status bp_ring_copy(bp_ring *ring, uint64_t until_ns, bp_sink *sink, void *context,
                            bp_ring_view *ret_view, bugpack_error *error) {
    bp_frame_page *page = ring->page;
    copying copy = {.ring = ring, .until_ns = until_ns};
    /* In the reverse order of the writer, so that head covers the sequence. */
    copy.newest_sequence = atomic_load_explicit(&page->sequence, memory_order_acquire);
    copy.end = atomic_load_explicit(&page->head, memory_order_acquire);
    copy.position = atomic_load_explicit(&page->tail, memory_order_acquire);
    bp_buffer_init(&copy.raw, BP_FRAME_CAPACITY_MAX);
    bugpack_status status = BUGPACK_OK;
    size_t wanted = piece_bytes;
    while (status == BUGPACK_OK && copy.position < copy.end) {
        fetch(&copy, wanted);
        size_t frame_bytes = take_fetched(&copy);
        wanted = frame_bytes > piece_bytes ? frame_bytes : piece_bytes;
        if (copy.raw.status != BUGPACK_OK) {
            status = bp_fail_memory(error, "copy a ring");
        } else if (copy.out_bytes > 0) {
            status = sink(context, copy.raw.data, copy.out_bytes);
            if (status != BUGPACK_OK) {
                (void)bp_fail(error, status, "a ring's records could not be written");
            }
        }
    }
    bp_buffer_release(&copy.raw);
    if (status != BUGPACK_OK) {
        return status;
    }
    copy.view.evicted_count = copy.newest_sequence - copy.seen_count;
    copy.view.refused_count = atomic_load_explicit(&page->refused_count, memory_order_relaxed);
    *ret_view = copy.view;
    return BUGPACK_OK;
}

#ifdef MREMAP_FIXED

/* Copies the positions from `from` to `to`, at most the capacity, to the same offsets. */
static void copy_positions(unsigned char *to_data, const bp_ring *ring, uint64_t from,
                           uint64_t to) {
    uint64_t byte_count = to - from < ring->capacity ? to - from : ring->capacity;
    uint64_t offset = from % ring->capacity;
    uint64_t first = ring->capacity - offset < byte_count ? ring->capacity - offset : byte_count;
    copy_racing(to_data + offset, ring->data + offset, (size_t)first);
    copy_racing(to_data, ring->data, (size_t)(byte_count - first));
}

/* The magic is written last: a process that is killed before that leaves a file that is no ring. */
static void copy_header(uint64_t *to, const bp_frame_page *page) {
    bp_ring_fence(memory_order_release);
    copy_racing(to + 1, (const uint64_t *)page + 1, BP_FRAME_DATA_START - sizeof *to);
    bp_ring_fence(memory_order_release);
    copy_racing(to, page, sizeof *to);
}

/*
 * Moves a ring to `target`, which is unmapped on failure. First everything while writers go on,
 * then under their lock what they wrote meanwhile, and last the header, without which a file is no
 * ring: whoever recovers takes the file that the ring left until the other one has all of it. Stale
 * bytes of the first copy are before the tail, where nobody reads.
 */
static bugpack_status move(bp_ring *ring, void *target, bool to_file, bugpack_error *error) {
    unsigned char *to_data = (unsigned char *)target + BP_FRAME_DATA_START;
    uint64_t head = atomic_load_explicit(&ring->page->head, memory_order_acquire);
    copy_positions(to_data, ring, head, head + ring->capacity);
    bp_lock_acquire(&ring->lock);
    copy_positions(to_data, ring, head, ring->head);
    copy_header(target, ring->page);
    uint64_t left_ns = to_file ? 0 : bp_clock_monotonic_ns();
    atomic_store_explicit(&ring->page->memory_from_ns, left_ns, memory_order_relaxed);
    void *moved = mremap(target, ring->mapped_bytes, ring->mapped_bytes,
                         MREMAP_MAYMOVE | MREMAP_FIXED, ring->page);
    int move_errno = errno;
    if (moved != MAP_FAILED) {
        atomic_store_explicit(&ring->is_in_file, to_file, memory_order_relaxed);
    } else {
        atomic_store_explicit(&ring->page->memory_from_ns, 0, memory_order_relaxed);
    }
    bp_lock_release(&ring->lock);
    if (moved == MAP_FAILED) {
        (void)munmap(target, ring->mapped_bytes);
        return bp_fail_errno(error, move_errno, "cannot move a ring");
    }
    return BUGPACK_OK;
}

bugpack_status bp_ring_move_to_file(bp_ring *ring, int fd, bugpack_error *error) {
    void *target = NULL;
    bugpack_status status = bp_ring_map_file(fd, ring->mapped_bytes, &target, error);
    return status == BUGPACK_OK ? move(ring, target, true, error) : status;
}

bugpack_status bp_ring_move_to_memory(bp_ring *ring, bugpack_error *error) {
    if (!bp_ring_is_in_file(ring)) {
        return BUGPACK_OK;
    }
    void *target = bp_ring_map_memory(ring->mapped_bytes);
    return target != NULL ? move(ring, target, false, error)
                          : bp_fail_errno(error, errno, "cannot move a ring into memory");
}

#else

static bugpack_status refuse_move(bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "a mapping cannot be replaced on this system");
}

bugpack_status bp_ring_move_to_file(bp_ring *ring, int fd, bugpack_error *error) {
    (void)ring;
    (void)fd;
    return refuse_move(error);
}

bugpack_status bp_ring_move_to_memory(bp_ring *ring, bugpack_error *error) {
    return bp_ring_is_in_file(ring) ? refuse_move(error) : BUGPACK_OK;
}

#endif
