/*
 * A report that is there already written again, in a new file: with rules of redaction applied, or
 * with entries changed.
 */
#ifndef BP_ENTRIES_REWRITE_REPORT_H
#define BP_ENTRIES_REWRITE_REPORT_H

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
typedef struct bp_rewrite_request {
    const char *path;         /* of the report */
    const bp_rule_set *rules; /* NULL: nothing is redacted, and `change` is called */
    bp_entry_changer *change;
    void *context;
    const char *changed_key; /* of a manifest line, for the count */
    uint64_t max_zip_bytes;  /* model/fit.h; 0: no limit */
    const char *output_path; /* has a slash; "-2" and so on is added to a name that is taken */
    bp_publish_hook hook;
} bp_rewrite_request;

/*
 * Writes the report without what the rules match, or with the changed entries. Its manifest says
 * so, and adds what was replaced or changed to what is counted there. `ret_name` gets the new name
 * without its directory, `ret_count` how much it was.
 *
 * CORRUPT and UNSUPPORTED as bp_report_file_take; IO; NO_MEMORY; what the hook returns. Nothing is
 * left behind on failure.
 */
bugpack_status bp_rewrite_report(const bp_rewrite_request *request, char *ret_name,
                                 size_t name_bytes, uint64_t *ret_count, bugpack_error *error);

#endif
