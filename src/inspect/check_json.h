/*
 * Checks a JSON entry while it is read: RFC 8259, and the published schema of its name.
 */
#ifndef BP_INSPECT_CHECK_JSON_H
#define BP_INSPECT_CHECK_JSON_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/sink.h"
#include "json/scanner.h"
#include "json/schema.h"

/* A longer string or number is refused, and more keys of the objects that are open at a time. */
#define BP_CHECK_TOKEN_BYTES_MAX ((size_t)8 << 20)
#define BP_CHECK_KEY_MAX ((size_t)1 << 17)

typedef struct bp_json_stream {
    bp_buffer window;
    bp_json_scanner scanner;
    bp_json_check *check;      /* NULL: no schema is known */
    size_t needed;             /* the window is not scanned before it has as many bytes */
    uint64_t steps, steps_max; /* how much work it was, without the schema, and may be */
} bp_json_stream;

/* `schema` is borrowed; NULL: any JSON will do. `is_lines`: each line is a document. NO_MEMORY;
 * release it also then. */
bugpack_status bp_json_stream_begin(bp_json_stream *stream, bp_json_schema *schema, bool is_lines,
                                    uint64_t steps_max, bugpack_error *error);

/* CORRUPT with what is wrong; LIMIT where it is too much work; NO_MEMORY. All of them are final. */
bugpack_status bp_json_stream_write(bp_json_stream *stream, const void *bytes, size_t byte_count,
                                    bugpack_error *error);
/* The same for the end of the text. */
bugpack_status bp_json_stream_end(bp_json_stream *stream, bugpack_error *error);

/* How much work it was, in the unit of `steps_max`: a token is 6, a part of a schema applied is 1.
 */
uint64_t bp_json_stream_steps(const bp_json_stream *stream);

void bp_json_stream_release(bp_json_stream *stream);

#endif
