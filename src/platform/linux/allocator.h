/*
 * Counts the arenas in the XML of malloc_info(3), given piece by piece. Pure.
 */
#ifndef BP_PLATFORM_LINUX_ALLOCATOR_H
#define BP_PLATFORM_LINUX_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

/* Starts as zeroes. */
typedef struct bp_arena_count {
    uint64_t count;
    size_t matched_bytes; /* of the tag that opens an arena */
} bp_arena_count;
void bp_arena_count_add(bp_arena_count *arenas, const char *bytes, size_t byte_count);

#endif
