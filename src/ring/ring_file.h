/*
 * The file of a ring whose writer has ended, read with pread alone: it may be anything.
 */
#ifndef BP_RING_RING_FILE_H
#define BP_RING_RING_FILE_H

#include "ring/frame.h"

/*
 * Reads bytes. Those past the end of the file are zeros, and so are those that the device cannot
 * read at the second try (EIO): that is damage, and sets `*is_unreadable`. Returns 0, or the errno
 * of another failure, which may pass.
 */
int bp_ring_file_read(bp_ring_place place, uint64_t from, unsigned char *bytes, size_t byte_count,
                      bool *is_unreadable);

/* Reads the header page. CORRUPT when the file is not a ring of this version; IO when it cannot be
 * read. */
bugpack_status bp_ring_file_read_header(bp_ring_place place, bp_frame_page *ret_page,
                                        bugpack_error *error);

/* Whether head and tail do not contradict each other. */
bool bp_ring_file_has_extent(const bp_frame_page *page);

/* CORRUPT when the file is no ring, or was published as another one; IO when it cannot be read. */
bugpack_status bp_ring_file_check_owner(bp_ring_place place, const char *session_id,
                                        bp_ring_kind kind, uint32_t number, bugpack_error *error);

/* What the records in a file take, by its header; its size when that is damaged. */
uint64_t bp_ring_file_used_bytes(bp_ring_place place);

#endif
