/*
 * Compares two reports, or two artefacts: captures of the machine, runtime metrics, heap states.
 */
#ifndef BP_INSPECT_DIFF_H
#define BP_INSPECT_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "inspect/diff_documents.h"
#include "inspect/diff_source.h"
#include "inspect/machine_diff.h"

/* A further counter of captures of the machine. */
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
    char counter[48];
    bp_machine_diff host;
    bp_diff_counter further[BP_DIFF_COUNTER_MAX - 1];
    size_t further_count;
    bp_diff_relation relation;
    bp_json_differences changes; /* of the documents of two reports, and of threads */
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

/* Whether nothing differs in what both have, and neither report lacks an artefact of the other.
 * Secrets that were redacted on both sides do not count. */
bool bp_diff_is_equal(const bp_diff *diff);

/* The same comparison with another counter as its first, to be shown and not released. */
bp_diff bp_diff_with_counter(const bp_diff *diff, size_t further_index);

/* "process", "cgroup", "thread". Static. */
const char *bp_diff_key_name(bp_machine_key key);

/*
 * The comparison as JSON (docs/schema/diff.schema.json), of the groups of a capture the first
 * `limit`. The text ends in a NUL; the caller frees it with free(). NO_MEMORY.
 */
bugpack_status bp_diff_json(const bp_diff *diff, size_t limit, char **ret_text, size_t *ret_bytes,
                            bugpack_error *error);

#endif
