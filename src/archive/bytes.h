/*
 * Bytes that lie somewhere: in memory, or in a part of a file.
 */
#ifndef BP_ARCHIVE_BYTES_H
#define BP_ARCHIVE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/stop.h"

/* What it points to is borrowed. */
typedef struct bp_bytes {
    const void *memory; /* NULL: they are in the file */
    int fd;
    uint64_t offset; /* in the file */
    uint64_t byte_count;
} bp_bytes;

/*
 * Reads exactly `byte_count` bytes from `at` on, all of which must be within the bytes. False on
 * failure, with its errno in `stop`; where the file ends before, that is EIO.
 */
bool bp_bytes_read(const bp_bytes *bytes, uint64_t at, void *out, size_t byte_count, bp_stop *stop);

#endif
