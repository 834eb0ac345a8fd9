/*
 * A byte-bounded ring of records: the newest that fit, oldest out first.
 *
 * Any number of threads append; a reader copies records out in pieces, and who waits to append or
 * to mark goes before its next piece, so that nobody waits for longer than one piece takes. A mark
 * names an instant: records appended after it carry higher sequence numbers, so a frozen view is
 * all records up to a mark.
 */
#ifndef BP_RING_RING_H
#define BP_RING_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/clock.h"

typedef struct bp_ring bp_ring;

/* A record as a reader sees it: this header, then `payload_bytes` bytes, then padding to 8. */
typedef struct bp_ring_record {
    uint64_t sequence; /* from 1, without gaps, in the order of commits */
    bp_instant at;
    uint64_t payload_bytes;
} bp_ring_record;

/*
 * A ring of `capacity_bytes` (rounded up to a page), headers included, all allocated and touched
 * now: an append never allocates. Bounds: 4 KiB to 1 GiB.
 */
bugpack_status bp_ring_new(size_t capacity_bytes, bp_ring **ret_ring, bugpack_error *error);
void bp_ring_free(bp_ring *ring);

/* The largest record that the ring accepts: a quarter of it, with its header. At least 992. */
size_t bp_ring_payload_max_bytes(const bp_ring *ring);

/*
 * Appends one record gathered from `parts`. One that is larger than the maximum is
 * refused, counted as dropped, and 0 comes back; otherwise its sequence number. Any thread.
 */
uint64_t bp_ring_append(bp_ring *ring, bp_instant at, const struct iovec *parts, size_t part_count);

/* The sequence number of the newest record, 0 when there was none. Any thread. */
uint64_t bp_ring_mark(bp_ring *ring);

/* What a reader got. `evicted_count` counts the records up to the mark that are not in the copy. */
typedef struct bp_ring_view {
    uint64_t first_sequence; /* 0 when the view is empty */
    uint64_t last_sequence;
    uint64_t record_count;
    uint64_t evicted_count;
    uint64_t refused_count; /* records that were too large, since the ring was made */
} bp_ring_view;

/*
 * Appends to `out` every record that is still there with a sequence number up to `mark`, oldest
 * first, each a bp_ring_record with payload and padding. Writers go on meanwhile; a record that is
 * overwritten before the reader reaches it is counted as evicted. Any thread.
 */
bugpack_status bp_ring_copy(bp_ring *ring, uint64_t mark, bp_buffer *out, bp_ring_view *ret_view,
                            bugpack_error *error);

/*
 * Walks a copy: returns the record at `*offset` and moves the offset past it, or NULL at the end or
 * where what is left is no whole record. `*ret_payload` points into the copy.
 */
const bp_ring_record *bp_ring_next(const bp_buffer *copy, size_t *offset, const void **ret_payload);

#endif
