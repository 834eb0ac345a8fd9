/*
 * Writes a zip to a descriptor, entry by entry, as a stream.
 *
 * An entry's bytes are filtered, compressed and appended to one temporary file. At the end libzip,
 * which asks for an entry's size and checksum before its bytes, writes headers and directory, and
 * copies the compressed bytes as they are. So memory does not depend on the size of an entry.
 */
#ifndef BP_ARCHIVE_ARCHIVE_H
#define BP_ARCHIVE_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "archive/sha256.h"
#include "base/cancel.h"
#include "base/sink.h"

/* More than a report has. */
#define BP_ARCHIVE_ENTRY_MAX 4096u

/* A zip being written. One thread at a time. */
typedef struct bp_archive bp_archive;

/* `fd` is empty, seekable and the caller's. `name` is for sentences. Both outlive the archive. */
typedef struct bp_archive_target {
    int fd;
    int dir_fd; /* where the temporary file is made (base/temp_file.h) */
    const char *name;
    uint64_t wall_ns;             /* the time of all entries */
    const bp_cancel_token *token; /* checked before every piece of 256 KiB; NULL for none */
} bp_archive_target;

/* Starts a zip. NO_MEMORY, or IO with the errno; it takes under 1.5 MiB. */
bugpack_status bp_archive_new(const bp_archive_target *target, bp_archive **ret_archive,
                              bugpack_error *error);

/* Frees it, finished or not. NULL is fine. */
void bp_archive_free(bp_archive *archive);

/*
 * Gets all bytes of all entries before they are compressed, and passes on what is to be written.
 * With `bytes` NULL the entry ends, and what was held back is passed on. An entry that is rolled
 * back ends without that call. Any status but OK fails the entry.
 */
typedef bugpack_status bp_archive_filter(void *context, const char *entry, const void *bytes,
                                         size_t byte_count, bp_sink *pass_on, void *archive);

/* Sets the filter. Before the first entry. */
void bp_archive_set_filter(bp_archive *archive, bp_archive_filter *filter, void *context);

/*
 * Starts an entry; only one is open at a time. `name` is copied. The directory is sorted by `rank`,
 * and entries of one rank are in the order of writing.
 *
 * NO_MEMORY, or INVALID, and nothing has changed: a name that is empty, over 65,535 bytes, not
 * UTF-8 or there already; BP_ARCHIVE_ENTRY_MAX entries; another one is open.
 */
bugpack_status bp_archive_begin(bp_archive *archive, const char *name, unsigned rank,
                                bugpack_error *error);

/*
 * A bp_sink whose context is the archive: appends to the open entry. The first failure sticks to
 * the entry, and bp_archive_end reports it. A file-size limit (RLIMIT_FSIZE) raises SIGXFSZ, which
 * kills, unless the calling thread blocks it, as bugpack's own do (platform/thread.h).
 */
bugpack_status bp_archive_write(void *archive, const void *bytes, size_t byte_count);

/* The first failure of the open entry with its sentence: IO with the errno, CANCELLED, TIMEOUT. */
bugpack_status bp_archive_check(const bp_archive *archive, bugpack_error *error);

/*
 * Ends the open entry: deflated, or stored where it has at most 256 KiB and does not shrink.
 * `ret_bytes` is its size before that. On failure it is rolled back, and others may follow.
 */
bugpack_status bp_archive_end(bp_archive *archive, uint64_t *ret_bytes, bugpack_error *error);

/* The SHA-256 of the bytes of the entry that was ended last, after the filter; once. */
void bp_archive_take_sha256(bp_archive *archive, char ret_text[BP_SHA256_TEXT_BYTES]);

/* Removes the open entry; without one it does nothing. */
void bp_archive_roll_back(bp_archive *archive);

/* An entry that was ended. */
typedef struct bp_archive_written {
    const char *name; /* valid until the entry is removed */
    uint64_t bytes;
    uint64_t zip_bytes; /* its share of the zip, with its headers */
} bp_archive_written;

/* The bytes of the record that ends the directory. */
enum { BP_ARCHIVE_END_BYTES = 22 };

/* The entries that were ended, in the order of writing, before bp_archive_finish. */
size_t bp_archive_count(const bp_archive *archive);
bp_archive_written bp_archive_get(const bp_archive *archive, size_t index);

/* Removes an entry that was ended. Those behind it move up. */
void bp_archive_remove(bp_archive *archive, size_t index);

/*
 * Writes an entry again: `change` gets all its bytes, and passes on what becomes of them. It is
 * called like a filter, which is not. The entry keeps its place. On failure it is as it was: IO
 * with the errno, NO_MEMORY, LIMIT, CANCELLED, TIMEOUT, and what `change` returns. No entry is
 * open.
 */
bugpack_status bp_archive_change(bp_archive *archive, size_t index, bp_archive_filter *change,
                                 void *context, bugpack_error *error);

/*
 * Writes the directory: the descriptor holds a whole zip of `ret_bytes` bytes, not yet synced. On
 * failure discard it. INVALID without an entry, with one open, and in a second call.
 */
bugpack_status bp_archive_finish(bp_archive *archive, uint64_t *ret_bytes, bugpack_error *error);

#endif
