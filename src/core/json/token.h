/*
 * A piece of a JSON text that was checked: a key, a value, or a bracket. Its numbers are exact.
 */
#ifndef BP_JSON_TOKEN_H
#define BP_JSON_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

typedef enum bp_json_token_kind {
    BP_JSON_BEGIN,  /* of an object or an array; `text` is its bracket */
    BP_JSON_END,    /* likewise */
    BP_JSON_KEY,    /* with its quotes; the colon after it has been checked and skipped */
    BP_JSON_SCALAR, /* a string with its quotes, a number, true, false or null */
    BP_JSON_FINISH, /* the document is complete, or with `is_lines` a line of it */
    BP_JSON_MORE    /* of a part: the next token is not there as a whole */
} bp_json_token_kind;

/* Points into the text. */
typedef struct bp_json_token {
    bp_json_token_kind kind;
    const char *text;
    size_t byte_count;
} bp_json_token;

/* True if the token is exactly this text, as "true" or "{". */
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

/*
 * The length of the escape at `text`, which begins with a backslash, and its character. `ret_wrong`
 * is NULL, or what is wrong, static; then the character is what follows the backslash, or '?' for
 * half a surrogate pair.
 */
size_t bp_json_read_escape(const void *text, size_t available, uint32_t *ret_code,
                           const char **ret_wrong);

/* Writes a checked string with its escapes decoded, which is shorter than the token; its length. */
size_t bp_json_token_decode(const bp_json_token *token, char *out);

/* The number of bytes before the first that is not ASCII, or is a control character, a quote or a
 * backslash: these stand for themselves in a string. */
size_t bp_json_plain_length(const unsigned char *bytes, size_t byte_count);

/* The characters that have a short escape, and its letter, in the same order. */
extern const char bp_json_escaped[], bp_json_escapes[];

#endif
