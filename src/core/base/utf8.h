/*
 * Any bytes as valid UTF-8, from which they can be decoded again.
 *
 * The kernel lets a thread name hold any byte, and a host may log anything; JSON must be UTF-8. A
 * byte that is not part of a well-formed sequence, and NUL, which C strings cannot carry, becomes
 * the private-use character U+EF00 plus the byte. A character that already is in U+EF00..U+EFFF
 * is escaped byte by byte in the same way, so that decoding is exact for every input. (MirBSD's
 * OPTU-8 maps stray octets to U+EF80..U+EFFF likewise.)
 */
#ifndef BP_BASE_UTF8_H
#define BP_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/*
 * The length of the well-formed sequence (Unicode 15, table 3-7: no overlong form, no surrogate,
 * nothing above U+10FFFF) at `bytes`, or 0 when there is none. `available` is at least 1.
 */
size_t bp_utf8_sequence_length(const unsigned char *bytes, size_t available);

bool bp_utf8_is_valid(const void *bytes, size_t byte_count);

/* Why this cannot be the name of an entry, as the end of a sentence; NULL when it can. */
const char *bp_utf8_refuse_name(const char *name, size_t byte_count);

/* Appends the escaped form: at most three bytes for each one that comes in. */
bugpack_status bp_utf8_encode(bp_buffer *out, const void *bytes, size_t byte_count);

/* The same of a text with escapes, such as a member of a report: they are not escaped again. */
bugpack_status bp_utf8_complete(bp_buffer *out, const void *bytes, size_t byte_count);

/*
 * The length of the character at `bytes`, with its code point, if a terminal or a browser obeys it
 * instead of showing it, otherwise 0: U+0000 to U+001F, U+007F to U+009F, U+FEFF, and those that
 * change the order of a text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
 */
size_t bp_utf8_control(const unsigned char *bytes, size_t available, uint32_t *ret_code);

/* Writes a code point and returns its length. */
enum { BP_UTF8_MAX_BYTES = 4 };
size_t bp_utf8_put(uint32_t code, char *ret_bytes);

/* The value of `count` hexadecimal digits, at most seven; -1 where one of them is none. */
int32_t bp_hex_value(const void *digits, size_t count);

/* Writes two lower-case digits for each byte, and a NUL. */
void bp_hex_print(const void *bytes, size_t byte_count, char *out);

/* The largest cut of `byte_count` at or below `limit` that does not split a sequence. */
size_t bp_utf8_cut(const void *bytes, size_t byte_count, size_t limit);

/* Copies a text, cut in this way to fit with its NUL; NULL is "". `out_bytes` is at least 1. */
void bp_utf8_copy(char *out, size_t out_bytes, const char *text);

/* The same of so many bytes, but cut in the middle, with an ellipsis there: "/srv/a-lo…/app.log".
 * Both ends of a path or of a line are worth knowing. */
void bp_utf8_copy_ends(char *out, size_t out_bytes, const char *text, size_t text_bytes);

#endif
