/*
 * The numbers of one artefact of one side.
 */
#ifndef BP_INSPECT_DIFF_VALUES_H
#define BP_INSPECT_DIFF_VALUES_H

#include <stdint.h>

#include "base/buffer.h"
#include "inspect/diff.h"

typedef struct bp_diff_value {
    bool is_known;
    uint64_t value;
} bp_diff_value;

/* The key and the decimals of each figure; the rest is empty. */
extern const bp_diff_figure bp_diff_figures[BP_DIFF_FIGURE_COUNT];

/*
 * Reads a runtime-metrics.json. One that says why it has no numbers makes the presence false, with
 * that reason. CORRUPT for one that is neither, and for numbers that are none; NO_MEMORY.
 */
bugpack_status bp_diff_read_metrics(const bp_buffer *text, const char *path,
                                    bp_diff_value ret_values[BP_DIFF_FIGURE_COUNT],
                                    bp_diff_presence *presence, bugpack_error *error);

/*
 * Reads a heap-state.json. An allocator's name is cut to fit, and what is not printable ASCII in it
 * becomes '?': the texts of heap states are lines. CORRUPT, NO_MEMORY.
 */
bugpack_status bp_diff_read_heap(const bp_buffer *text, const char *path,
                                 bugpack_heap_state *ret_state, bugpack_error *error);

#endif
