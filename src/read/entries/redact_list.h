/*
 * What a report may hold about a person, for whoever is about to send it.
 */
#ifndef BP_ENTRIES_REDACT_LIST_H
#define BP_ENTRIES_REDACT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "base/buffer.h"

/* A name is not looked for if it has under three characters, or others than login and host names
 * have. */
typedef struct bp_person_names {
    const char *users[8];
    size_t count;
    const char *machine; /* looked for up to its first dot; NULL: none */
} bp_person_names;

/* Appends a table: a line for each entry with its size, what such an entry may hold and what was
 * replaced; what was not searched; and the lines that mention somebody. Text of the report is
 * escaped. With `as_json` it is one document (docs/schema/redact-list.schema.json). `fd` is closed
 * in any case, `path` is for sentences. CORRUPT, UNSUPPORTED, IO, NO_MEMORY. */
bugpack_status bp_redact_list(int fd, const char *path, const bp_person_names *names, bool as_json,
                              bp_buffer *out, bugpack_error *error);

#endif
