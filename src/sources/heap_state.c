#include <stdio.h>

#include "model/heap_state.h"
#include "platform/allocator.h"
#include "sources/source.h"

/*
 * Under a time limit like a host's provider: where a thread of the host hangs inside the allocator
 * or the dynamic linker, this hangs too, and only this entry is lost.
 */
int bp_source_heap_state(bugpack_writer *writer, void *context) {
    bp_heap_reading reading;
    bugpack_error error = BUGPACK_ERROR_INIT;
    (void)context;
    bugpack_status status = bp_allocator_read(&reading, &error);
    if (status == BUGPACK_OK) {
        status = bp_heap_state_print(&reading.state, &writer->content, &error);
    }
    if (status != BUGPACK_OK) {
        return bp_source_end(writer, status, &error);
    }
    (void)snprintf(writer->line.note, sizeof writer->line.note, "%s", reading.unused);
    if (reading.missing[0] != '\0') {
        bp_writer_truncate(writer, true, "%s", reading.missing);
    }
    return 0;
}
