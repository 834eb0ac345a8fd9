/*
 * The times of entries, as a zip says them.
 */
#ifndef BP_ARCHIVE_TIMES_H
#define BP_ARCHIVE_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/entry.h"

/* The body of an extended-timestamp field (0x5455) with the modification time alone. */
#define BP_TIMES_EXTRA_ID 0x5455
#define BP_TIMES_EXTRA_BYTES 5

/* False for a time that its signed 32 bits cannot say: from 2038-01-19 on there is no field. */
bool bp_times_extra(uint64_t wall_ns, unsigned char out[BP_TIMES_EXTRA_BYTES]);

/*
 * Puts UTC into both headers of every entry. libzip writes local time of the process's zone, and so
 * an hour that a zone skips in spring cannot be had from it, whatever it is given. The entries are
 * in the order of writing, and complete. False on failure, which is told in `stop` or is a libzip
 * that writes in another order than is known (`*ret_is_strange`).
 */
bool bp_times_write_utc(bp_sink *sink, const bp_entry *first, bool *ret_is_strange);

#endif
