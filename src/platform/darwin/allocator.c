#include "platform/heap.h"
#include "platform/posix/allocator_symbol.h"

static uint64_t known_or_not(bp_known_uint number) {
    return number.known ? number.value : BUGPACK_HEAP_UNKNOWN;
}

bugpack_status bp_allocator_read_default(bp_heap_reading *reading, bugpack_error *error) {
    bp_heap_zones zones;
    bugpack_status status = bp_heap_zones_read(&zones, error);
    if (status == BUGPACK_OK) {
        reading->state = bp_heap_state_of("libmalloc");
        reading->state.allocated_bytes = known_or_not(zones.allocated_bytes);
        reading->state.active_bytes = known_or_not(zones.active_bytes);
        reading->state.mapped_bytes = known_or_not(zones.mapped_bytes);
    }
    return status;
}
