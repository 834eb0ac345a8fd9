/*
 * One side of a comparison: a report, or one artefact of one as a file of its own, and the numbers
 * in its artefacts.
 */
#ifndef BP_INSPECT_DIFF_SOURCE_H
#define BP_INSPECT_DIFF_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/heap_state.h>

#include "base/buffer.h"
#include "base/sink.h"
#include "inspect/report_file.h"

/* The limit for one artefact: a capture of some 100,000 threads. */
#define BP_DIFF_DOCUMENT_MAX_BYTES ((size_t)256 << 20)

/* The artefacts that are compared. */
typedef enum bp_diff_artefact {
    BP_DIFF_HOST,
    BP_DIFF_METRICS,
    BP_DIFF_HEAP,
    BP_DIFF_ARTEFACT_COUNT
} bp_diff_artefact;
const char *bp_diff_artefact_name(bp_diff_artefact artefact);

/* Whether a side has an artefact with numbers in it. */
typedef struct bp_diff_presence {
    bool is_there;
    bool lacks_counter; /* it is a capture, without the counter that was asked for */
    char reason[340];   /* why not, where it is known; else "" */
} bp_diff_presence;

/* One of the two files. Facts are "" where unknown, and for a file that is no report. */
typedef struct bp_diff_side {
    const char *path; /* borrowed from the caller */
    bp_report_facts facts;
    bp_diff_presence presence[BP_DIFF_ARTEFACT_COUNT];
    bp_report_file *report; /* NULL for a plain file */
    bp_diff_artefact kind;  /* of a plain file */
    bp_buffer document;     /* of a plain file, until it is compared */
} bp_diff_side;

/*
 * Opens a file. What begins as a zip is a report; anything else must be an artefact that can be
 * compared, which its keys show. Errors: those of bp_report_file_take; CORRUPT for a file that is
 * neither; NO_MEMORY for one over BP_DIFF_DOCUMENT_MAX_BYTES. The side, all zero before, is
 * released by the caller whatever is returned.
 */
bugpack_status bp_diff_side_open(bp_diff_side *side, const char *path, bugpack_error *error);
void bp_diff_side_release(bp_diff_side *side);

/*
 * Moves an artefact that is there, once, into a buffer, which need not be initialised
 * and is the caller's to release whatever is returned.
 */
bugpack_status bp_diff_side_take(bp_diff_side *side, bp_diff_artefact artefact, bp_buffer *ret_text,
                                 bugpack_error *error);

/* The host-threads.json that is there, which is too long to be held. Borrows the side. */
bp_giver bp_diff_side_host(const bp_diff_side *side);

/* The failure `detail` in what an artefact holds, whose sentence names the artefact and the path.
 */
bugpack_status bp_diff_explain(const char *path, bp_diff_artefact artefact,
                               const bugpack_error *detail, bugpack_error *error);

/*
 * Reads a heap-state.json, with the path in the sentence of a failure. CORRUPT, NO_MEMORY.
 */
bugpack_status bp_diff_read_heap(const bp_buffer *text, const char *path,
                                 bugpack_heap_state *ret_state, bugpack_error *error);

#endif
