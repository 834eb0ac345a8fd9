/*
 * Where libzip reads a report from: a zip_source over a descriptor. What was checked in memory, the
 * directory and the end, comes from there, so that a file which changes meanwhile cannot show
 * libzip another directory than the one that was looked at.
 */
#ifndef BP_ARCHIVE_READER_SOURCE_H
#define BP_ARCHIVE_READER_SOURCE_H

#include <stdint.h>

#include <zip.h>

#include "archive/directory.h"

/* In the caller's storage, and alive for as long as the source that was made of it. */
typedef struct bp_reader_source {
    int fd;                        /* borrowed */
    const bp_directory *directory; /* borrowed */
    uint64_t offset;
    int system_errno; /* of the first read that failed; 0 when none has */
    zip_error_t zip_error;
} bp_reader_source;

/*
 * Makes the source that zip_open_from_source takes. NULL when memory is short. zip_source_free
 * frees it, or libzip once it owns it.
 */
zip_source_t *bp_reader_source_new(bp_reader_source *source, int fd, const bp_directory *directory);

#endif
