#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "ring/ring_private.h"

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

bugpack_status bp_ring_new_mapped(int fd, size_t capacity_bytes, bp_ring **ret_ring,
                                  bugpack_error *error) {
    uint64_t capacity = 0;
    bugpack_status status = bp_ring_round_capacity(capacity_bytes, &capacity, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    struct stat found;
    if (fstat(fd, &found) != 0) {
        return bp_fail_errno(error, errno, "cannot examine the file of a ring");
    }
    if (!S_ISREG(found.st_mode) || found.st_size != 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "the file of a ring has to be regular and empty");
    }
    size_t mapped_bytes = (size_t)(BP_FRAME_DATA_START + capacity);
    int result = allocate(fd, (off_t)mapped_bytes);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot allocate %zu bytes for a ring", mapped_bytes);
    }
    void *mapping = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapping == MAP_FAILED) {
        return bp_fail_errno(error, errno, "cannot map the file of a ring");
    }
    status = bp_ring_make(mapping, mapped_bytes, capacity, fd, ret_ring, error);
    if (status != BUGPACK_OK) {
        (void)munmap(mapping, mapped_bytes);
    }
    return status;
}

#ifdef MREMAP_FIXED

/* Copies the positions from `from` to `to`, at most the capacity, to the same offsets. */
static void copy_positions(unsigned char *to_data, const bp_ring *ring, uint64_t from,
                           uint64_t to) {
    uint64_t byte_count = to - from < ring->capacity ? to - from : ring->capacity;
    uint64_t offset = from % ring->capacity;
    uint64_t first = ring->capacity - offset < byte_count ? ring->capacity - offset : byte_count;
    bp_ring_copy_racing(to_data + offset, ring->data + offset, (size_t)first);
    bp_ring_copy_racing(to_data, ring->data, (size_t)(byte_count - first));
}

bugpack_status bp_ring_detach(bp_ring *ring, bugpack_error *error) {
    if (ring->fd < 0 || atomic_load_explicit(&ring->is_detached, memory_order_relaxed)) {
        return BUGPACK_OK;
    }
    unsigned char *memory = bp_ring_map_memory(ring->mapped_bytes);
    if (memory == NULL) {
        return bp_fail_errno(error, errno, "cannot move a ring into memory");
    }
    unsigned char *to_data = memory + BP_FRAME_DATA_START;
    /* First everything while writers go on, then under their lock what they wrote meanwhile. Stale
     * bytes of the first copy are before the tail, where nobody reads. */
    uint64_t head = atomic_load_explicit(&ring->page->head, memory_order_acquire);
    copy_positions(to_data, ring, head, head + ring->capacity);
    bp_lock_acquire(&ring->lock);
    copy_positions(to_data, ring, head, ring->head);
    bp_ring_copy_racing(memory, ring->page, BP_FRAME_DATA_START);
    void *moved = mremap(memory, ring->mapped_bytes, ring->mapped_bytes,
                         MREMAP_MAYMOVE | MREMAP_FIXED, ring->page);
    int move_errno = errno;
    bp_lock_release(&ring->lock);
    if (moved == MAP_FAILED) {
        (void)munmap(memory, ring->mapped_bytes);
        return bp_fail_errno(error, move_errno, "cannot move a ring into memory");
    }
    atomic_store_explicit(&ring->is_detached, true, memory_order_relaxed);
    return BUGPACK_OK;
}

#else

bugpack_status bp_ring_detach(bp_ring *ring, bugpack_error *error) {
    if (ring->fd < 0) {
        return BUGPACK_OK;
    }
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "a mapping cannot be replaced on this system");
}

#endif

bool bp_ring_is_detached(const bp_ring *ring) {
    return atomic_load_explicit(&ring->is_detached, memory_order_relaxed);
}
