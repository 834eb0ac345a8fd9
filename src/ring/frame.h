/*
 * How records lie in a ring, in memory and in a file alike: one page of header, then the bytes that
 * frames go round in. What is written here is read by other processes, and by later versions.
 *
 * A frame is a mark, a bp_ring_record, the payload, and padding to 8. It never goes over the end:
 * where it does not fit, a pad (one word) sends the reader back to offset 0, which is therefore
 * where a frame always begins. Measured against frames that are split in two, the pad costs at most
 * one record a turn and saves a branch in every copy and every checksum.
 */
#ifndef BP_RING_FRAME_H
#define BP_RING_FRAME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring/ring.h"

#define BP_FRAME_MAGIC 0x31676e6972707562u /* "bupring1", little endian */
#define BP_FRAME_VERSION 1u
#define BP_FRAME_DATA_START 4096u
#define BP_FRAME_CAPACITY_MIN 4096u
#define BP_FRAME_CAPACITY_MAX ((uint64_t)1 << 30)

/*
 * The header page. What is written once and what changes with every record stand on different cache
 * lines. Positions count bytes since the ring was made; modulo the capacity they are offsets.
 */
typedef struct bp_frame_page {
    uint64_t magic;
    uint32_t version, data_start;
    uint64_t capacity;
    uint64_t seed;  /* random: nobody who only supplies payloads can make one look like a frame */
    uint64_t check; /* hash of the above */
    uint64_t unused[3];
    /* Written under the ring's mutex, in the order in which they stand; read without it. */
    _Atomic uint64_t tail;     /* where the oldest record begins */
    _Atomic uint64_t head;     /* where the next will begin */
    _Atomic uint64_t sequence; /* of the newest record; never ahead of head */
    _Atomic uint64_t refused_count;
} bp_frame_page;

/*
 * The mark says that all of the frame is there: it is 0 until that is so. Its upper half is a hash
 * of seed, offset and record, so that a scan of damaged bytes can tell a frame's beginning cheaply;
 * its lower half is one of the payload, with the lowest bit set. A pad's mark has that bit clear.
 */
typedef struct bp_frame {
    _Atomic uint64_t mark;
    bp_ring_record record;
} bp_frame;

static inline uint64_t bp_frame_padded(uint64_t payload_bytes) {
    return (payload_bytes + 7) & ~(uint64_t)7;
}

static inline uint64_t bp_frame_bytes(uint64_t payload_bytes) {
    return sizeof(bp_frame) + bp_frame_padded(payload_bytes);
}

static inline bool bp_frame_is_pad(uint64_t mark) {
    return mark != 0 && (mark & 1) == 0;
}

uint64_t bp_frame_new_seed(void);
uint64_t bp_frame_page_check(const bp_frame_page *page);
uint64_t bp_frame_pad_mark(uint64_t seed, uint64_t offset);

/*
 * A mark in the making. The payload comes in one piece, or in several of which all but the first
 * begin at a multiple of BP_FRAME_SECTOR in the ring.
 *
 * Up to BP_FRAME_HASH_WHOLE bytes all of a payload is hashed. Of a larger one it is the first
 * BP_FRAME_LINE bytes of each sector: the checksum is there for writes that were torn by a loss of
 * power (a killed process loses no store), disks tear between sectors, and so a sector is new or
 * old as a whole. An old one that begins like the new one passes unnoticed. Measured for 16 KiB,
 * which take 300 ns to copy into a large ring: all of it 850 ns, 16 bytes of each sector 54 ns.
 * What is hashed is the copy and not the caller's bytes, which another process may be changing.
 */
#define BP_FRAME_SECTOR 512u
#define BP_FRAME_LINE 16u
#define BP_FRAME_HASH_WHOLE 256u
#define BP_FRAME_LINES 64u

typedef struct bp_frame_hash {
    uint64_t head;
    uint64_t payload;
    size_t gathered;
    bool is_whole;
    unsigned char lines[BP_FRAME_LINES * BP_FRAME_LINE];
} bp_frame_hash;

void bp_frame_hash_begin(bp_frame_hash *hash, uint64_t seed, uint64_t offset,
                         const bp_ring_record *record);
void bp_frame_hash_add(bp_frame_hash *hash, uint64_t offset, const unsigned char *bytes,
                       size_t byte_count);
uint64_t bp_frame_hash_end(bp_frame_hash *hash);

/* The same for a payload that lies in one piece behind its record. */
uint64_t bp_frame_mark(uint64_t seed, uint64_t offset, const bp_ring_record *record,
                       const unsigned char *payload);

/* Whether `mark` can be the mark of this record at this offset; the payload is not looked at. */
bool bp_frame_is_beginning(uint64_t mark, uint64_t seed, uint64_t offset,
                           const bp_ring_record *record);

#endif
