/*
 * Bytes that are too many to hold in memory: a file without a name, which goes with its descriptor.
 *
 * What a report collects passes through spools, so that rings of 50 MiB cost a report no more
 * memory than their pieces. One thread at a time.
 */
#ifndef BP_BASE_SPOOL_H
#define BP_BASE_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"

/* Writes are gathered in `pending` (64 KiB); the first failure sticks, like in a bp_buffer. */
typedef struct bp_spool {
    int fd; /* -1: none yet */
    uint64_t size;
    uint64_t max_size;
    bp_buffer pending;
    bugpack_status status;
    int system_errno;
} bp_spool;

/*
 * A spool in the directory `dir_fd` (O_TMPFILE, or a file of mode 0600 that is unlinked at once).
 * Close-on- exec. It holds at most `max_size` bytes.
 */
bugpack_status bp_spool_open(bp_spool *spool, int dir_fd, uint64_t max_size, bugpack_error *error);
void bp_spool_release(bp_spool *spool);

bugpack_status bp_spool_write(bp_spool *spool, const void *bytes, size_t byte_count);
/* A bp_sink whose context is a bp_spool. */
bugpack_status bp_spool_sink(void *spool, const void *bytes, size_t byte_count);

/* Writes what is pending; after it the file holds all `size` bytes. Reports the first failure. */
bugpack_status bp_spool_flush(bp_spool *spool, bugpack_error *error);

/* Reads back, after a flush: up to `byte_count` bytes at `offset`; 0 at the end, -1 with errno. */
int64_t bp_spool_read(const bp_spool *spool, uint64_t offset, void *bytes, size_t byte_count);

#endif
