/*
 * Validates a zip that may be hostile, before anything in it is read.
 *
 * Libraries accept much that no report has, libzip 1.7.3 also with its consistency checks: names
 * that lead elsewhere, entries that share their bytes, an archive whose end was zeroed as an empty
 * one. A report has entries one after the other from byte 0, each with a header that agrees with
 * the directory; the directory after the last; then the end, without a comment; and nothing else.
 * Its entries are regular files with plain names, stored or deflated, with sizes before their
 * bytes. All sizes are below 4 GiB: there is no zip64.
 */
#ifndef BP_ARCHIVE_DIRECTORY_H
#define BP_ARCHIVE_DIRECTORY_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

/* Far more than a report has, and few enough to be held in memory. */
#define BP_DIRECTORY_ENTRY_MAX 16384u
#define BP_DIRECTORY_BYTES_MAX ((size_t)8 << 20)
#define BP_DIRECTORY_NAME_MAX 255u

/* A zip's headers without their names in bytes, and its methods (APPNOTE.TXT 4.3). */
enum { BP_ZIP_LOCAL_BYTES = 30, BP_ZIP_CENTRAL_BYTES = 46, BP_ZIP_STORED = 0, BP_ZIP_DEFLATED = 8 };

/* One entry as the directory declares it; whether its bytes agree is for the reader to see. */
typedef struct bp_directory_entry {
    const char *name; /* owned by the directory */
    uint16_t name_bytes, method;
    uint32_t crc;
    uint64_t bytes, packed_bytes;
    uint64_t header_offset;
} bp_directory_entry;

typedef struct bp_directory {
    bp_directory_entry *entries;
    size_t entry_count;   /* at least 1 */
    unsigned char *bytes; /* in which the names are */
} bp_directory;

/*
 * Reads and checks the zip in `fd`, without moving its offset, and without the bytes of entries.
 * `path` is for sentences, or NULL as in bp_archive_refuse; the caller releases `ret_directory`.
 * CORRUPT with what is wrong, NO_MEMORY, IO with the errno.
 */
bugpack_status bp_directory_read(int fd, const char *path, bp_directory *ret_directory,
                                 bugpack_error *error);
void bp_directory_release(bp_directory *directory);

/* CORRUPT: "\"x.zip\" is damaged: it ends early"; where `path` is NULL, as the caller says which
 * file it is, "it ends early" alone. */
bugpack_status bp_archive_refuse(const char *path, const char *verdict, bugpack_error *error,
                                 const char *format, ...) BUGPACK_PRINTF(4, 5);
/* The path, or what stands for one that is NULL. */
const char *bp_archive_name(const char *path);

#endif
