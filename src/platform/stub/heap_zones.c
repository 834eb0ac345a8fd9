#include "platform/heap.h"

#include "base/status.h"

bugpack_status bp_heap_zones_read(bp_heap_zones *ret_zones, bugpack_error *error) {
    (void)ret_zones;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the allocator of this system has no zones");
}
