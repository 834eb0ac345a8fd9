#include "sources/source.h"

#include <stdlib.h>

uint64_t bp_source_deadline_ns(const bp_source *source, unsigned percent) {
    return bp_clock_monotonic_ns() + source->timeout_ms * BP_NS_PER_MS * percent / 100;
}

int bp_source_end(bugpack_writer *writer, bugpack_status status, const bugpack_error *error) {
    if (status == BUGPACK_ERR_UNSUPPORTED || status == BUGPACK_ERR_NO_PROCESS ||
        status == BUGPACK_ERR_DENIED) {
        bp_writer_refuse(writer, BP_ARTEFACT_OMITTED, "%s", error->message);
        writer->line.is_missing = false;
        return 0;
    }
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error->message);
}

void bp_source_free_stacks(bp_stacks *stacks) {
    if (stacks != NULL) {
        bp_stacks_release(stacks);
        free(stacks);
    }
}

void bp_source_free_package(bp_package_memory *memory) {
    if (memory != NULL) {
        free(memory->path);
        free(memory);
    }
}
