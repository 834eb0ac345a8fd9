/*
 * Makes a session's rings: in files of its directory, or in memory where that fails.
 */
#ifndef BP_RECORDER_RINGS_H
#define BP_RECORDER_RINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/id.h"
#include "base/lock.h"
#include "recorder/monitor.h"
#include "recorder/session_dir.h"
#include "ring/ring.h"

/* Where rings are to be. */
typedef struct bp_rings_options {
    bool is_in_memory;    /* nothing is to outlive the process */
    const char *base_dir; /* absolute; NULL: the first usable one of platform/machine.h */
    const bp_session_identity *identity;
    bp_monitor *monitor; /* notes that the session runs; must outlive the rings */
} bp_rings_options;

/* The first two are for others, the rest is private. */
typedef struct bp_rings {
    bp_session_dir *dir; /* borrowed; NULL where all rings are in memory */
    atomic_bool is_kept; /* bp_rings_free leaves the directory for recovery. Any thread. */
    bool is_common;      /* half of the file system has to stay free */
    uint64_t survives;
    bp_monitor *monitor; /* NULL: it does not note that the session runs */
    char session_id[BP_ID_BYTES];
    bp_lock lock; /* of what follows */
    struct bp_ring_file *files;
    char memory_reason[256];
} bp_rings;

/*
 * Makes the session's directory. Fails only without memory: without a directory the rings are in
 * memory, and bp_rings_note_loss says why.
 */
bugpack_status bp_rings_new(const bp_rings_options *options, bp_rings **ret_rings,
                            bugpack_error *error);

/* The session's directory, borrowed, and what files in it survive (BUGPACK_SURVIVES_…). NULL and 0
 * if all rings are in memory. Any thread. */
const char *bp_rings_locate(bp_rings *rings, uint64_t *ret_survives);

/* Notes that the session is closed, unless it is kept. Before the first ring is freed, and before
 * bp_rings_free. */
void bp_rings_end(bp_rings *rings);

/* Removes the directory, unless it is kept: the session ended cleanly. The rings are their owners'.
 * NULL is fine. */
void bp_rings_free(bp_rings *rings);

/* Makes a ring, in a file where possible. Any thread. */
bugpack_status bp_rings_make(bp_rings *rings, const bp_ring_label *label, size_t capacity_bytes,
                             bp_ring **ret_ring, bugpack_error *error);

/* Frees a ring, and removes its file. NULL is fine. Any thread. */
void bp_rings_drop(bp_rings *rings, bp_ring *ring);

/* Writes a small file into the directory, for recovery, or removes it, with `bytes` NULL; no-op
 * without a directory. False where it could not be written. */
bool bp_rings_write_file(bp_rings *rings, const char *name, const void *bytes, size_t byte_count);

/*
 * Makes a file of zeros in the directory, and maps it, shared; a forked child does not have the
 * mapping, which is the caller's to unmap. Where other programs need the file system as well, half
 * of it stays free. UNSUPPORTED where there is no directory, IO, NO_MEMORY.
 */
bugpack_status bp_rings_map_file(const bp_rings *rings, const char *name, size_t byte_count,
                                 void **ret_map, bugpack_error *error);

/*
 * Sets `reason`, if it is "", to one clause that says why the ring's records would not outlive the
 * host. Leaves it alone when they would, when memory was asked for, and for NULL. Any thread.
 */
void bp_rings_note_loss(bp_rings *rings, const bp_ring *ring, char *reason, size_t reason_bytes);

#endif
