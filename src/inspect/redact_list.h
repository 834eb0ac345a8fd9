/*
 * What a report may hold about a person, for whoever is about to send it.
 */
#ifndef BP_INSPECT_REDACT_LIST_H
#define BP_INSPECT_REDACT_LIST_H

#include <bugpack/error.h>

#include "base/buffer.h"
#include "inspect/persons.h"

/* Appends a table: a line for each entry with its size, what such an entry may hold and what was
 * replaced; what was not searched; and the lines that mention somebody (inspect/persons.h). Text of
 * the report is escaped. `fd` is closed in any case, `path` is for sentences. CORRUPT, UNSUPPORTED,
 * IO, NO_MEMORY. */
bugpack_status bp_redact_list(int fd, const char *path, const bp_person_names *names,
                              bp_buffer *out, bugpack_error *error);

#endif
