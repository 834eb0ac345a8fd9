#include "platform/ring_dirs.h"

bool bp_ring_dirs_next(unsigned *cursor, bp_ring_dir *ret_dir) {
    (void)cursor;
    (void)ret_dir;
    return false;
}

bool bp_ring_dirs_is_in_memory(const char *path) {
    (void)path;
    return false;
}

uint64_t bp_ring_dirs_survival(const char *path, bool is_in_memory) {
    (void)path;
    (void)is_in_memory;
    return BUGPACK_SURVIVES_KILL;
}
