/*
 * The one room that knows libzip and zlib: writing a zip to a descriptor.
 *
 * libzip never sees a path. It writes through our own sink to a descriptor that the caller staged
 * (platform/staged_file.h) and will publish, so that a report is whole or not there. Entries are
 * complete when they are added, in memory or in a file that nobody else can reach: a file that
 * shrinks while it is read cannot become an entry that claims to be longer than it is.
 */
#ifndef BP_ARCHIVE_ARCHIVE_H
#define BP_ARCHIVE_ARCHIVE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

/* A zip being written. One thread at a time. */
typedef struct bp_archive bp_archive;

/* What to do between two pieces of work: a non-zero return stops the writing with TIMEOUT. */
typedef int bp_archive_poll(void *context);

/*
 * Starts a zip on `fd`, which must be empty, seekable and readable, and stays the caller's. `name`
 * is for error sentences and is copied. `poll` is optional. Fails with NO_MEMORY only.
 */
bugpack_status bp_archive_new(int fd, const char *name, bp_archive_poll *poll, void *poll_context,
                              bp_archive **ret_archive, bugpack_error *error);

/*
 * Lets what is deflated of entries over 256 KiB wait in a nameless file in the directory `dir_fd`
 * until it is copied into the zip, instead of in memory: then finishing takes under 4 MiB however
 * large the entries are. The directory is borrowed until the archive is freed. The same file system
 * as the zip's is a good one: both are full together. Before the first entry.
 */
void bp_archive_use_temp_dir(bp_archive *archive, int dir_fd);

/*
 * Threads that help with the deflating, while an entry over 1 MiB is packed and not longer than
 * bp_archive_finish, unless `poll` stops it: then nobody waits for them, and each ends by itself
 * behind the chunk that it has, without touching anything of the caller's. `start` is
 * bp_thread_start of platform/thread.h, or does the same; where it fails there is one less. `begin`
 * (optional) is the first that each calls: to take a name and to stand back, say.
 */
typedef struct bp_archive_helpers {
    unsigned count; /* at most 2 are used */
    bugpack_status (*start)(void *(*run)(void *), void *argument, pthread_t *ret_thread,
                            bugpack_error *error);
    void (*begin)(void);
} bp_archive_helpers;

/* Before bp_archive_finish. What is written does not depend on it. */
void bp_archive_use_helpers(bp_archive *archive, bp_archive_helpers helpers);

/*
 * Adds one entry, deflated where that is smaller. The bytes are borrowed and must stay unchanged
 * until bp_archive_finish. `name` is UTF-8 that the caller has checked. `wall_ns` is the entry's
 * time: UTC in the DOS field (clamped to what that can say: 1980 to 2107) and exact to the second
 * in the extended-timestamp field (0x5455), which unzip shows in the reader's zone; from 2038-01-19
 * on, which its 32 bits cannot say, that field is left out.
 *
 * INVALID, and nothing has changed: a name that is empty, over 65,535 bytes, not UTF-8 or there
 * already. NO_MEMORY: the archive may be over, so that finish refuses it.
 */
bugpack_status bp_archive_add(bp_archive *archive, const char *name, const void *bytes,
                              size_t byte_count, uint64_t wall_ns, bugpack_error *error);

/*
 * The same from a descriptor: `byte_count` bytes from its start, read in pieces when the archive is
 * finished, without moving its offset. It is borrowed until then and nobody may write to it (a
 * spool of ours). A file that gives fewer bytes fails the archive.
 */
bugpack_status bp_archive_add_file(bp_archive *archive, const char *name, int fd,
                                   uint64_t byte_count, uint64_t wall_ns, bugpack_error *error);

/*
 * Compresses and writes everything, in the order of adding; entries are 0600 regular files. Unless
 * bp_archive_use_temp_dir was called, what was deflated is in memory until it returns. On success
 * the descriptor holds a whole zip of
 * `*ret_bytes` bytes (not yet synced). On failure what it holds is to be thrown away, and the
 * archive is over. An archive without entries is refused (INVALID).
 *
 * IO keeps the errno of the read or write that failed; EIO for a file that ended too early.
 * TIMEOUT: poll said stop; it is asked before every 256 KiB of input and before every write. A
 * file-size limit (RLIMIT_FSIZE) raises SIGXFSZ, which kills, unless the calling thread blocks it,
 * as bugpack's own do (platform/thread.h): then EFBIG.
 */
bugpack_status bp_archive_finish(bp_archive *archive, uint64_t *ret_bytes, bugpack_error *error);

/* How many bytes of the entries were deflated so far, for whoever polls. On the finishing thread.
 */
uint64_t bp_archive_done_bytes(const bp_archive *archive);

/* Frees it, finished or not. NULL is fine. */
void bp_archive_free(bp_archive *archive);

#endif
