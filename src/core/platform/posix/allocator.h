/*
 * Functions of allocators, found in the running program.
 */
#ifndef BP_PLATFORM_POSIX_ALLOCATOR_H
#define BP_PLATFORM_POSIX_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#include "platform/allocator.h"

/* Any function; converted to what it is before it is called. */
typedef void bp_symbol(void);

/* The program's function of this name; NULL when it has none that can be seen. */
bp_symbol *bp_symbol_find(const char *name);

/* Appends what the allocator did not report, if it fits. */
void bp_heap_reading_miss(bp_heap_reading *reading, const char *what, int system_errno);

/* A state of which only the allocator is known. */
bugpack_heap_state bp_heap_state_of(const char *allocator);

/* Reads the system's allocator. `reading->state` is filled on success. */
typedef bugpack_status bp_allocator_reader(bp_heap_reading *reading, bugpack_error *error);

/* bp_allocator_read: of a jemalloc, or where none is in use, what `read_default` reads. */
bugpack_status bp_allocator_read_with(bp_allocator_reader *read_default,
                                      bp_heap_reading *ret_reading, bugpack_error *error);

/* Counts the arenas in the XML of malloc_info(3) of Linux, given piece by piece. Starts as zeroes.
 */
typedef struct bp_arena_count {
    uint64_t count;
    size_t matched_bytes; /* of the tag that opens an arena */
} bp_arena_count;
void bp_arena_count_add(bp_arena_count *arenas, const char *bytes, size_t byte_count);

#endif
