/*
 * One side of a comparison: a report, or one artefact of one as a file of its own.
 */
#ifndef BP_INSPECT_DIFF_SOURCE_H
#define BP_INSPECT_DIFF_SOURCE_H

#include "inspect/diff.h"
#include "inspect/report_file.h"

typedef struct bp_diff_source {
    const char *path;       /* borrowed */
    bp_report_file *report; /* NULL for a plain file */
    bp_diff_artefact kind;  /* of a plain file */
    bp_buffer document;     /* of a plain file, until it is taken */
} bp_diff_source;

/*
 * Opens a file. What begins as a zip is a report; anything else must be one of the artefacts that
 * can be compared, which its keys tell. Errors: those of bp_report_file_open; CORRUPT for a file
 * that is neither; NO_MEMORY for one over BP_DIFF_DOCUMENT_MAX_BYTES. `ret_source` is released by
 * the caller.
 */
bugpack_status bp_diff_source_open(const char *path, bp_diff_source *ret_source,
                                   bugpack_error *error);
void bp_diff_source_release(bp_diff_source *source);

/*
 * Takes an artefact, once, into a buffer, which need not be initialised and is the caller's to
 * release whatever is returned. Where it is not there, `ret_presence->is_there` is false, with what
 * the ledger says of that.
 */
bugpack_status bp_diff_source_take(bp_diff_source *source, bp_diff_artefact artefact,
                                   bp_buffer *ret_text, bp_diff_presence *ret_presence,
                                   bugpack_error *error);

#endif
