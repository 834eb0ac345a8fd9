/*
 * What a prober finds in one process. Linux only.
 */
#ifndef BP_PROBE_JEMALLOC_FIND_H
#define BP_PROBE_JEMALLOC_FIND_H

#include "probe/heap_prober.h"
#include "probe/jemalloc_examine.h"

const bp_heap_prober_options *bp_heap_prober_settings(const bp_heap_prober *prober);

/* What one process has. */
typedef struct bp_jemalloc_found {
    bp_heap_failure failure;
    int system_errno;
    char reason[BUGPACK_ERROR_MESSAGE_BYTES];
    char *path; /* of the jemalloc; owned, NULL when there is none */
    bp_known_object jemalloc;
    uint64_t jemalloc_base;
    bool has_libc;
    bp_libc_layout libc;
    uint64_t libc_base;
} bp_jemalloc_found;

/*
 * Examines the files of a process: those with "jemalloc" in their names, the executable, then the
 * others, until a jemalloc is found. `process_fd` is a descriptor of /proc/<pid>.
 */
bugpack_status bp_jemalloc_find(bp_heap_prober *prober, int process_fd,
                                bp_jemalloc_found *ret_found, bugpack_error *error);

#endif
