/*
 * The types that a ring shares with the files that it is made of: an entry that is appended, a
 * record as a reader gets it, and the counts of a read.
 */
#ifndef BP_RING_RECORD_H
#define BP_RING_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* A record as a reader gets it: this header, then `payload_bytes` bytes, then padding to 8. */
typedef struct bp_ring_record {
    uint64_t sequence;     /* from 1, in the order of stamps; the overwritten ones come first */
    uint64_t monotonic_ns; /* its stamp: when it was appended */
    uint32_t payload_bytes;
    uint32_t tag; /* the writer's own; a ring ignores it */
} bp_ring_record;

/* The sums of the records that were appended with one tally. */
typedef struct bp_ring_tally {
    uint64_t record_count;
    uint64_t amount;  /* the sum of the entries' amounts */
    uint64_t last_ns; /* the newest stamp; 0: none */
} bp_ring_tally;

/* No payload is larger: a traffic message has up to 16 MiB. */
#define BP_RING_PAYLOAD_MAX (((uint64_t)16 << 20) + 4096)

#define BP_RING_TALLY_COUNT 2u
#define BP_RING_PART_COUNT_MAX 4u

/* One append. Fields may be zero. */
typedef struct bp_ring_entry {
    uint64_t monotonic_ns; /* the stamp, when the caller has just read the clock; 0: now */
    uint32_t tag;
    const struct iovec *parts; /* the payload */
    size_t part_count;         /* up to BP_RING_PART_COUNT_MAX */
    uint32_t tally;            /* that counts the record when it is accepted, from 1; 0: none */
    uint64_t amount;
} bp_ring_entry;

/* The result of a read. */
typedef struct bp_ring_view {
    uint64_t record_count;
    uint64_t first_sequence, last_sequence; /* 0 when the view is empty */
    uint64_t first_ns, last_ns;             /* monotonic times of the oldest and newest */
    uint64_t evicted_count;                 /* records overwritten before or during the copy */
    uint64_t refused_count;                 /* records that were too large */
    /* In a file, committed records that were not evicted and are not whole any more.
     * `damaged_count` is a lower bound: records lost at the beginning cannot be counted. */
    uint64_t damaged_bytes, damaged_count;
    bool is_damaged;
} bp_ring_view;

#endif
