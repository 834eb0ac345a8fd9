/*
 * Values of a JSON text that somebody else wrote, without a tree of it: exact numbers, and
 * documents of any size.
 */
#ifndef BP_JSON_PICK_H
#define BP_JSON_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "json/scanner.h"

/* A value to find. Of an object or an array the token is its opening bracket. */
typedef struct bp_json_pick {
    const char *path;    /* keys joined by '.', through objects alone: "process.rss_kb"; "": root */
    bp_json_token token; /* points into the text; byte_count is 0 when there is none */
} bp_json_pick;

/*
 * Fills the tokens and checks the whole text, with the errors of bp_json_reformat. A key with an
 * escape or a '.' in it matches nothing.
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
