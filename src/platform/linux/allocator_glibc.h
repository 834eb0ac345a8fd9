/*
 * glibc's own malloc.
 */
#ifndef BP_PLATFORM_LINUX_ALLOCATOR_GLIBC_H
#define BP_PLATFORM_LINUX_ALLOCATOR_GLIBC_H

#include <stdbool.h>

#include "platform/posix/allocator_symbol.h"

/* Reads the state with mallinfo2(3), which is looked up: glibc has it since 2.33. */
void bp_glibc_read(bp_symbol *mallinfo2, bp_heap_reading *reading);

/*
 * How many arenas the XML of malloc_info(3) tells of, given to it piece by piece; pure. Start from
 * zeros.
 */
typedef struct bp_arena_count {
    uint64_t count;
    size_t matched_bytes; /* of the tag that opens an arena */
} bp_arena_count;
void bp_arena_count_add(bp_arena_count *arenas, const char *bytes, size_t byte_count);

#endif
