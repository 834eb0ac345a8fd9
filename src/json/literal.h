/*
 * Strings and numbers of a JSON text: checking and decoding.
 */
#ifndef BP_JSON_LITERAL_H
#define BP_JSON_LITERAL_H

#include <stddef.h>
#include <stdint.h>

/* The characters that have a short escape, and its letter, in the same order. */
extern const char bp_json_escaped[], bp_json_escapes[];

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

#endif
