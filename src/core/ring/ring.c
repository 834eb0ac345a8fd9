#include "ring/ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    size_t mapped_bytes;
    bool is_in_file;
    bp_chunk_layout layout;
    bp_chunks *chunks;
    /* Guards the fields below and the end of the mapping; no other lock is taken under it. It is
     * not in the file, because whoever maps a dead writer's file must not find it locked. */
    bp_lock lock;
    uint64_t refused_count;
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
    /* Whole cache lines, which nobody else writes to. */
    bp_ring *ring = aligned_alloc(64, (sizeof *ring + 63) & ~(size_t)63);
    bp_frame_page *page = mapping;
    page->seed = bp_frame_new_seed();
    const bp_chunk_layout layout = bp_chunk_divide(capacity);
    unsigned char *data = (unsigned char *)mapping + BP_FRAME_DATA_START;
    bp_chunks *chunks = ring == NULL ? NULL : bp_chunks_new(page, data, &layout);
    if (chunks == NULL) {
        free(ring);
        (void)munmap(mapping, mapped_bytes);
        return bp_fail_memory(error, "make a ring");
    }
    page->version = BP_FRAME_VERSION;
    page->data_start = BP_FRAME_DATA_START;
    page->capacity = capacity;
    page->chunk_bytes = layout.chunk_bytes;
    page->magic = BP_FRAME_MAGIC;
    page->check = bp_frame_page_check(page);
    *ring = (bp_ring){.page = page,
                      .data = data,
                      .capacity = capacity,
                      .seed = page->seed,
                      .mapped_bytes = mapped_bytes,
                      .is_in_file = is_in_file,
                      .layout = layout,
                      .chunks = chunks};
    bp_lock_init(&ring->lock, BP_LOCK_RING);
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

bugpack_status bp_ring_share(bp_ring *ring, bugpack_error *error) {
    return bp_chunks_share(ring->chunks) ? BUGPACK_OK : bp_fail_memory(error, "make a ring");
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

/* A file loses its blocks and keeps its size; readers find zeros there. */
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
    bp_chunks_shut(ring->chunks);
    bp_lock_acquire(&ring->lock);
    ring->is_sealed = true;
    if (ring->page != NULL) {
        /* Until each chunk was begun once, all records are in those that were. */
        uint64_t begun_count = bp_chunks_begun_count(ring->chunks);
        size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
        size_t used_bytes = (size_t)bp_chunk_offset(&ring->layout, begun_count);
        used_bytes = (used_bytes + page_bytes - 1) / page_bytes * page_bytes;
        taken_bytes = ring->mapped_bytes;
        if (begun_count < ring->layout.chunk_count && used_bytes < ring->capacity &&
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
    return bp_chunks_begun_count(ring->chunks) > ring->layout.chunk_count;
}

void bp_ring_close(bp_ring *ring) {
    bp_chunks_shut(ring->chunks);
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

/* Reads memory that writers write to: the caller has to compare it with a later reading. */
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
    const bp_chunk_source source = source_of(ring);
    return bp_chunk_total_used_bytes(&source);
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

size_t bp_ring_payload_max(const bp_ring *ring) {
    uint64_t fits = ring->capacity / 4 - sizeof(bp_frame);
    return (size_t)(fits < BP_RING_PAYLOAD_MAX ? fits : BP_RING_PAYLOAD_MAX);
}

uint64_t bp_ring_room(const bp_ring *ring) {
    /* At the end of a chunk this is empty, or less is taken by what a division adds. */
    uint64_t rest_bytes = bp_chunk_rest_bytes(&ring->layout);
    return ring->layout.chunk_count * (ring->layout.chunk_bytes - rest_bytes);
}

bp_ring_tally bp_ring_read_tally(const bp_ring *ring, uint32_t tally) {
    return bp_chunks_read_tally(ring->chunks, tally);
}

/* True if a record of these parts is small enough; its size. */
static bool measure(const bp_ring *ring, const bp_ring_entry *entry, uint64_t *ret_payload_bytes) {
    uint64_t total = 0;
    uint64_t limit = bp_ring_payload_max(ring);
    for (size_t i = 0; i < entry->part_count; i++) {
        if (entry->parts[i].iov_len > limit - total) {
            return false;
        }
        total += entry->parts[i].iov_len;
    }
    *ret_payload_bytes = total;
    return true;
}

uint64_t bp_ring_append_entry(bp_ring *ring, const bp_ring_entry *entry) {
    uint64_t payload_bytes = 0;
    assert(entry->part_count <= BP_RING_PART_COUNT_MAX);
    bool fits = measure(ring, entry, &payload_bytes);
    uint64_t stamp_ns = entry->monotonic_ns != 0 ? entry->monotonic_ns : bp_clock_monotonic_ns();
    stamp_ns = fits ? bp_chunks_append(ring->chunks, entry, stamp_ns, payload_bytes) : 0;
    if (stamp_ns == 0) {
        bp_lock_acquire(&ring->lock);
        ring->refused_count++;
        if (ring->page != NULL && !ring->is_sealed) {
            atomic_store_explicit(&ring->page->refused_count, ring->refused_count,
                                  memory_order_relaxed);
        }
        bp_lock_release(&ring->lock);
    }
    return stamp_ns;
}

uint64_t bp_ring_append(bp_ring *ring, uint32_t tag, const struct iovec *parts, size_t part_count) {
    const bp_ring_entry entry = {.tag = tag, .parts = parts, .part_count = part_count};
    return bp_ring_append_entry(ring, &entry);
}

bugpack_status bp_ring_copy(bp_ring *ring, uint64_t until_ns, bp_sink *sink, void *context,
                            bp_ring_view *ret_view, bugpack_error *error) {
    const bp_chunk_source source = source_of(ring);
    bp_chunk_reading reading = {.until_ns = until_ns, .max_bytes = UINT64_MAX};
    bugpack_status status = bp_chunk_read(&source, &reading, sink, context, ret_view, error);
    if (status == BUGPACK_OK) {
        ret_view->refused_count =
            atomic_load_explicit(&ring->page->refused_count, memory_order_relaxed);
    }
    return status;
}

bugpack_status bp_ring_follow(bp_ring *ring, bp_ring_follower *follower, size_t max_bytes,
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

void bp_ring_follower_release(bp_ring_follower *follower) {
    free(follower->seen_counts);
    *follower = (bp_ring_follower){.sequence = 0};
}
