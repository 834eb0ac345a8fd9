/*
 * What the allocator that our own process runs on says about the heap.
 */
#ifndef BP_PLATFORM_ALLOCATOR_H
#define BP_PLATFORM_ALLOCATOR_H

#include <bugpack/error.h>
#include <bugpack/heap_state.h>

typedef struct bp_heap_reading {
    bugpack_heap_state state;
    /* Of a jemalloc that is there and has given nothing out, one clause; "" when there is none. */
    char unused[160];
    /* What the allocator has and did not give, and why: "stats.active: Invalid argument"; "" when
     * it gave all that it has. */
    char missing[256];
} bp_heap_reading;

/*
 * Finds the allocator and asks it. Takes the dynamic linker's lock and the allocator's own: a
 * process in which a thread hangs inside one of them hangs here. Any thread.
 * Errors: UNSUPPORTED when none is in use that is known; the sentence says what was found.
 */
bugpack_status bp_allocator_read(bp_heap_reading *ret_reading, bugpack_error *error);

#endif
