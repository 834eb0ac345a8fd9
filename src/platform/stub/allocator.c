#include "platform/allocator.h"

#include "base/status.h"

bugpack_status bp_allocator_read(bp_heap_reading *ret_reading, bugpack_error *error) {
    (void)ret_reading;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "there is no way to ask an allocator here");
}
