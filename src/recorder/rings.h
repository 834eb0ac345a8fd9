/*
 * Where a session's rings lie: in files of its directory, guarded, or in memory where that cannot
 * be.
 */
#ifndef BP_RECORDER_RINGS_H
#define BP_RECORDER_RINGS_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "recorder/monitor.h"
#include "recorder/session_dir.h"
#include "ring/ring.h"

typedef struct bp_rings bp_rings;

/*
 * Makes the session's directory below `base_dir` (NULL: memory only, for `memory_reason`, which may
 * be NULL), whose files the monitor guards; it must outlive the rings. Fails only for lack of
 * memory: without a directory the rings lie in memory, and bp_rings_loss_reason says why.
 */
bugpack_status bp_rings_new(const char *base_dir, const char *memory_reason,
                            const bp_session_identity *identity, bp_monitor *monitor,
                            bp_rings **ret_rings, bugpack_error *error);

/* Ends the guard: to be called before the first ring is freed, and before bp_rings_free. */
void bp_rings_release_guard(bp_rings *rings);

/* Frees it and removes the directory: the session ended cleanly. The rings are their owners'. */
void bp_rings_free(bp_rings *rings);

/* A ring, in the file `name` where one can be had. */
bugpack_status bp_rings_make(bp_rings *rings, const char *name, size_t capacity_bytes,
                             bp_ring **ret_ring, bugpack_error *error);

/* Frees a ring that nobody took over, with its guard. NULL is fine. */
void bp_rings_drop(bp_rings *rings, bp_ring *ring);

/* Puts a small file into the directory, for a recoverer; nothing where there is none. */
void bp_rings_note(bp_rings *rings, const char *name, const void *bytes, size_t byte_count);

/*
 * Why what a ring of these holds would not outlive the host: because it was made in memory, or was
 * moved there when somebody else wanted its file. "" when it would, or when memory was asked for.
 * One clause, valid while the rings are; not while another thread makes a ring.
 */
const char *bp_rings_loss_reason(const bp_rings *rings, const bp_ring *ring);

#endif
