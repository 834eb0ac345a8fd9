/*
 * Functions of allocators, found in the running program.
 */
#ifndef BP_PLATFORM_POSIX_ALLOCATOR_SYMBOL_H
#define BP_PLATFORM_POSIX_ALLOCATOR_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>

#include "platform/allocator.h"

/* Any function; converted to what it is before it is called. */
typedef void bp_symbol(void);

/* The program's function of this name; NULL when it has none that can be seen. */
bp_symbol *bp_symbol_find(const char *name);

/* Where the object (executable or library) that holds the function begins; NULL when unknown. */
const void *bp_symbol_object(bp_symbol *symbol);

/* Its file name, any bytes; "" when unknown. Valid while the object is loaded. */
const char *bp_symbol_file(bp_symbol *symbol);

/* Appends what the allocator did not report, if it fits. */
void bp_heap_reading_miss(bp_heap_reading *reading, const char *what, int system_errno);

/* A state of which only the allocator is known. */
bugpack_heap_state bp_heap_state_of(const char *allocator);

/*
 * Reads the system's allocator; called when no jemalloc is in use. Once per system. Errors as of
 * bp_allocator_read. `reading->state` is filled on success.
 */
bugpack_status bp_allocator_read_default(bp_heap_reading *reading, bugpack_error *error);

#endif
