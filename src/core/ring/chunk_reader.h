/*
 * The records of a ring's chunks (chunk.h), merged in the order of their stamps; from memory that
 * is being written, or from a file that may be anything.
 *
 * Each chunk is copied whole when the first of its records is due, so a few are in memory at a
 * time: the stamps of a lane ascend, and its chunks follow each other. A chunk that was taken from
 * the pool meanwhile is lost, and its records count as overwritten. The pieces of a record are read
 * when its last one is due.
 */
#ifndef BP_RING_CHUNK_READER_H
#define BP_RING_CHUNK_READER_H

#include <bugpack/error.h>

#include "base/sink.h"
#include "ring/chunk.h"

typedef struct bp_chunk_source {
    bp_chunk_layout layout;
    uint64_t seed;
    bool is_trusted; /* else each record is compared with its checksum */
    uint64_t begun_count;
    /* Reads so many bytes from an offset in the data area; all three multiples of 8. What is read
     * later in the program is read later. 0, or an errno. */
    int (*read)(void *context, uint64_t offset, void *bytes, size_t byte_count);
    void *context;
} bp_chunk_source;

/* The head of a chunk. `unused` stays as it is. 0, or an errno. */
int bp_chunk_read_head(const bp_chunk_source *source, uint64_t chunk, uint64_t *ret_state,
                       uint64_t *ret_earlier_count);

/* The bytes of all records; what cannot be read has none. */
uint64_t bp_chunk_total_used_bytes(const bp_chunk_source *source);

/* The records that are wanted, and what is known about the others. */
typedef struct bp_chunk_reading {
    uint64_t until_ns;     /* none with a later stamp */
    uint64_t max_bytes;    /* the reading ends once so many were given */
    uint64_t *seen_counts; /* of each chunk, in and out; NULL: all are wanted */
    uint64_t lost_count;   /* out: overwritten since they were last asked for */
    bool is_rest;          /* out: `max_bytes` left some */
} bp_chunk_reading;

/* bp_ring_copy, bp_ring_follow and bp_ring_recover. NO_MEMORY, IO, or the sink's failure. */
bugpack_status bp_chunk_read(const bp_chunk_source *source, bp_chunk_reading *reading,
                             bp_sink *sink, void *context, bp_ring_view *ret_view,
                             bugpack_error *error);

#endif
