#include "platform/heap.h"

#include <malloc/malloc.h>

#include "base/status.h"

bugpack_status bp_heap_zones_read(bp_heap_zones *ret_zones, bugpack_error *error) {
    malloc_statistics_t sum = {0};
    /* No zone means all of them (malloc/malloc.h). */
    malloc_zone_statistics(NULL, &sum);
    /* A running process has a heap: nothing at all is no answer. */
    if (sum.size_allocated == 0) {
        return bp_fail(error, BUGPACK_ERR_IO, "malloc_zone_statistics says nothing");
    }
    bp_known_uint held = {.known = true, .value = sum.size_allocated};
    *ret_zones = (bp_heap_zones){.allocated_bytes = {.known = true, .value = sum.size_in_use},
                                 .active_bytes = held,
                                 .mapped_bytes = held};
    return BUGPACK_OK;
}
