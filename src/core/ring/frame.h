/*
 * The layout of a ring, the same in memory and in a file: one header page, then the data area,
 * which chunk.h divides. Other processes and later versions read it.
 *
 * A frame is a mark, a bp_ring_record, the payload, and padding to 8.
 */
#ifndef BP_RING_FRAME_H
#define BP_RING_FRAME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sanitizer.h"
#include "ring/record.h"

#define BP_FRAME_MAGIC 0x31676e6972707562u /* "bupring1", little endian */
#define BP_FRAME_VERSION 3u
#define BP_FRAME_DATA_START 4096u
#define BP_FRAME_CAPACITY_MIN 4096u
#define BP_FRAME_CAPACITY_MAX ((uint64_t)1 << 30)

/* The most that a ring's header page has room for, beside its own fields. */
#define BP_RING_ABOUT_MAX_BYTES 256u

/*
 * The header page. Fields written once and fields written often are on different cache lines.
 */
typedef struct bp_frame_page {
    uint64_t magic;
    uint32_t version, data_start;
    uint64_t capacity;
    uint64_t seed; /* random, so that a payload cannot be forged to look like a frame */
    uint64_t chunk_bytes;
    uint64_t check; /* hash of the fields above */
    /* Of the process that writes; 0: none. Once a second. */
    _Atomic uint64_t alive_ns, alive_offset_ns; /* monotonic time; wall time = that + offset */
    _Atomic uint64_t refused_count;
    _Atomic uint64_t begun_count; /* chunks that were taken from the pool */
    /* Set by bp_ring_publish: whose ring this is. */
    uint32_t kind, number;
    uint64_t owner_check; /* hash of the two, the seed and the session's id; 0: not published */
    unsigned char about[BP_RING_ABOUT_MAX_BYTES];
} bp_frame_page;

/*
 * The mark is 0 until the frame is complete. Its upper half is a hash of seed, offset and record,
 * so that a scan of damaged bytes recognises a frame cheaply; its lower half is a hash of the
 * payload, with the lowest bit set.
 */
typedef struct bp_frame {
    _Atomic uint64_t mark;
    bp_ring_record record;
} bp_frame;

/*
 * A record that does not fit into what is left of a chunk is divided. Each of its pieces is a frame
 * with these bits in `payload_bytes` and a bp_frame_link before its bytes. All but the last end
 * with their chunk, and are no records: what makes a record of them is the last one.
 */
#define BP_FRAME_PIECE 0x80000000u
#define BP_FRAME_GOES_ON 0x40000000u /* not the last one */

/* Where the piece before is, and how many bytes there are in all before this one; 0: it is the
 * first. */
typedef struct bp_frame_link {
    uint32_t turn;
    uint16_t chunk;
    uint16_t word; /* of the piece in its chunk, in units of 8 bytes */
    uint64_t before_bytes;
} bp_frame_link;

static inline uint64_t bp_frame_payload_bytes(const bp_ring_record *record) {
    return record->payload_bytes & ~(BP_FRAME_PIECE | BP_FRAME_GOES_ON);
}

static inline uint64_t bp_frame_padded(uint64_t payload_bytes) {
    return (payload_bytes + 7) & ~(uint64_t)7;
}

static inline uint64_t bp_frame_bytes(uint64_t payload_bytes) {
    return sizeof(bp_frame) + bp_frame_padded(payload_bytes);
}

/*
 * ThreadSanitizer does not support fences, and gcc refuses them under it. The machines it runs on
 * keep the order of stores and of loads by themselves.
 */
static inline void bp_frame_fence(memory_order order) {
#if BP_THREAD_SANITIZER
    atomic_signal_fence(order);
#else
    atomic_thread_fence(order);
#endif
}

uint64_t bp_frame_new_seed(void);
uint64_t bp_frame_page_check(const bp_frame_page *page);
/* Never 0. */
uint64_t bp_frame_owner_check(const bp_frame_page *page, const char *session_id);

/*
 * Computes the mark of a frame at this offset of the data area.
 *
 * Of a payload over BP_FRAME_HASH_WHOLE bytes only the first BP_FRAME_LINE bytes of each sector are
 * hashed: 54 ns for 16 KiB, and 850 ns for all of it, where the copy takes 300 ns. The checksum is
 * for writes torn by a loss of power, and disks tear between sectors. An old sector that begins
 * like the new one is not noticed. The hash is of the copy in the ring, because another process may
 * be changing the caller's bytes.
 */
#define BP_FRAME_SECTOR 512u
#define BP_FRAME_LINE 16u
#define BP_FRAME_HASH_WHOLE 256u

uint64_t bp_frame_mark(uint64_t seed, uint64_t offset, const bp_ring_record *record,
                       const unsigned char *payload);

/* Writes a frame at `offset` of the data area, its mark last. The parts are the payload. */
void bp_frame_write(unsigned char *data, uint64_t offset, uint64_t seed,
                    const bp_ring_record *record, const struct iovec *parts, size_t part_count);

/*
 * Copies what may be overwritten meanwhile, as in a seqlock: the result is valid only where a word
 * that writers change before they overwrite anything, read after bp_frame_fence(acquire), is as it
 * was. All three arguments are multiples of 8.
 */
void bp_frame_copy_racing(void *to, const void *from, size_t byte_count);

/* True if `mark` fits this record at this offset; the payload is not checked. */
bool bp_frame_is_beginning(uint64_t mark, uint64_t seed, uint64_t offset,
                           const bp_ring_record *record);

#endif
