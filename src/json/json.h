/*
 * The one room that knows cJSON: building JSON whose every value is exact, and checking JSON that
 * came from outside.
 *
 * cJSON keeps numbers as doubles, passes invalid UTF-8 through, prints with tabs, and reports a
 * failed allocation only where each call is checked. Here integers are exact to 64 bits, all text
 * is valid UTF-8 (base/utf8.h), the first failure sticks, and depth is bounded.
 */
#ifndef BP_JSON_JSON_H
#define BP_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"

/* Nesting beyond this is refused, when building and when reading. */
#define BP_JSON_DEPTH_MAX 64

/* A document being built: a tree, and the object or array that is open now. */
typedef struct bp_json bp_json;

/*
 * A new document whose root is an object, open from the start and ended by printing. NULL when
 * there is no memory, which every function below accepts and turns into a failure at the end, so
 * that callers check once, in bp_json_print. One document is for one thread at a time.
 */
bp_json *bp_json_new(void);
void bp_json_free(bp_json *json);

/*
 * Adds a member to the open object; in an open array `key` must be NULL. Keys are copied, escaped
 * like any other text, and must be unique in their object: printing refuses a repeated one.
 * A NULL text, or NULL bytes, adds nothing: what is not known is left out.
 */
void bp_json_object_begin(bp_json *json, const char *key);
void bp_json_object_end(bp_json *json);
void bp_json_array_begin(bp_json *json, const char *key);
void bp_json_array_end(bp_json *json);
void bp_json_add_text(bp_json *json, const char *key, const char *text);
void bp_json_add_bytes(bp_json *json, const char *key, const void *bytes, size_t byte_count);
void bp_json_add_uint(bp_json *json, const char *key, uint64_t value);
void bp_json_add_int(bp_json *json, const char *key, int64_t value);
void bp_json_add_bool(bp_json *json, const char *key, bool value);
void bp_json_add_null(bp_json *json, const char *key);
/*
 * A number rounded to `decimals` (0 to 9) digits behind the point, in the C locale whatever the
 * host's is, without trailing zeros ("12.5"). A value that is not finite fails the document: NaN
 * and infinity must be dealt with where they arise.
 */
void bp_json_add_number(bp_json *json, const char *key, double value, unsigned decimals);

/*
 * Appends the document, indented by two spaces, with a final newline, or on one line, with its
 * newline too, for JSON Lines. All objects and arrays but the root must be ended. Reports the first
 * failure of the whole building, if any: NO_MEMORY, or INVALID for a mistake of the caller's. On
 * failure `out` holds what it held before; its own failure, if it ran out of room, stays.
 */
bugpack_status bp_json_print(const bp_json *json, bp_buffer *out, bugpack_error *error);
bugpack_status bp_json_print_line(const bp_json *json, bp_buffer *out, bugpack_error *error);

/* Prints as bp_json_print does, and frees the document in any case: how most printers end. */
bugpack_status bp_json_finish(bp_json *json, bp_buffer *out, bugpack_error *error);

/*
 * Checks a text from outside against RFC 8259, more strictly than cJSON: the whole input is one
 * value, no number like 01 or 1., no raw control character, valid UTF-8, lone surrogate escapes
 * refused, no duplicate key in an object, depth at most BP_JSON_DEPTH_MAX. A byte order mark at the
 * start is skipped. Appends the same document, indented by two spaces, numbers and strings byte for
 * byte as they were, with a final newline.
 *
 * On failure `out` holds what it held before and the error is CORRUPT with "line L, column C: what
 * was expected"; both count from 1, columns in characters. NO_MEMORY when there is no room, which
 * stays as the buffer's own failure, or for 4 GiB and more. Takes memory in proportion to the
 * largest number of keys in open objects (eight bytes each) and time in proportion to the text, but
 * for objects with very many keys, which cost a sort.
 */
bugpack_status bp_json_reformat(const void *text, size_t byte_count, bp_buffer *out,
                                bugpack_error *error);

/*
 * Appends the bytes as a JSON string with its quotes, escaped, valid UTF-8, without a document
 * around it: for what is streamed. Appends all of it or nothing.
 */
bugpack_status bp_json_append_string(bp_buffer *out, const void *bytes, size_t byte_count);

#endif
