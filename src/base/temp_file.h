/*
 * Bytes that are too many to hold in memory: a file without a name, which goes with its descriptor.
 *
 * What a report collects passes through spools, so that rings of 50 MiB cost a report no more
 * memory than their pieces. One thread at a time. Nothing is synced: a spool is not meant to
 * outlive its process, and most of it never reaches the disk. In a directory on a tmpfs it is
 * memory all the same.
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

/* Writes are gathered in `pending` (64 KiB); the first failure sticks, like in a bp_buffer. */
typedef struct bp_temp_file {
    int fd;        /* -1: it is closed */
    uint64_t size; /* what was written to it, pending bytes included */
    uint64_t max_size;
    bp_buffer pending;
    const bp_cancel_token
        *token; /* borrowed; asked before each write to the file. NULL: nobody stops it */
    bugpack_status status;
    int system_errno;
} bp_temp_file;

/* A closed spool. What is all zero is not one: its descriptor would be standard input. */
#define BP_TEMP_FILE_INIT                                                                          \
    { .fd = -1 }

/*
 * A spool in the directory `dir_fd` (O_TMPFILE, or a file of mode 0600 that is unlinked at once),
 * readable and writable, close-on-exec, for at most `max_size` bytes. `spool` may be uninitialised;
 * an open one would leak. On failure (IO with the errno) it is a closed one.
 */
bugpack_status bp_temp_file_open(bp_temp_file *temp_file, int dir_fd, uint64_t max_size,
                                 bugpack_error *error);

/*
 * The same by the second way also where the first one works, for the tests of it. Whoever dies
 * between making and unlinking leaves an empty file that bp_staged_file_sweep knows.
 */
bugpack_status bp_temp_file_open_named(bp_temp_file *temp_file, int dir_fd, uint64_t max_size,
                                       bugpack_error *error);

/* Closes it; the bytes are gone. It may be closed already. */
void bp_temp_file_release(bp_temp_file *temp_file);

bool bp_temp_file_is_open(const bp_temp_file *temp_file);

/* Moves the spool into `to`, whose old one goes; `from` is a closed one afterwards. */
void bp_temp_file_move(bp_temp_file *to, bp_temp_file *from);

/*
 * Appends. INVALID for a closed spool; NO_MEMORY, and nothing was taken, where it would hold more
 * than `max_size` bytes; IO, where how much was taken is not known; CANCELLED or TIMEOUT, where its
 * halt is due. All of them stick.
 */
bugpack_status bp_temp_file_write(bp_temp_file *temp_file, const void *bytes, size_t byte_count);
/* A bp_sink whose context is a bp_temp_file. */
bugpack_status bp_temp_file_sink(void *temp_file, const void *bytes, size_t byte_count);

/*
 * Writes what is pending and frees its memory; after it the file holds all `size` bytes. Reports
 * the first failure, also one that an earlier call has returned. Writing may go on afterwards.
 */
bugpack_status bp_temp_file_flush(bp_temp_file *temp_file, bugpack_error *error);

/* Forgets what was written from byte `size` on, which it must have, and gives its room back. */
bugpack_status bp_temp_file_truncate(bp_temp_file *temp_file, uint64_t size);

/*
 * Reads back, after a flush: up to `byte_count` bytes at `offset`; 0 at the end, -1 with errno. A
 * count may be short of what is there.
 */
int64_t bp_temp_file_read(const bp_temp_file *temp_file, uint64_t offset, void *bytes,
                          size_t byte_count);

#endif
