/*
 * JSON out and in: building documents whose every value is exact, and checking text from outside.
 *
 * Documents are written straight into a buffer, without a tree: integers are exact to 64 bits, all
 * text becomes valid UTF-8 (base/utf8.h), depth is bounded, and the first failure sticks.
 */
#ifndef BP_JSON_JSON_H
#define BP_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"

/* Deeper nesting is refused, when building and when reading. */
#define BP_JSON_DEPTH_MAX 64

/* The layout of a document. */
typedef enum bp_json_layout {
    BP_JSON_PAGE,  /* indented by two spaces */
    BP_JSON_LINE,  /* {"a": 1,"b": 2} */
    BP_JSON_TABLE, /* each member of the root, and each element of an array there, is a line */
    BP_JSON_RECORD /* {"a":1,"b":2} */
} bp_json_layout;

/* One open object or array. */
typedef struct bp_json_level {
    bool is_object, has_member;
} bp_json_level;

/* A document being built at the end of a buffer. The members are private to the builder. */
typedef struct bp_json {
    bp_buffer *out;
    size_t start; /* where the document begins in `out` */
    bp_json_level open[BP_JSON_DEPTH_MAX];
    size_t depth, first_depth; /* now, and after the document was begun */
    bp_json_layout layout;
    bool is_quoting;
    bugpack_status status;
    const char *failure; /* the first failure, static; NULL while there is none */
} bp_json;

/*
 * Begins a document at the end of `out`. Its root is an object. Every document must be finished,
 * and nothing else may be appended to `out` until then. Failures are reported by bp_json_finish
 * alone, so that callers check once.
 */
void bp_json_begin(bp_json *json, bp_buffer *out);

/* The same in another layout than that of a page. */
void bp_json_begin_as(bp_json *json, bp_json_layout layout, bp_buffer *out);

/*
 * Begins further elements of an array that is a member of the root, for a document that is written
 * in parts. Finishing it adds no newline. A comma comes first, which the first part has to drop.
 */
void bp_json_begin_elements(bp_json *json, bp_buffer *out);

/*
 * Ends the document with a newline. All objects and arrays but the root must have been ended.
 * Returns the first failure of the whole document: NO_MEMORY, or INVALID for a mistake of the
 * caller. On failure `out` holds what it held before the document, and keeps its own failure if it
 * ran out of space.
 */
bugpack_status bp_json_finish(bp_json *json, bugpack_error *error);

/*
 * These add a member to the open object; in an open array `key` must be NULL. Keys are escaped like
 * other text; the caller has none twice in an object. A NULL text adds nothing: unknown facts are
 * left out.
 */
void bp_json_object_begin(bp_json *json, const char *key);
void bp_json_object_end(bp_json *json);
void bp_json_array_begin(bp_json *json, const char *key);
void bp_json_array_end(bp_json *json);
void bp_json_add_text(bp_json *json, const char *key, const char *text);
/* From here on texts are from a document, where bytes that are not UTF-8 are escaped already; or
 * they are not. */
void bp_json_quote(bp_json *json, bool is_quoting);
void bp_json_add_bytes(bp_json *json, const char *key, const void *bytes, size_t byte_count);
void bp_json_add_uint(bp_json *json, const char *key, uint64_t value);
void bp_json_add_int(bp_json *json, const char *key, int64_t value);
void bp_json_add_bool(bp_json *json, const char *key, bool value);
void bp_json_add_null(bp_json *json, const char *key);
/* Adds a value that is JSON already, which is the caller's to know. */
void bp_json_add_raw(bp_json *json, const char *key, const char *value, size_t byte_count);
/* As bp_json_append_number prints it. A value that is not finite fails the document. */
void bp_json_add_number(bp_json *json, const char *key, double value, unsigned decimals);

/* Fails the document with NO_MEMORY, for a caller who could not make a value. */
void bp_json_fail_memory(bp_json *json);

/*
 * Checks a text from outside against RFC 8259: the whole input is one value, no number like 01 or
 * 1., no raw control character, valid UTF-8, no lone surrogate escape, no duplicate key in an
 * object, depth at most BP_JSON_DEPTH_MAX. Skips a byte order mark at the start. Appends the same
 * document, indented by two spaces, numbers and strings byte for byte, with a final newline.
 *
 * On failure `out` holds what it held before and the error is CORRUPT with "line L, column C: what
 * was expected"; both count from 1, columns in characters. NO_MEMORY also for a full buffer. Takes
 * at most 64 bytes of memory for each key of the objects that are open at a time, and time in
 * proportion to the text.
 */
bugpack_status bp_json_reformat(const void *text, size_t byte_count, bp_buffer *out,
                                bugpack_error *error);

/*
 * Appends the bytes as a JSON string with its quotes, escaped, in valid UTF-8: for what is streamed
 * without a document around it. Appends all of it or nothing.
 */
bugpack_status bp_json_append_string(bp_buffer *out, const void *bytes, size_t byte_count);

/*
 * Appends a finite number rounded to `decimals` (0 to 9) digits after the point, without trailing
 * zeros ("12.5"), with a point whatever the host's locale has.
 */
bugpack_status bp_json_append_number(bp_buffer *out, double value, unsigned decimals);

#endif
