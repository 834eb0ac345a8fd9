#include <malloc/malloc.h>

#include "base/status.h"
#include "platform/posix/allocator.h"

static bugpack_status read_default(bp_heap_reading *reading, bugpack_error *error) {
    malloc_statistics_t sum = {0};
    /* No zone means all of them (malloc/malloc.h). */
    malloc_zone_statistics(NULL, &sum);
    /* A running process has a heap: all zero is no answer. */
    if (sum.size_allocated == 0) {
        return bp_fail(error, BUGPACK_ERR_IO, "malloc_zone_statistics says nothing");
    }
    reading->state = bp_heap_state_of("libmalloc");
    reading->state.allocated_bytes = sum.size_in_use;
    /* One sum is kept of what is taken from the system. */
    reading->state.active_bytes = sum.size_allocated;
    reading->state.mapped_bytes = sum.size_allocated;
    return BUGPACK_OK;
}

bugpack_status bp_allocator_read(bp_heap_reading *ret_reading, bugpack_error *error) {
    return bp_allocator_read_with(read_default, ret_reading, error);
}
