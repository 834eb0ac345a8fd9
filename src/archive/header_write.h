/*
 * The headers of a zip, as this version writes them.
 */
#ifndef BP_ARCHIVE_HEADER_WRITE_H
#define BP_ARCHIVE_HEADER_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* What the two headers of an entry say. `name` is UTF-8 of at most 65,535 bytes. */
typedef struct bp_entry_header {
    const char *name;
    uint16_t method;
    uint32_t crc;
    uint64_t bytes, packed_bytes;
    uint64_t offset; /* of the local header */
    uint64_t wall_ns;
} bp_entry_header;

/* How long the header in front of the bytes is. It does not depend on sizes, which come later. */
size_t bp_header_local_bytes(const bp_entry_header *header);

/*
 * Appends the header in front of the bytes, or the one in the directory. Entries are regular files
 * of mode 0600. The time is UTC in the DOS field (clamped to what it can say: 1980 to 2107) and
 * exact to the second in the extended-timestamp field (0x5455), which is left out from 2038-01-19
 * on: its 32 bits cannot say more.
 */
void bp_header_write_local(const bp_entry_header *header, bp_buffer *out);
void bp_header_write_central(const bp_entry_header *header, bp_buffer *out);

/* Appends the end of a zip whose directory is at `offset`, with zip64 records from 4 GiB on. */
void bp_header_write_end(uint16_t entry_count, uint64_t offset, uint32_t directory_bytes,
                         bp_buffer *out);

#endif
