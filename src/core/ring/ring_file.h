/*
 * The file of a ring of another process, read with pread alone: it may be anything.
 */
#ifndef BP_RING_RING_FILE_H
#define BP_RING_RING_FILE_H

#include "base/cancel.h"
#include "ring/frame.h"
#include "ring/ring.h"

/* CORRUPT when the file is no ring, or was published as another one; IO when it cannot be read. */
bugpack_status bp_ring_file_check_owner(int fd, const char *session_id, bp_ring_kind kind,
                                        uint32_t number, bugpack_error *error);

/*
 * Copies a ring that is being written into the empty file `to_fd`, for bp_ring_recover: the records
 * that were there when the copy began, and still were when it ended. CORRUPT when the file is no
 * ring; IO, NO_MEMORY, CANCELLED, TIMEOUT.
 */
bugpack_status bp_ring_file_copy(int fd, int to_fd, const bp_cancel_token *token,
                                 bugpack_error *error);

/* The bytes of a file's records, by its header; its size when that is damaged. */
uint64_t bp_ring_file_used_bytes(int fd);

#endif
