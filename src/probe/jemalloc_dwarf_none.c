#include "probe/jemalloc_dwarf.h"

#include <stdio.h>

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bp_dwarf_status bp_jemalloc_dwarf_read(int fd, const char *path, bp_jemalloc_layout *ret_layout,
                                       char *reason, size_t reason_bytes) {
    (void)snprintf(reason, reason_bytes, "this bugpack was built without libdw");
    return BP_DWARF_NO_LIBRARY;
}
