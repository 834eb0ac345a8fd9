/*
 * Strings and numbers of a JSON text: checking, decoding, and laying out the lines between them.
 */
#ifndef BP_JSON_LITERAL_H
#define BP_JSON_LITERAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * These check the number, or the string whose opening quote, is at `text`. They return NULL when it
 * is well-formed, with its length (both quotes included); otherwise what is wrong, static, with its
 * offset.
 */
const char *bp_json_check_number(const unsigned char *text, size_t byte_count, size_t *ret_at);
const char *bp_json_check_string(const unsigned char *text, size_t byte_count, size_t *ret_at);

/*
 * The next character of a checked string as a code point, with its escape decoded, or -1 at the
 * closing quote. `*at` begins after the opening quote and is advanced.
 */
int32_t bp_json_next_character(const unsigned char **at);

/* Starts a line of a document that is laid out, indented for what is nested `depth` deep. */
void bp_json_break_line(bp_buffer *out, size_t depth);

/* Removes what a failed append left after `size`; the failure of the buffer stays. */
void bp_json_cut(bp_buffer *out, size_t size);

#endif
