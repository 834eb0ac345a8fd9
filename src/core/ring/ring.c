#include "ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/lock.h"
#include "base/status.h"
#include "ring/chunk.h"
#include "ring/chunk_reader.h"
#include "ring/frame.h"

struct bp_ring {
    /* Read by appends and readers; written when the ring is made and when it is closed. */
    bp_frame_page *page; /* the mapping; data follows at BP_FRAME_DATA_START; NULL: closed */
    unsigned char *data;
    uint64_t capacity;
    uint64_t seed;
    uint64_t frame_max_bytes;
    size_t mapped_bytes;
    bool is_in_file;
    bp_chunks *chunks; /* NULL: it is not divided */
    bp_chunk_layout layout;
    /*
     * On its own cache line: everything that an append changes, unless the ring is divided. Nothing
     * is taken inside the lock. It is not in the file, because whoever maps a dead writer's file
     * must not find it locked.
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

/* Rounds up to pages. INVALID outside the bounds. */
static bugpack_status round_capacity(size_t capacity_bytes, uint64_t *ret_capacity,
                                     bugpack_error *error) {
    if (capacity_bytes < BP_FRAME_CAPACITY_MIN || capacity_bytes > BP_FRAME_CAPACITY_MAX) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "a ring of %zu bytes is not between 4 KiB and 1 GiB", capacity_bytes);
    }
    *ret_capacity = (capacity_bytes + 4095) & ~(uint64_t)4095;
    return BUGPACK_OK;
}

/* Makes a ring over `mapping`, which is all zeros. Unmaps it on failure. */
static bugpack_status make_ring(void *mapping, size_t mapped_bytes, uint64_t capacity,
                                bool is_in_file, bp_ring **ret_ring, bugpack_error *error) {
    /* Whole cache lines, so that two rings share none. */
    bp_ring *ring = aligned_alloc(64, (sizeof(bp_ring) + 63) & ~(size_t)63);
    if (ring != NULL) {
        memset(ring, 0, sizeof *ring);
    }
    if (ring == NULL) {
        (void)munmap(mapping, mapped_bytes);
        return bp_fail_memory(error, "make a ring");
    }
    bp_lock_init(&ring->lock, BP_LOCK_RING);
    bp_frame_page *page = mapping;
    page->seed = bp_frame_new_seed();
    page->version = BP_FRAME_VERSION;
    page->data_start = BP_FRAME_DATA_START;
    page->capacity = capacity;
    page->magic = BP_FRAME_MAGIC;
    page->check = bp_frame_page_check(page);
    ring->page = page;
    ring->data = (unsigned char *)mapping + BP_FRAME_DATA_START;
    ring->capacity = capacity;
    ring->seed = page->seed;
    ring->mapped_bytes = mapped_bytes;
    ring->is_in_file = is_in_file;
    ring->frame_max_bytes = capacity / 4;
    ring->wrap_offset = UINT64_MAX;
    *ret_ring = ring;
    return BUGPACK_OK;
}

bugpack_status bp_ring_new(size_t capacity_bytes, bp_ring **ret_ring, bugpack_error *error) {
    uint64_t capacity = 0;
    bugpack_status status = round_capacity(capacity_bytes, &capacity, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    size_t mapped_bytes = (size_t)(BP_FRAME_DATA_START + capacity);
    void *mapping =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
        return bp_fail_errno(error, errno, "cannot make a ring of %zu bytes", capacity_bytes);
    }
#ifdef MADV_WIPEONFORK
    /* A fork need not copy the page tables, and no append pays for copy-on-write after it. */
    (void)madvise(mapping, mapped_bytes, MADV_WIPEONFORK);
#endif
    return make_ring(mapping, mapped_bytes, capacity, false, ret_ring, error);
}

/* Allocates all blocks: a hole would be filled at the first store, or be SIGBUS. */
static int allocate(int fd, off_t byte_count) {
#if defined(_POSIX_ADVISORY_INFO) && _POSIX_ADVISORY_INFO > 0
    int result;
    do {
        result = posix_fallocate(fd, 0, byte_count);
    } while (result == EINTR);
    return result;
#else
    /* macOS lacks this option of POSIX: write the blocks. */
    static const char zeros[4096];
    for (off_t done = 0; done < byte_count;) {
        off_t left = byte_count - done;
        size_t step = left < (off_t)sizeof zeros ? (size_t)left : sizeof zeros;
        ssize_t count = pwrite(fd, zeros, step, done);
        if (count < 0 && errno != EINTR) {
            return errno;
        }
        done += count > 0 ? count : 0;
    }
    return 0;
#endif
}

bugpack_status bp_ring_map_file(int fd, size_t byte_count, void **ret_mapping,
                                bugpack_error *error) {
    struct stat found;
    if (fstat(fd, &found) != 0) {
        return bp_fail_errno(error, errno, "cannot examine the file of a ring");
    }
    if (!S_ISREG(found.st_mode) || found.st_size != 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "the file of a ring has to be regular and empty");
    }
    int result = allocate(fd, (off_t)byte_count);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot allocate %zu bytes for a ring", byte_count);
    }
    void *mapping = mmap(NULL, byte_count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapping == MAP_FAILED) {
        return bp_fail_errno(error, errno, "cannot map the file of a ring");
    }
#ifdef MADV_DONTFORK
    (void)madvise(mapping, byte_count, MADV_DONTFORK);
#endif
    *ret_mapping = mapping;
    return BUGPACK_OK;
}

bugpack_status bp_ring_new_mapped(int fd, size_t capacity_bytes, bp_ring **ret_ring,
                                  bugpack_error *error) {
    uint64_t capacity = 0;
    void *mapping = NULL;
    bugpack_status status = round_capacity(capacity_bytes, &capacity, error);
    size_t mapped_bytes = (size_t)(BP_FRAME_DATA_START + capacity);
    if (status == BUGPACK_OK) {
        status = bp_ring_map_file(fd, mapped_bytes, &mapping, error);
    }
    return status == BUGPACK_OK ? make_ring(mapping, mapped_bytes, capacity, true, ret_ring, error)
                                : status;
}

bugpack_status bp_ring_divide(bp_ring *ring, bugpack_error *error) {
    bp_chunk_layout layout;
    if (!bp_chunk_divide(ring->capacity, &layout)) {
        return BUGPACK_OK;
    }
    ring->chunks = bp_chunks_new(ring->page, ring->data, &layout);
    if (ring->chunks == NULL) {
        return bp_fail_memory(error, "make a ring");
    }
    ring->layout = layout;
    ring->frame_max_bytes = layout.chunk_bytes;
    ring->page->chunk_bytes = layout.chunk_bytes;
    ring->page->check = bp_frame_page_check(ring->page);
    return BUGPACK_OK;
}

void bp_ring_publish(bp_ring *ring, const char *session_id, const bp_ring_label *label) {
    bp_frame_page *header = ring->page;
    header->kind = (uint32_t)label->kind;
    header->number = label->number;
    header->owner_check = bp_frame_owner_check(header, session_id);
    if (label->about_bytes > 0) {
        memcpy(header->about, label->about, label->about_bytes);
    }
}

/* Of a file only the blocks go; its size stays, and what reads them finds zeros. */
static bool give_back(unsigned char *from, size_t byte_count, bool is_in_file) {
#ifdef MADV_REMOVE
    return madvise(from, byte_count, is_in_file ? MADV_REMOVE : MADV_DONTNEED) == 0;
#else
    (void)from;
    (void)byte_count;
    return !is_in_file; /* no record reached these pages, so they were never resident */
#endif
}

size_t bp_ring_seal(bp_ring *ring) {
    size_t taken_bytes = 0;
    bp_lock_acquire(&ring->lock);
    ring->is_sealed = true;
    if (ring->page != NULL) {
        /* Until the first turn is over, all records are before the head. */
        size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
        size_t used_bytes = ((size_t)ring->head + page_bytes - 1) / page_bytes * page_bytes;
        taken_bytes = ring->mapped_bytes;
        if (ring->chunks == NULL && ring->head < ring->capacity && used_bytes < ring->capacity &&
            (uintptr_t)(ring->data + used_bytes) % page_bytes == 0 &&
            give_back(ring->data + used_bytes, (size_t)ring->capacity - used_bytes,
                      ring->is_in_file)) {
            taken_bytes = BP_FRAME_DATA_START + used_bytes;
        }
    }
    bp_lock_release(&ring->lock);
    return taken_bytes;
}

bool bp_ring_has_evicted(bp_ring *ring) {
    bp_lock_acquire(&ring->lock);
    bool has_evicted = ring->tail > 0;
    bp_lock_release(&ring->lock);
    return has_evicted;
}

void bp_ring_close(bp_ring *ring) {
    if (ring->chunks != NULL) {
        bp_chunks_shut(ring->chunks);
    }
    /* Other appends use the mapping only under the lock and while the ring is open. */
    bp_lock_acquire(&ring->lock);
    void *mapping = ring->page;
    ring->page = NULL;
    ring->data = NULL;
    bp_lock_release(&ring->lock);
    if (mapping != NULL) {
        (void)munmap(mapping, ring->mapped_bytes);
    }
}

void bp_ring_free(bp_ring *ring) {
    if (ring != NULL) {
        bp_ring_close(ring);
        bp_chunks_free(ring->chunks);
        bp_lock_destroy(&ring->lock);
        free(ring);
    }
}

/* Of the memory that writers write to: what is read is to be compared with what is read later. */
static int read_data(void *ring, uint64_t offset, void *bytes, size_t byte_count) {
    bp_frame_copy_racing(bytes, ((const bp_ring *)ring)->data + offset, byte_count);
    bp_frame_fence(memory_order_acquire);
    return 0;
}

static bp_chunk_source source_of(bp_ring *ring) {
    return (bp_chunk_source){.layout = ring->layout,
                             .seed = ring->seed,
                             .is_trusted = true,
                             .read = read_data,
                             .context = ring};
}

uint64_t bp_ring_used_bytes(bp_ring *ring) {
    if (ring->chunks != NULL) {
        const bp_chunk_source source = source_of(ring);
        return bp_chunk_total_used_bytes(&source);
    }
    bp_lock_acquire(&ring->lock);
    uint64_t used_bytes = ring->head - ring->tail;
    bp_lock_release(&ring->lock);
    return used_bytes;
}

bool bp_ring_is_in_file(const bp_ring *ring) {
    return ring->is_in_file;
}

void bp_ring_note_alive(bp_ring *ring, bp_instant now) {
    bp_lock_acquire(&ring->lock);
    if (ring->page != NULL) {
        atomic_store_explicit(&ring->page->alive_offset_ns, now.wall_ns - now.monotonic_ns,
                              memory_order_relaxed);
        atomic_store_explicit(&ring->page->alive_ns, now.monotonic_ns, memory_order_relaxed);
    }
    bp_lock_release(&ring->lock);
}

/* The distance from the tail to the next record; 0 when there cannot be a frame at the tail. */
static uint64_t oldest_step(bp_ring *ring, uint64_t tail_offset) {
    if (tail_offset == ring->wrap_offset) { /* after the last frame of its turn */
        ring->wrap_offset = UINT64_MAX;
        return ring->capacity - tail_offset;
    }
    const bp_frame *oldest = (const void *)(ring->data + tail_offset);
    uint64_t step = bp_frame_bytes(oldest->record.payload_bytes);
    return step <= ring->capacity - tail_offset && step <= ring->head - ring->tail ? step : 0;
}

/*
 * Moves the tail until `needed` bytes after the head are free. Readers, of this process and of its
 * file, see the new tail before the first of those bytes is overwritten.
 */
static void make_room(bp_ring *ring, uint64_t needed) {
    if (ring->head + needed - ring->tail <= ring->capacity) {
        return;
    }
    do {
        uint64_t step = oldest_step(ring, ring->tail_offset);
        if (step == 0) { /* the file was overwritten: drop the records, do not crash the host */
            ring->tail = ring->head;
            ring->tail_offset = ring->head_offset;
            ring->wrap_offset = UINT64_MAX;
            break;
        }
        ring->tail += step;
        ring->tail_offset += step;
        ring->tail_offset = ring->tail_offset == ring->capacity ? 0 : ring->tail_offset;
    } while (ring->head + needed - ring->tail > ring->capacity);
    atomic_store_explicit(&ring->page->tail, ring->tail, memory_order_relaxed);
    bp_frame_fence(memory_order_release);
}

/* Makes room for the next frame and moves the head to its beginning, after a pad if needed. */
static void claim(bp_ring *ring, uint64_t needed) {
    uint64_t offset = ring->head_offset;
    uint64_t left = ring->capacity - offset;
    if (needed <= left) {
        make_room(ring, needed);
        return;
    }
    make_room(ring, left + needed);
    bp_frame *pad = (void *)(ring->data + offset);
    atomic_store_explicit(&pad->mark, bp_frame_pad_mark(ring->seed, offset), memory_order_release);
    ring->wrap_offset = offset;
    ring->head += left;
    ring->head_offset = 0;
}

size_t bp_ring_payload_max(const bp_ring *ring) {
    return (size_t)(ring->frame_max_bytes - sizeof(bp_frame));
}

/* True if a record of these parts is small enough; its size. */
static bool measure(const bp_ring *ring, const struct iovec *parts, size_t part_count,
                    uint64_t *ret_payload_bytes) {
    uint64_t total = 0;
    uint64_t limit = ring->frame_max_bytes;
    for (size_t i = 0; i < part_count; i++) {
        if (parts[i].iov_len > limit - total) {
            return false;
        }
        total += parts[i].iov_len;
    }
    *ret_payload_bytes = total;
    return bp_frame_bytes(total) <= limit;
}

/* Under the ring's lock, so plain loads and stores do the work of an atomic addition. */
static void add_to_tally(bp_ring_tally *tally, uint64_t amount, uint64_t stamp_ns) {
    uint64_t count = atomic_load_explicit(&tally->record_count, memory_order_relaxed);
    uint64_t sum = atomic_load_explicit(&tally->amount, memory_order_relaxed);
    atomic_store_explicit(&tally->record_count, count + 1, memory_order_relaxed);
    atomic_store_explicit(&tally->amount, sum + amount, memory_order_relaxed);
    if (stamp_ns > atomic_load_explicit(&tally->last_ns, memory_order_relaxed)) {
        atomic_store_explicit(&tally->last_ns, stamp_ns, memory_order_relaxed);
    }
}

uint64_t bp_ring_append_entry(bp_ring *ring, const bp_ring_entry *entry) {
    uint64_t payload_bytes = 0;
    bool fits = measure(ring, entry->parts, entry->part_count, &payload_bytes);
    uint64_t stamp_ns = entry->monotonic_ns != 0 ? entry->monotonic_ns : bp_clock_monotonic_ns();
    bp_ring_record record = {
        .monotonic_ns = stamp_ns, .payload_bytes = (uint32_t)payload_bytes, .tag = entry->tag};
    uint64_t needed = bp_frame_bytes(payload_bytes);
    if (ring->chunks != NULL) {
        record.sequence = fits ? bp_chunks_append(ring->chunks, entry, stamp_ns, payload_bytes) : 0;
        if (record.sequence != 0) {
            return record.sequence;
        }
        fits = false;
    }
    bp_lock_acquire(&ring->lock);
    bp_frame_page *page = ring->page;
    if (!fits || page == NULL || ring->is_sealed) {
        ring->refused_count++;
        if (page != NULL && !ring->is_sealed) {
            atomic_store_explicit(&page->refused_count, ring->refused_count, memory_order_relaxed);
        }
        bp_lock_release(&ring->lock);
        return 0;
    }
    record.sequence = ++ring->sequence;
    claim(ring, needed);
    bp_frame_write(ring->data, ring->head_offset, ring->seed, &record, entry->parts,
                   entry->part_count);
    ring->head += needed;
    ring->head_offset += needed;
    ring->head_offset = ring->head_offset == ring->capacity ? 0 : ring->head_offset;
    /* The next append reads the size of the oldest record, which no cache holds. */
    __builtin_prefetch(ring->data + ring->tail_offset);
    if (entry->tally != NULL) {
        add_to_tally(entry->tally, entry->amount, stamp_ns);
    }
    /* Head before sequence: a reader that sees the sequence finds its record. */
    atomic_store_explicit(&page->head, ring->head, memory_order_release);
    atomic_store_explicit(&page->sequence, record.sequence, memory_order_release);
    bp_lock_release(&ring->lock);
    return record.sequence;
}

uint64_t bp_ring_append(bp_ring *ring, uint32_t tag, const struct iovec *parts, size_t part_count) {
    const bp_ring_entry entry = {.tag = tag, .parts = parts, .part_count = part_count};
    return bp_ring_append_entry(ring, &entry);
}

/*
 * Readers take no lock. A reader that is preempted with a lock held would delay every writer by a
 * time slice, several milliseconds, however little is copied under it. Instead a reader copies
 * first and then checks the tail, which writers move before they overwrite anything: bytes that the
 * tail has passed are discarded.
 */

static const size_t piece_bytes = 64 * 1024;

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
    bp_frame_copy_racing(to, copy->ring->data + offset, byte_count);
    bp_frame_fence(memory_order_acquire);
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

/* True if a frame of this size can begin at `position`; if not, the file was overwritten. */
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
            copy->end = copy->position; /* it comes with what follows it */
            return 0;
        }
        const bp_ring_record *record = (const void *)(at + offsetof(bp_frame, record));
        copy->position += frame_bytes;
        at += frame_bytes;
        take_record(copy, record, (size_t)frame_bytes - offsetof(bp_frame, record));
    }
    return 0;
}

/* From `from` or the oldest record, up to what is there now and until `max_bytes` were given. */
static bugpack_status copy_from(copying *copy, uint64_t from, uint64_t max_bytes, bp_sink *sink,
                                void *context, bugpack_error *error) {
    bp_frame_page *page = copy->ring->page;
    /* In the reverse order of the writer, so that head covers the sequence. */
    copy->newest_sequence = atomic_load_explicit(&page->sequence, memory_order_acquire);
    copy->end = atomic_load_explicit(&page->head, memory_order_acquire);
    copy->position = atomic_load_explicit(&page->tail, memory_order_acquire);
    copy->position = copy->position < from ? from : copy->position;
    bp_buffer_init(&copy->raw, BP_FRAME_CAPACITY_MAX);
    bugpack_status status = BUGPACK_OK;
    size_t wanted = piece_bytes;
    uint64_t given_bytes = 0;
    while (status == BUGPACK_OK && copy->position < copy->end && given_bytes < max_bytes) {
        fetch(copy, wanted);
        size_t frame_bytes = take_fetched(copy);
        wanted = frame_bytes > piece_bytes ? frame_bytes : piece_bytes;
        if (copy->raw.status != BUGPACK_OK) {
            status = bp_fail_memory(error, "copy a ring");
        } else if (copy->out_bytes > 0) {
            given_bytes += copy->out_bytes;
            status = sink(context, copy->raw.data, copy->out_bytes);
            if (status != BUGPACK_OK) {
                (void)bp_fail(error, status, "a ring's records could not be written");
            }
        }
    }
    bp_buffer_release(&copy->raw);
    return status;
}

bugpack_status bp_ring_copy(bp_ring *ring, uint64_t until_ns, bp_sink *sink, void *context,
                            bp_ring_view *ret_view, bugpack_error *error) {
    copying copy = {.ring = ring, .until_ns = until_ns};
    bugpack_status status;
    if (ring->chunks != NULL) {
        const bp_chunk_source source = source_of(ring);
        bp_chunk_reading reading = {.until_ns = until_ns, .max_bytes = UINT64_MAX};
        status = bp_chunk_read(&source, &reading, sink, context, &copy.view, error);
    } else {
        status = copy_from(&copy, 0, UINT64_MAX, sink, context, error);
        copy.view.evicted_count = copy.newest_sequence - copy.seen_count;
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    copy.view.refused_count =
        atomic_load_explicit(&ring->page->refused_count, memory_order_relaxed);
    *ret_view = copy.view;
    return BUGPACK_OK;
}

/* The same of a divided ring. Each chunk has a position of its own. */
static bugpack_status follow_chunks(bp_ring *ring, bp_ring_follower *follower, size_t max_bytes,
                                    bp_sink *sink, void *context, uint64_t *ret_lost_count,
                                    bool *ret_is_rest, bugpack_error *error) {
    const bp_chunk_source source = source_of(ring);
    uint64_t *seen_counts = calloc(ring->layout.chunk_count, sizeof *seen_counts);
    bp_ring_view view;
    if (seen_counts == NULL) {
        return bp_fail_memory(error, "follow a ring");
    }
    if (follower->seen_counts != NULL) {
        memcpy(seen_counts, follower->seen_counts, ring->layout.chunk_count * sizeof *seen_counts);
    }
    bp_chunk_reading reading = {
        .until_ns = UINT64_MAX, .max_bytes = max_bytes, .seen_counts = seen_counts};
    bugpack_status status = bp_chunk_read(&source, &reading, sink, context, &view, error);
    if (status != BUGPACK_OK) {
        free(seen_counts);
        return status;
    }
    free(follower->seen_counts);
    follower->seen_counts = seen_counts;
    follower->sequence = view.last_sequence != 0 ? view.last_sequence : follower->sequence;
    *ret_lost_count = reading.lost_count;
    *ret_is_rest = reading.is_rest;
    return BUGPACK_OK;
}

bugpack_status bp_ring_follow(bp_ring *ring, bp_ring_follower *follower, size_t max_bytes,
                              bp_sink *sink, void *context, uint64_t *ret_lost_count,
                              bool *ret_is_rest, bugpack_error *error) {
    if (ring->chunks != NULL) {
        return follow_chunks(ring, follower, max_bytes, sink, context, ret_lost_count, ret_is_rest,
                             error);
    }
    copying copy = {.ring = ring, .until_ns = UINT64_MAX};
    bugpack_status status = copy_from(&copy, follower->position, max_bytes, sink, context, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    uint64_t last_sequence = copy.view.last_sequence;
    *ret_lost_count =
        last_sequence == 0 ? 0 : last_sequence - follower->sequence - copy.view.record_count;
    *ret_is_rest = copy.position < copy.end;
    follower->position = copy.position;
    follower->sequence = last_sequence == 0 ? follower->sequence : last_sequence;
    return BUGPACK_OK;
}

void bp_ring_follower_release(bp_ring_follower *follower) {
    free(follower->seen_counts);
    *follower = (bp_ring_follower){.position = 0};
}
