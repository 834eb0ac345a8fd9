/*
 * The heap's state as heap-state.json, as text, and the difference of two.
 */
#ifndef BP_MODEL_HEAP_STATE_H
#define BP_MODEL_HEAP_STATE_H

#include <stddef.h>

#include <bugpack/heap_state.h>

#include "base/buffer.h"

/*
 * Reads a state from heap-state.json, or from any JSON object that has these keys. A key that is
 * missing or null is unknown, so `{}` is all unknown; other keys are ignored. The name of an
 * allocator is cut to fit, and '?' replaces what is not printable ASCII in it. CORRUPT with line
 * and column (not valid JSON, or a value of the wrong kind), NO_MEMORY.
 */
bugpack_status bp_heap_state_parse(const void *text, size_t byte_count,
                                   bugpack_heap_state *ret_state, bugpack_error *error);

/* Appends heap-state.json; what is not known is left out. */
bugpack_status bp_heap_state_print(const bugpack_heap_state *state, bp_buffer *out,
                                   bugpack_error *error);

/* Append what bugpack_heap_state_text and bugpack_heap_state_diff give. */
bugpack_status bp_heap_state_text(const bugpack_heap_state *state, bp_buffer *out);
bugpack_status bp_heap_state_diff(const bugpack_heap_state *before, const bugpack_heap_state *after,
                                  bp_buffer *out);

#endif
