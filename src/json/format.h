/*
 * The one place that lays JSON out, for what we build and for what came from outside.
 */
#ifndef BP_JSON_FORMAT_H
#define BP_JSON_FORMAT_H

#include <stddef.h>

#include <bugpack/error.h>

#include "base/buffer.h"

typedef enum bp_json_layout {
    BP_JSON_INDENTED, /* by two spaces, one member a line; {} and [] when empty */
    BP_JSON_ONE_LINE  /* without any space */
} bp_json_layout;

/*
 * Checks a text as bp_json_reformat does and appends it laid out, with a final newline. On failure
 * `out` holds what it held before.
 */
bugpack_status bp_json_format(const void *text, size_t byte_count, bp_json_layout layout,
                              bp_buffer *out, bugpack_error *error);

#endif
