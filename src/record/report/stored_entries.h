/*
 * What providers wrote while the process lived, kept in the session's directory for the report
 * about its death.
 */
#ifndef BP_REPORT_STORED_ENTRIES_H
#define BP_REPORT_STORED_ENTRIES_H

#include <stdbool.h>

#include "report/bundle.h"
#include "report/context.h"
#include "report/runner.h"

/* The most of all entries together; the rest is left out, and the report says so. */
#define BP_STORED_MAX_BYTES ((size_t)4 << 20)

/* True if there is anything to keep. */
bool bp_stored_entries_are_there(const bp_report_context *context, bp_stored_scope scope);

/* Asks the providers, and replaces what was kept before. With redaction at the call, secrets are
 * taken out. Worker. */
void bp_stored_entries_write(const bp_report_context *context, bp_runner *runner,
                             bp_stored_scope scope);

/*
 * Adds what a dead session kept, if it did, to the report and to `tags`; each line says how long
 * before the end, at `end_wall_ns`, it was so. What is damaged is no entry. NO_MEMORY, IO, and
 * those of the bundle.
 */
bugpack_status bp_stored_entries_add(int session_dir_fd, uint64_t end_wall_ns, bp_tags *tags,
                                     bp_bundle *bundle, bugpack_error *error);

#endif
