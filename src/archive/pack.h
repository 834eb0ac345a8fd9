/*
 * One entry's bytes made smaller, where that is possible.
 *
 * libzip could deflate while it writes, but then the method is settled before the size is known,
 * and what does not shrink (pictures, encrypted traffic) is written larger than it was. Packed
 * beforehand, in memory, each entry is the smaller of the two, and libzip only copies.
 */
#ifndef BP_ARCHIVE_PACK_H
#define BP_ARCHIVE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/stop.h"
#include "base/buffer.h"

typedef struct bp_packed {
    uint32_t crc; /* of the plain bytes */
    bool is_deflated;
    size_t stored_bytes; /* how many the zip will hold */
    bp_buffer deflated;  /* a raw deflate stream, smaller than the plain bytes; or empty */
} bp_packed;

/*
 * Deflates at level 6, asking `stop` after every 64 KiB. False when it was stopped or memory is
 * short, which `stop` then says. Release `ret_packed->deflated`, which never is over `byte_count`.
 */
bool bp_pack(const void *bytes, size_t byte_count, bp_stop *stop, bp_packed *ret_packed);

#endif
