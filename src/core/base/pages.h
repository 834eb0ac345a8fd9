/*
 * Blocks of memory straight from the system, for what is large and does not last.
 *
 * glibc keeps what is freed: once a block of 128 KiB or more of malloc's has been freed, up to
 * twice its size may stay unused in each arena of the host, for good (M_MMAP_THRESHOLD and
 * M_TRIM_THRESHOLD in mallopt(3)).
 */
#ifndef BP_BASE_PAGES_H
#define BP_BASE_PAGES_H

#include <stddef.h>

/* Zeros, aligned to 64 bytes; what is not written is not resident. NULL without memory. */
void *bp_pages_new(size_t byte_count);

/* Gives all of it back to the system. NULL is fine. */
void bp_pages_free(void *block);

#endif
