/*
 * A chunk that does not shrink, as stored blocks (RFC 1951, 3.2.4).
 */
#ifndef BP_ARCHIVE_STORED_H
#define BP_ARCHIVE_STORED_H

#include <stdbool.h>
#include <stddef.h>

/* Like bp_deflate_chunk. Begins on a whole byte, and so does what comes before it. */
size_t bp_stored_chunk(const unsigned char *bytes, size_t byte_count, bool is_last,
                       unsigned char *out);

#endif
