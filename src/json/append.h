/*
 * The layout of a document, shared by the builder and the reader.
 */
#ifndef BP_JSON_APPEND_H
#define BP_JSON_APPEND_H

#include <stddef.h>

#include "base/buffer.h"

/* Starts a line, indented for what is nested `depth` deep. */
void bp_json_break_line(bp_buffer *out, size_t depth);

/* Appends a value of another document, with the control characters of its strings escaped. */
bugpack_status bp_json_append_value(bp_buffer *out, const char *text);

/* Removes what a failed append left after `size`; the failure of the buffer stays. */
void bp_json_cut(bp_buffer *out, size_t size);

#endif
