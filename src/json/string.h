/*
 * JSON strings from the inside: checking one, and reading one that was checked.
 */
#ifndef BP_JSON_STRING_H
#define BP_JSON_STRING_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * Checks the string whose opening quote is at `text`. Returns NULL when it is well-formed, with its
 * length, both quotes included. Otherwise returns what is wrong, static, with the offset of it.
 */
const char *bp_json_check_string(const unsigned char *text, size_t byte_count, size_t *ret_at);

/*
 * The next character of a checked string as a code point, with its escape decoded, or -1 at the
 * closing quote. `*at` begins behind the opening quote and is moved on.
 */
int32_t bp_json_next_character(const unsigned char **at);

/*
 * Appends the rest of a checked string as UTF-8, its escapes decoded, up to a NUL in it, which ends
 * a C string. `*at` begins behind the opening quote and is moved on.
 */
bugpack_status bp_json_decode(const unsigned char **at, bp_buffer *out);

/* Takes off again what a failed append left behind `size`; the buffer's failure stays. */
void bp_json_cut(bp_buffer *out, size_t size);

#endif
