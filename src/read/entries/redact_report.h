/*
 * A report that is there already written again, in a new file: with rules of redaction applied, or
 * with entries changed; and what it may hold about a person, for whoever is about to send it.
 */
#ifndef BP_ENTRIES_REDACT_REPORT_H
#define BP_ENTRIES_REDACT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "entries/report_file.h"
#include "platform/staged_file.h"
#include "redact/rule_set.h"

/* Appends what an entry becomes, or leaves `out` empty: it stays as it is. `ret_count` gets how
 * much has changed. */
typedef bugpack_status bp_entry_changer(void *context, const bp_report_file *report,
                                        const char *name, bp_buffer *out, uint64_t *ret_count,
                                        bugpack_error *error);

/* All borrowed. */
typedef struct bp_redact_request {
    const char *path;         /* of the report */
    const bp_rule_set *rules; /* NULL: nothing is redacted, and `change` is called */
    bp_entry_changer *change;
    void *context;
    const char *changed_key; /* of a manifest line, for the count */
    uint64_t max_zip_bytes;  /* model/fit.h; 0: no limit */
    const char *output_path; /* has a slash; "-2" and so on is added to a name that is taken */
    bp_publish_hook hook;
} bp_redact_request;

/*
 * Writes the report without what the rules match, or with the changed entries. Its manifest says
 * so, and adds what was replaced or changed to what is counted there. `ret_name` gets the new name
 * without its directory, `ret_count` how much it was.
 *
 * CORRUPT and UNSUPPORTED as bp_report_file_take; IO; NO_MEMORY; what the hook returns. Nothing is
 * left behind on failure.
 */
bugpack_status bp_redact_report(const bp_redact_request *request, char *ret_name, size_t name_bytes,
                                uint64_t *ret_count, bugpack_error *error);

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
