/*
 * jemalloc's counters through its mallctl.
 */
#ifndef BP_PLATFORM_POSIX_JEMALLOC_H
#define BP_PLATFORM_POSIX_JEMALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "platform/allocator.h"

/* mallctl(3) of jemalloc, under whatever name. */
typedef int bp_mallctl(const char *name, void *old, size_t *old_bytes, void *fresh,
                       size_t fresh_bytes);

/*
 * Advances the epoch, exactly once, and reads the counters. One that fails is left unknown and
 * noted in `missing`; all of them when the epoch fails. Only `state` and `missing` are set. False
 * when it is linked and the program has nothing of it.
 */
bool bp_jemalloc_read(bp_mallctl *mallctl, bp_heap_reading *reading);

#endif
