/*
 * What two reports are of, and in which members their documents differ.
 */
#ifndef BP_INSPECT_DIFF_DOCUMENTS_H
#define BP_INSPECT_DIFF_DOCUMENTS_H

#include <bugpack/error.h>

#include "inspect/diff_source.h"
#include "inspect/json_differences.h"

typedef enum bp_diff_same { BP_SAME_UNKNOWN, BP_SAME_YES, BP_SAME_NO } bp_diff_same;

/* Whether two reports are of one program, of one build of it, and of one process of that. */
typedef struct bp_diff_relation {
    bp_diff_same program, build, session;
} bp_diff_relation;

/* From the metadata: all but the build, which bp_diff_documents completes. */
bp_diff_relation bp_diff_relate(const bp_diff_side *before, const bp_diff_side *after);

/*
 * Compares the documents of two reports: metadata, gaps, facts of the process and the system,
 * session.json and channel-state.json. One that only one side has is a row with an empty path.
 * Errors: those of reading; CORRUPT for what is no JSON; NO_MEMORY.
 */
bugpack_status bp_diff_documents(const bp_diff_side *before, const bp_diff_side *after,
                                 bp_diff_relation *relation, bp_json_differences *list,
                                 bugpack_error *error);

/* Compares the threads of two runtime-metrics.json; and what the control groups of two machines
 * used, in two host-threads.json. */
bugpack_status bp_diff_threads(const bp_buffer *before, const bp_buffer *after,
                               const bp_diff_relation *relation, bp_json_differences *list,
                               bugpack_error *error);
bugpack_status bp_diff_cgroups(const bp_buffer *before, const bp_buffer *after,
                               bp_json_differences *list, bugpack_error *error);

#endif
