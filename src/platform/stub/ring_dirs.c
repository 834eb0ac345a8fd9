#include "platform/ring_dirs.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bool bp_ring_dirs_next(unsigned *cursor, bp_ring_dir *ret_dir) {
    return false;
}

bugpack_status bp_mapped_dirs_visit(const bp_mapped_dirs *dirs, pid_t pid, bugpack_error *error) {
    return BUGPACK_OK;
}

bool bp_ring_dirs_is_in_memory(const char *path) {
    return false;
}

uint64_t bp_ring_dirs_survival(const char *path, bool is_in_memory) {
    return BUGPACK_SURVIVES_KILL;
}
