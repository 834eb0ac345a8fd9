/*
 * Reads a report that may be hostile.
 *
 * We validate the zip (archive/directory.h), and libzip reads it. Every byte that comes out of an
 * entry is counted, against what the entry declares and what the caller allows. No path in the
 * archive is ever used.
 */
#ifndef BP_ARCHIVE_READER_H
#define BP_ARCHIVE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/sink.h"

/* A zip being read. Threads may share it: they inflate in turn, and take what comes out at once. */
typedef struct bp_archive_reader bp_archive_reader;

/* One entry, as the directory declares it. */
typedef struct bp_archive_member {
    const char *name; /* valid UTF-8 without control characters; valid until the reader is freed */
    uint64_t bytes;
    uint64_t packed_bytes; /* in the zip; the same as `bytes` where it is stored */
} bp_archive_member;

/*
 * Opens the zip in `fd`, a regular file, which stays the caller's; its offset moves, and is the
 * reader's alone until that is freed. `path` is for sentences and copied; NULL: the caller says
 * which file it is, and a sentence of CORRUPT begins with what is wrong. CORRUPT with what
 * is wrong; IO with the errno; NO_MEMORY.
 */
bugpack_status bp_archive_reader_open(int fd, const char *path, bp_archive_reader **ret_reader,
                                      bugpack_error *error);

/* Frees it. NULL is fine. */
void bp_archive_reader_free(bp_archive_reader *reader);

/* Entries in the order of the archive: at least one. */
size_t bp_archive_reader_count(const bp_archive_reader *reader);
bp_archive_member bp_archive_reader_member(const bp_archive_reader *reader, size_t index);

/* The entry of exactly this name, or false. */
bool bp_archive_reader_find(const bp_archive_reader *reader, const char *name, size_t *ret_index);

/*
 * Gives the bytes of an entry to `sink`, in pieces of at most 64 KiB and never more of them than
 * the entry declares. Their checksum is known only at the end: on failure what the sink got is to
 * be thrown away.
 *
 * NO_MEMORY: the entry declares more than `max_bytes`, and nothing was read; or memory is short.
 * CORRUPT: it has more or fewer bytes than it declares, a wrong checksum, or is not deflated right.
 * IO with the errno. Whatever the sink returned.
 */
bugpack_status bp_archive_reader_read(const bp_archive_reader *reader, size_t index,
                                      uint64_t max_bytes, bp_sink *sink, void *context,
                                      bugpack_error *error);

/* An entry that is read in steps, while others are. It takes under 128 KiB. One thread at a time.
 */
typedef struct bp_archive_stream bp_archive_stream;

/* Starts to read an entry. The stream goes before the reader does. NO_MEMORY. */
bugpack_status bp_archive_stream_open(const bp_archive_reader *reader, size_t index,
                                      bp_archive_stream **ret_stream, bugpack_error *error);
/* NULL is fine. */
void bp_archive_stream_close(bp_archive_stream *stream);

/*
 * Gives the next bytes to `sink`, at most 4 KiB. `ret_is_over` says whether that was the end, where
 * the checksum was checked. Errors: those of bp_archive_reader_read, after which the stream is only
 * closed.
 */
bugpack_status bp_archive_stream_next(bp_archive_stream *stream, bp_sink *sink, void *context,
                                      bool *ret_is_over, bugpack_error *error);

#endif
