/*
 * Appends of many threads at once. The data area is divided into chunks: a table with one
 * bp_chunk_head for each, then the chunks themselves, in which frames follow each other.
 *
 * A writer enters a lane, which holds one chunk and one writer at a time. Two writers share nothing
 * but the lock that a full chunk is replaced under. Chunks come from one pool, the oldest first, so
 * a single writer has all of them. A writer that is preempted in its lane keeps that lane and its
 * chunk; others use another lane, and the pool passes the chunk over.
 *
 * A chunk's state is one word, stored last by each append: a kill at any instant leaves an append
 * in the file, or not at all. Who takes a chunk from the pool first stores the next turn there, so
 * a reader that finds the same turn before and after its copy has copied whole records.
 *
 * A record that is divided (bp_frame_link) is in the file, and counted, with its last piece. It is
 * overwritten with its first one.
 */
#ifndef BP_RING_CHUNK_H
#define BP_RING_CHUNK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "ring/frame.h"

/* A ring has 12 chunks or more, so that what a turn overwrites is little of it. Larger ones would
 * be too much to keep for one lane. */
#define BP_CHUNK_BYTES_MIN 256u
#define BP_CHUNK_BYTES_MAX 65536u
#define BP_CHUNK_LANE_COUNT_MAX 64u

/* Records of others within this time are not overwritten, up to a chunk for each lane. */
#define BP_CHUNK_FLOOR_NS BP_NS_PER_SEC

/* On a cache line of its own. The number of a record is its place among all of its chunk, from 1.
 */
typedef struct bp_chunk_head {
    /* How often it was taken from the pool in the upper half, then 16 bits each: records, and words
     * of 8 bytes that they take. */
    _Atomic uint64_t state;
    /* The records of earlier turns, all overwritten. [turn % 2] is of this turn; the other is
     * written before the next begins, so that both change by one store of the state. */
    _Atomic uint64_t earlier_count[2];
    uint64_t unused[5];
} bp_chunk_head;

static inline uint64_t bp_chunk_turn(uint64_t state) {
    return state >> 32;
}

static inline uint64_t bp_chunk_record_count(uint64_t state) {
    return state >> 16 & 0xffff;
}

static inline uint64_t bp_chunk_used_bytes(uint64_t state) {
    return (state & 0xffff) * 8;
}

/* How a data area is divided. */
typedef struct bp_chunk_layout {
    uint64_t chunk_bytes, chunk_count;
    uint64_t first_offset; /* of the first chunk, behind the table */
} bp_chunk_layout;

bp_chunk_layout bp_chunk_divide(uint64_t capacity);

/* A record is divided where the rest of a chunk has so many bytes: less is left empty. */
static inline uint64_t bp_chunk_rest_bytes(const bp_chunk_layout *layout) {
    uint64_t least = sizeof(bp_frame) + sizeof(bp_frame_link) + 16;
    return layout->chunk_bytes / 16 > least ? layout->chunk_bytes / 16 : least;
}

static inline uint64_t bp_chunk_offset(const bp_chunk_layout *layout, uint64_t chunk) {
    return layout->first_offset + chunk * layout->chunk_bytes;
}

typedef struct bp_chunks bp_chunks;

/* Over a data area of zeros, and its header; both must outlive it, or bp_chunks_shut. It has one
 * lane, so the oldest record is overwritten first, whoever appended it. NULL without memory. */
bp_chunks *bp_chunks_new(bp_frame_page *page, unsigned char *data, const bp_chunk_layout *layout);

/* Gives it as many lanes as it has room for. Before the first append. False without memory. */
bool bp_chunks_share(bp_chunks *chunks);

/* No other thread may be inside. NULL is fine. */
void bp_chunks_free(bp_chunks *chunks);

/*
 * Appends one record of `payload_bytes`, at most a quarter of the data area. The stamp is the
 * entry's, or that of a new look at the clock where a newer record is in the lane already. Returns
 * the stamp, or 0 when they are shut. Any thread.
 */
uint64_t bp_chunks_append(bp_chunks *chunks, const bp_ring_entry *entry, uint64_t stamp_ns,
                          uint64_t payload_bytes);

/* Refuses appends from now on, and waits for those that are inside. Frees all but the lanes, which
 * whoever comes later looks at. */
void bp_chunks_shut(bp_chunks *chunks);

/* Adds up what the lanes counted. Any thread. */
bp_ring_tally bp_chunks_read_tally(const bp_chunks *chunks, uint32_t tally);

/* How often a chunk was taken from the pool: the first time in their order. Any thread. */
uint64_t bp_chunks_begun_count(const bp_chunks *chunks);

#endif
