/*
 * One entry's bytes made smaller, where that is possible.
 *
 * libzip could deflate while it writes, but then the method is settled before the size is known,
 * and what does not shrink (pictures, encrypted traffic) is written larger than it was. Packed
 * beforehand, each entry is the smaller of the two, and libzip only copies.
 */
#ifndef BP_ARCHIVE_PACK_H
#define BP_ARCHIVE_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/bytes.h"
#include "archive/stop.h"
#include "base/buffer.h"

typedef struct bp_packed {
    uint32_t crc; /* of the plain bytes */
    bool is_deflated;
    bp_bytes stored;    /* what the zip will hold: the plain bytes, or a raw deflate stream */
    bp_buffer deflated; /* that stream, where it is in memory */
} bp_packed;

/* What packing needs: a crew with the memory of a few chunks, and a spool. One thread at a time. */
typedef struct bp_packer bp_packer;

/*
 * What was deflated of entries over 256 KiB lies in a spool in `dir_fd`, which is borrowed, until
 * the packer is freed; with -1 it is in memory like that of the smaller ones. `helpers` and
 * `stop` are borrowed. NULL when memory is short.
 */
bp_packer *bp_packer_new(int dir_fd, const bp_archive_helpers *helpers, bp_stop *stop);
void bp_packer_free(bp_packer *packer);

/* Ends the helpers and frees the memory of the chunks; what is in the spool stays. */
void bp_packer_rest(bp_packer *packer);

/*
 * Deflates, and asks `stop` before every chunk. False when it was stopped, memory is short, or
 * something could not be read or written, which `stop` then says. Release `ret_packed->deflated`.
 */
bool bp_pack(bp_packer *packer, const bp_bytes *plain, bp_packed *ret_packed);

#endif
