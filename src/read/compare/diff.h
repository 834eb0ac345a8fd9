/*
 * Compares two reports entry by entry, or two JSON documents.
 */
#ifndef BP_COMPARE_DIFF_H
#define BP_COMPARE_DIFF_H

#include <bugpack/error.h>

#include "compare/json_diff.h"
#include "entries/report_file.h"

/* One of the two files. */
typedef struct bp_diff_side {
    const char *path;       /* borrowed from the caller */
    bp_report_file *report; /* NULL for a document, which `fd` is open for */
    int fd;
    bp_json_side documents;
} bp_diff_side;

typedef struct bp_diff {
    bp_diff_side before, after;
    bp_json_changes changes;
} bp_diff;

/*
 * Compares two files, which borrows their paths. An entry that only one report has is a difference
 * of their manifests.
 *
 * CORRUPT: a file is neither a report nor JSON, or damaged, or only one is a report; the sentence
 * says which. UNSUPPORTED: another bugpack wrote it. IO with the errno. NO_MEMORY. The caller
 * releases `ret_diff`, which is untouched on failure.
 */
bugpack_status bp_diff_compute(const char *before_path, const char *after_path, bp_diff *ret_diff,
                               bugpack_error *error);
void bp_diff_release(bp_diff *diff);

#endif
