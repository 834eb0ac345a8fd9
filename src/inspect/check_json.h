/*
 * Checks a JSON entry while it is read: RFC 8259, and the published schema of its name.
 */
#ifndef BP_INSPECT_CHECK_JSON_H
#define BP_INSPECT_CHECK_JSON_H

#include <stdbool.h>

#include "json/parts.h"
#include "json/schema.h"

typedef struct bp_json_stream {
    bp_json_parts parts;       /* to be given the text; LIMIT where it is too much work */
    bp_json_check *check;      /* NULL: no schema is known */
    uint64_t steps, steps_max; /* how much work it was, without the schema, and may be */
} bp_json_stream;

/* `schema` is borrowed; NULL: any JSON will do. `is_lines`: each line is a document. The stream
 * stays where it is. NO_MEMORY; release it also then. */
bugpack_status bp_json_stream_begin(bp_json_stream *stream, bp_json_schema *schema, bool is_lines,
                                    uint64_t steps_max, bugpack_error *error);

/* How much work it was, in the unit of `steps_max`: a token is 6, a part of a schema applied is 1.
 */
uint64_t bp_json_stream_steps(const bp_json_stream *stream);

void bp_json_stream_release(bp_json_stream *stream);

#endif
