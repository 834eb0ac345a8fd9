/*
 * Values out of a JSON text that somebody else wrote, without a tree of it.
 */
#ifndef BP_JSON_PICK_H
#define BP_JSON_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "json/scanner.h"

/*
 * Is shown each BEGIN, END and SCALAR with where it stands: keys joined by '.', and "[]" for any
 * element of an array ("artefacts[].name"); "" is the root. A key that has 64 bytes or more, an
 * escape, a '.' or a '[' in it is a part that equals nothing. Anything but BUGPACK_OK ends the
 * walk, with the sentence that it left in `error`.
 */
typedef bugpack_status bp_json_visitor(void *context, const char *path, const bp_json_token *token,
                                       bugpack_error *error);

/* Checks a whole text as bp_json_reformat does, and shows it. Errors: as there, or the visitor's.
 */
bugpack_status bp_json_walk(const void *text, size_t byte_count, bp_json_visitor *visit,
                            void *context, bugpack_error *error);

/* A value that is looked for. Of an object or an array the token is its bracket. */
typedef struct bp_json_pick {
    const char *path;
    bp_json_token token; /* points into the text; byte_count is 0 when there is none */
} bp_json_pick;

/* Fills the tokens, and checks the whole text. Paths must be different, and without arrays. */
bugpack_status bp_json_pick_all(const void *text, size_t byte_count, bp_json_pick *picks,
                                size_t pick_count, bugpack_error *error);

/* Whether it is there, and is this: an exact text as it stands in the JSON, as "true" or "{". */
bool bp_json_token_is(const bp_json_token *token, const char *text);

/* A number of digits alone, at most UINT64_MAX. False, and the output untouched, for all else. */
bool bp_json_token_uint(const bp_json_token *token, uint64_t *ret_value);

/*
 * A number that is not negative and has no exponent, times ten to the power of `decimals` (at most
 * 9) and rounded: with two decimals "12.345" is 1235.
 */
bool bp_json_token_fixed(const bp_json_token *token, unsigned decimals, uint64_t *ret_value);

/* Appends a string with its escapes decoded, up to a NUL in it. False when it is no string. */
bool bp_json_token_text(const bp_json_token *token, bp_buffer *out);

#endif
