/*
 * What the system's own allocator knows about our heap.
 */
#ifndef BP_PLATFORM_HEAP_H
#define BP_PLATFORM_HEAP_H

#include <bugpack/error.h>

#include "platform/process_facts.h"

/* All zones of the allocator together, in bytes; a number that it does not give is not known. */
typedef struct bp_heap_zones {
    bp_known_uint allocated_bytes; /* given out and not yet given back */
    bp_known_uint active_bytes;    /* held for what is given out; where only one sum is kept, */
    bp_known_uint mapped_bytes;    /* that is taken from the system, both are this one */
} bp_heap_zones;

/*
 * Reads the zones of our own process. Any thread, but none that has stopped another one: each zone
 * is locked for a moment. Errors: UNSUPPORTED where the system's allocator has no zones (everywhere
 * but on macOS), IO when it answers with nothing.
 */
bugpack_status bp_heap_zones_read(bp_heap_zones *ret_zones, bugpack_error *error);

#endif
