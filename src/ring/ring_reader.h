/*
 * Walks records that bp_ring_copy or bp_ring_recover put into a spool.
 */
#ifndef BP_RING_RING_READER_H
#define BP_RING_RING_READER_H

#include "base/buffer.h"
#include "base/temp_file.h"
#include "ring/ring.h"

/* Where a walk stands. Memory: 64 KiB, or one record when that is larger. */
typedef struct bp_ring_reader {
    const bp_temp_file *temp_file; /* borrowed, flushed */
    uint64_t offset;
    bp_buffer window;
    size_t window_offset;
} bp_ring_reader;

void bp_ring_reader_init(bp_ring_reader *reader, const bp_temp_file *temp_file);
void bp_ring_reader_release(bp_ring_reader *reader);

/*
 * The next record, or NULL at the end or where the spool cannot be read. Both pointers are valid
 * until the next call. The payload is aligned to 8.
 */
const bp_ring_record *bp_ring_reader_next(bp_ring_reader *reader, const void **ret_payload);

#endif
