/*
 * Bytes that are too many for memory, as the copies of the rings: a file without a name, which is
 * deleted when it is closed. One thread at a time. Nothing is synced. If the host closes its
 * descriptor, reading and writing fail with EBADF, whatever the host opens at its number.
 *
 * Writing past RLIMIT_FSIZE raises SIGXFSZ, which kills, unless the calling thread blocks it, as
 * bugpack's own threads do: then the write fails with EFBIG.
 */
#ifndef BP_BASE_TEMP_FILE_H
#define BP_BASE_TEMP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/cancel.h"
#include "base/fd_mark.h"

/* Writes are gathered in `pending` (64 KiB); the first failure sticks, like in a bp_buffer. */
typedef struct bp_temp_file {
    int fd; /* -1: it is closed */
    bp_fd_mark mark;
    uint64_t size; /* what was written to it, pending bytes included */
    uint64_t max_size;
    bp_buffer pending;
    const bp_cancel_token *token; /* borrowed; checked before each write. NULL: nobody stops it */
    bugpack_status status;
    int system_errno;
} bp_temp_file;

/* A closed one. All zero is not closed: its descriptor would be standard input. */
#define BP_TEMP_FILE_INIT                                                                          \
    { .fd = -1 }

/*
 * Opens one in the directory `dir_fd` for at most `max_size` bytes. `temp_file` may be
 * uninitialised; an open one would leak. On failure (IO with the errno) it is closed.
 */
bugpack_status bp_temp_file_open(bp_temp_file *temp_file, int dir_fd, uint64_t max_size,
                                 bugpack_error *error);

/* Closes it; the bytes are gone. It may be closed already. */
void bp_temp_file_release(bp_temp_file *temp_file);

bool bp_temp_file_is_open(const bp_temp_file *temp_file);

/* True if the host has closed its descriptor: what was read since then may not be all. */
bool bp_temp_file_is_lost(const bp_temp_file *temp_file);

/*
 * Appends. INVALID for a closed one; LIMIT, and nothing is appended, where it would hold more
 * than `max_size` bytes; IO, where how much was written is not known; CANCELLED or TIMEOUT, where
 * its token is due. All of them stick.
 */
bugpack_status bp_temp_file_write(bp_temp_file *temp_file, const void *bytes, size_t byte_count);
/* A bp_sink whose context is a bp_temp_file. */
bugpack_status bp_temp_file_sink(void *temp_file, const void *bytes, size_t byte_count);

/*
 * Writes what is pending and frees its memory; after it the file holds all `size` bytes. Reports
 * the first failure, also one that an earlier call has returned. Writing may go on afterwards.
 */
bugpack_status bp_temp_file_flush(bp_temp_file *temp_file, bugpack_error *error);

/*
 * Drops what was written behind `size`, and with it a failure: writing goes on there. All before it
 * must have been flushed, because a failed write loses what was pending.
 */
void bp_temp_file_cut(bp_temp_file *temp_file, uint64_t size);

/*
 * Reads back, after a flush: up to `byte_count` bytes at `offset`; fewer only at the end, -1
 * with errno.
 */
int64_t bp_temp_file_read(const bp_temp_file *temp_file, uint64_t offset, void *bytes,
                          size_t byte_count);

#endif
