/*
 * Which of a process's files holds a jemalloc, and where that one's counters are. Linux only.
 */
#ifndef BP_PROBE_JEMALLOC_FINDER_H
#define BP_PROBE_JEMALLOC_FINDER_H

#include <stdbool.h>
#include <stdint.h>

#include "model/thread_heap.h"
#include "probe/mapped_object.h"
#include "probe/thread_heap.h"
#include "probe/thread_pointers.h"

typedef enum bp_object_kind {
    BP_OBJECT_OTHER,
    BP_OBJECT_LIBC,
    BP_OBJECT_JEMALLOC, /* `failure` tells whether its counters can be found */
    BP_OBJECT_UNREADABLE
} bp_object_kind;

/* What is known of one file, for every process that has it mapped. */
typedef struct bp_known_object {
    struct bp_known_object *next;
    uint64_t device_major, device_minor, inode;
    bool is_executable; /* it was looked at as the executable of a process, so with its symbols */
    bool has_own_root;  /* in a process that has our root directory, so it may be run */
    bp_object_kind kind;
    bp_heap_failure failure;
    char reason[BUGPACK_ERROR_MESSAGE_BYTES];
    uint64_t code_address;
    bp_libc_layout libc;
    char build_id[65];
    bool has_slot; /* else the places are relative to the thread pointer itself */
    bool is_calibrated;
    uint64_t slot; /* address in the file */
    int64_t allocated_place, deallocated_place;
} bp_known_object;

/* Looks at one file. Fills everything from `kind` on; what is before that says which file it is,
 * and as what it is looked at. */
void bp_jemalloc_examine(const bp_heap_prober_options *options, int fd,
                         const bp_mapped_object *mapped, bp_known_object *object);

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
 * Looks at the files of a process: those with "jemalloc" in their names, the executable, then the
 * others, until a jemalloc is found. `process_fd` is a descriptor of /proc/<pid>.
 */
bugpack_status bp_jemalloc_find(bp_heap_prober *prober, int process_fd,
                                bp_jemalloc_found *ret_found, bugpack_error *error);

const bp_heap_prober_options *bp_heap_prober_settings(const bp_heap_prober *prober);

#endif
