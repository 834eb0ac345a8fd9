/*
 * The public structs that hosts pass, and their initialisers.
 */
#include "base/struct_size.h"

#include <bugpack/bindings.h>

#define DESCRIBE(type) const bp_struct bp_of_##type = BP_STRUCT(type);
#define DEFINE_INIT(type)                                                                          \
    void type##_init(type *fresh, size_t struct_size) {                                            \
        bp_struct_init(fresh, struct_size);                                                        \
    }
BP_PUBLIC_STRUCTS(DESCRIBE)
DEFINE_INIT(bugpack_disconnect_details)
DEFINE_INIT(bugpack_event)
DEFINE_INIT(bugpack_pedantic_state)
DEFINE_INIT(bugpack_recover_options)
DEFINE_INIT(bugpack_report_request)
DEFINE_INIT(bugpack_report_result)
DEFINE_INIT(bugpack_options)
DEFINE_INIT(bugpack_recorder_location)
DEFINE_INIT(bugpack_channel_options)

void bugpack_heap_state_init(bugpack_heap_state *fresh, size_t struct_size) {
    const bugpack_heap_state unknown = BUGPACK_HEAP_STATE_INIT;
    if (bp_struct_init(fresh, struct_size)) {
        bp_struct_write(&bp_of_bugpack_heap_state, fresh, &unknown);
    }
}
