/*
 * A ring's records in a temporary file: putting them there, and reading them one by one.
 */
#ifndef BP_RING_RING_READER_H
#define BP_RING_RING_READER_H

#include "base/buffer.h"
#include "base/temp_file.h"
#include "ring/ring.h"

/*
 * bp_ring_copy into a new temporary file in `dir_fd`, which keeps `token` (borrowed, may be NULL;
 * ends the copy early). The caller releases `ret_records`, also after a failure.
 */
bugpack_status bp_ring_copy_to_file(bp_ring *ring, uint64_t until_ns, int dir_fd,
                                    const bp_cancel_token *token, bp_temp_file *ret_records,
                                    bp_ring_view *ret_view, bugpack_error *error);

/* A position in the records. Memory: 64 KiB, or one record when that is larger. */
typedef struct bp_ring_reader {
    const bp_temp_file *temp_file; /* borrowed, flushed */
    uint64_t offset;
    bp_buffer window;
    size_t window_offset;
} bp_ring_reader;

void bp_ring_reader_init(bp_ring_reader *reader, const bp_temp_file *temp_file);
void bp_ring_reader_release(bp_ring_reader *reader);

/*
 * The next record, or NULL at the end and where the file cannot be read: then `offset` is not the
 * file's size. Both pointers are valid until the next call. The payload is aligned to 8.
 */
const bp_ring_record *bp_ring_reader_next(bp_ring_reader *reader, const void **ret_payload);

#endif
