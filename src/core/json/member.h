/*
 * Members of the object that a JSON text is, without a tree of it.
 */
#ifndef BP_JSON_MEMBER_H
#define BP_JSON_MEMBER_H

#include <stddef.h>

#include <bugpack/error.h>

#include "json/token.h"

/* A member to find. */
typedef struct bp_json_field {
    const char *key;     /* with its quotes; one that is written with escapes is not found */
    bp_json_token value; /* up to its closing bracket; `byte_count` is 0 where there is none */
} bp_json_field;

/*
 * Fills the values, which point into the text, and checks all of it, with the errors of
 * bp_json_reformat, and CORRUPT for a text that is no object.
 */
bugpack_status bp_json_find(const void *text, size_t byte_count, bp_json_field *fields,
                            size_t count, bugpack_error *error);

/*
 * The same for one of very many lines, of which most are only counted: the line is read up to the
 * last member that is wanted, and is not checked. What is found in a malformed one means nothing,
 * but lies within the line.
 */
void bp_json_line_find(const char *line, size_t line_bytes, bp_json_field *fields, size_t count);

#endif
