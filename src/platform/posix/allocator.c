#include "platform/allocator.h"

#include <stdio.h>

#include "base/status.h"
#include "platform/posix/allocator_symbol.h"
#include "platform/posix/jemalloc.h"

/* Plain, as the library is installed; with the prefix that embedding programs choose; and that of
 * the Rust crates. */
static const char *const mallctl_names[] = {"mallctl", "je_mallctl", "_rjem_mallctl"};

/*
 * A jemalloc counts when it has given something out, whoever malloc is: a program in Rust has one
 * for itself beside the C library's. One that fails to say counts as well.
 */
static bool read_jemalloc(bp_heap_reading *reading) {
    for (size_t i = 0; i < sizeof mallctl_names / sizeof mallctl_names[0]; i++) {
        bp_mallctl *mallctl = (bp_mallctl *)bp_symbol_find(mallctl_names[i]);
        if (mallctl == NULL) {
            continue;
        }
        if (bp_jemalloc_read(mallctl, reading)) {
            reading->unused[0] = '\0';
            return true;
        }
        (void)snprintf(reading->unused, sizeof reading->unused,
                       "jemalloc (%s) is linked, and has given nothing out", mallctl_names[i]);
    }
    return false;
}

bugpack_status bp_allocator_read(bp_heap_reading *ret_reading, bugpack_error *error) {
    bp_heap_reading reading = {.state = BUGPACK_HEAP_STATE_INIT};
    if (!read_jemalloc(&reading)) {
        reading.missing[0] = '\0'; /* of the jemalloc that is not in use */
        bugpack_error detail = BUGPACK_ERROR_INIT;
        bugpack_status status = bp_allocator_read_default(&reading, &detail);
        if (status != BUGPACK_OK) {
            return reading.unused[0] == '\0'
                       ? bp_fail(error, status, "%s", detail.message)
                       : bp_fail(error, status, "%s; %s", reading.unused, detail.message);
        }
    }
    *ret_reading = reading;
    return BUGPACK_OK;
}
