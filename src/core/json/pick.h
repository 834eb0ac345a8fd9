/*
 * Values of a JSON text that somebody else wrote, without a tree of it: exact numbers.
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
 * A value to find. Its path has the keys that lead to it, joined by '.', and "[]" for any element
 * of an array: "process.rss_kb", "threads[].tid"; "" is the root. A key with an escape, a '.' or a
 * '[' in it matches nothing.
 */
typedef struct bp_json_pick {
    const char *path;
    size_t path_bytes;   /* set by bp_json_pick_all */
    bp_json_token token; /* of an object or array its opening bracket; byte_count is 0 for none */
} bp_json_pick;

/*
 * Fills the tokens, which point into the text, and checks all of it, with the errors of
 * bp_json_reformat.
 */
bugpack_status bp_json_pick_all(const void *text, size_t byte_count, bp_json_pick *picks,
                                size_t pick_count, bugpack_error *error);

/* Whether the token is exactly this text, as "true" or "{". */
bool bp_json_token_is(const bp_json_token *token, const char *text);

/* A number of digits alone, at most UINT64_MAX. False, and the output untouched, for all else. */
bool bp_json_token_uint(const bp_json_token *token, uint64_t *ret_value);

/*
 * A number without a sign or an exponent, times ten to the power of `decimals` (at most 9),
 * rounded: with two decimals "12.345" is 1235.
 */
bool bp_json_token_fixed(const bp_json_token *token, unsigned decimals, uint64_t *ret_value);

/* Appends a string with its escapes decoded, up to a NUL in it. False when it is no string. */
bool bp_json_token_text(const bp_json_token *token, bp_buffer *out);

#endif
