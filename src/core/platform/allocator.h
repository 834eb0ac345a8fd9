/* The heap of our own process, as its allocator reports it. */
#ifndef BP_PLATFORM_ALLOCATOR_H
#define BP_PLATFORM_ALLOCATOR_H

#include <bugpack/error.h>
#include <bugpack/heap_state.h>

typedef struct bp_heap_reading {
    bugpack_heap_state state;
    /* a linked jemalloc that has allocated nothing, one clause; "" when there is none */
    char unused[160];
    /* what the allocator did not report, and why: "stats.active: Invalid argument"; "" when
     * complete */
    char missing[256];
} bp_heap_reading;

/*
 * Finds the allocator and reads its counters. Takes the dynamic linker's lock and the allocator's
 * own: if a thread hangs inside one of them, this hangs too. Any thread. Errors: UNSUPPORTED when
 * no known allocator is in use; the sentence says what was found.
 */
bugpack_status bp_allocator_read(bp_heap_reading *ret_reading, bugpack_error *error);

#endif
