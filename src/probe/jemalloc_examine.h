/*
 * Whether one file holds a jemalloc, and where its counters are. Linux only.
 */
#ifndef BP_PROBE_JEMALLOC_EXAMINE_H
#define BP_PROBE_JEMALLOC_EXAMINE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/thread_heap.h"
#include "probe/heap_prober.h"
#include "probe/thread_pointers.h"

typedef enum bp_object_kind {
    BP_OBJECT_OTHER,
    BP_OBJECT_LIBC,
    BP_OBJECT_JEMALLOC, /* `failure` says whether its counters can be found */
    BP_OBJECT_UNREADABLE
} bp_object_kind;

/* What is known of one file, for every process that has it mapped. */
typedef struct bp_known_object {
    struct bp_known_object *next;
    uint64_t device_major, device_minor, inode;
    bool is_executable; /* it was examined as the executable of a process, so with its symbols */
    bool has_own_root;  /* in a process that has our root directory, so it may be run */
    bp_object_kind kind;
    bp_heap_failure failure;
    char reason[BUGPACK_ERROR_MESSAGE_BYTES];
    int read_errno; /* nothing is known: reading the file, or starting a helper, failed; or 0 */
    uint64_t code_address;
    bp_libc_layout libc;
    char build_id[65];
    bool has_slot; /* else the places are relative to the thread pointer itself */
    bool is_calibrated;
    uint64_t slot; /* address in the file */
    int64_t allocated_place, deallocated_place;
} bp_known_object;

/* Examines the file `fd`, which a process has mapped as `path`. Fills everything from `kind` on;
 * the caller has set the members before it. */
void bp_jemalloc_examine(const bp_heap_prober_options *options, int fd, const char *path,
                         bp_known_object *object);

#endif
