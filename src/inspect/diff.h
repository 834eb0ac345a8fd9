/*
 * Compares two reports, or two artefacts: captures of the machine, runtime metrics, heap states.
 */
#ifndef BP_INSPECT_DIFF_H
#define BP_INSPECT_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>
#include <bugpack/heap_state.h>

#include "base/buffer.h"
#include "inspect/json_diff.h"
#include "inspect/machine_diff.h"
#include "inspect/report_file.h"

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

typedef enum bp_diff_same { BP_SAME_UNKNOWN, BP_SAME_YES, BP_SAME_NO } bp_diff_same;

/* Whether two reports are of one program, of one build of it, and of one process of that. */
typedef struct bp_diff_relation {
    bp_diff_same program, build, session;
} bp_diff_relation;

/* A number of a process; `decimals` of its digits are after the point. */
typedef struct bp_diff_figure {
    const char *key; /* as in the JSON; static */
    unsigned decimals;
    bp_change change;
} bp_diff_figure;

#define BP_DIFF_FIGURE_COUNT 3

/* A counter of captures of the machine. */
typedef struct bp_diff_counter {
    char name[48];
    bool is_compared; /* it was measured on both sides */
    bp_machine_diff host;
} bp_diff_counter;

enum { BP_DIFF_COUNTER_MAX = 16 };

typedef struct bp_diff {
    bp_diff_side before, after;
    /* What both sides have; has_any is set where there is anything, and of two reports without any
     * artefact, which have documents. */
    bool has_any, has_host, has_metrics, has_heap;
    bp_machine_key key;
    bp_diff_counter counters[BP_DIFF_COUNTER_MAX]; /* has_host is about the first */
    size_t counter_count;
    bp_diff_relation relation;
    bp_json_differences changes; /* of the documents of two reports, of threads, and of functions */
    bp_diff_figure figures[BP_DIFF_FIGURE_COUNT];
    bugpack_heap_state heap_before, heap_after;
} bp_diff;

/*
 * Compares two files. `counters` are names with commas between them, at most BP_DIFF_COUNTER_MAX.
 * An artefact that only one side has is no error, nor are two sides that have
 * nothing in common. Memory: the larger artefact of both sides.
 *
 * CORRUPT: a file is neither a report nor an artefact that can be compared, or damaged; the
 * sentence says which. UNSUPPORTED: a later bugpack wrote it. IO with the errno. NO_MEMORY.
 * INVALID: there is no such counter, or too many. The caller releases `ret_diff`, which borrows
 * both paths.
 */
bugpack_status bp_diff_compute(const char *before_path, const char *after_path, bp_machine_key key,
                               const char *counters, bp_diff *ret_diff, bugpack_error *error);
void bp_diff_release(bp_diff *diff);

/*
 * Reads the heap-state.json of a report, or one by itself, from the file that `path` names. CORRUPT
 * where there is none; other errors as above.
 */
bugpack_status bp_diff_read_heap_file(const char *path, bugpack_heap_state *ret_state,
                                      bugpack_error *error);

/* Whether nothing differs in what both have, and neither report lacks an artefact of the other.
 * Secrets that were redacted on both sides do not count. */
bool bp_diff_is_equal(const bp_diff *diff);

/* "process", "cgroup", "thread". Static. */
const char *bp_diff_key_name(bp_machine_key key);

/*
 * The comparison as JSON (docs/schema/diff.schema.json), of the groups of a capture the first
 * `limit`. The text ends in a NUL; the caller frees it with free(). NO_MEMORY.
 */
bugpack_status bp_diff_json(const bp_diff *diff, size_t limit, char **ret_text, size_t *ret_bytes,
                            bugpack_error *error);

#endif
