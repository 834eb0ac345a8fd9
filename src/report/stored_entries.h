/*
 * What providers wrote while the process lived, kept in the session's directory for the report
 * about its death.
 */
#ifndef BP_REPORT_STORED_ENTRIES_H
#define BP_REPORT_STORED_ENTRIES_H

#include <stdbool.h>

#include "report/bundle.h"
#include "report/context.h"
#include "report/provider.h"

/* Of all entries together; what is beyond is left out, and the report says so. */
#define BP_STORED_MAX_BYTES ((size_t)4 << 20)

/*
 * Asks the provider of process.json, with `has_hosts` also those of the host that provide text or
 * JSON, and replaces what was kept before. Worker.
 */
void bp_stored_entries_write(const bp_report_context *context, bp_runner *runner, bool has_hosts);

/* Adds what a dead session kept, if it did; each line has its time. What is damaged is no entry.
 * NO_MEMORY, IO, and those of the bundle. */
bugpack_status bp_stored_entries_add(int session_dir_fd, bp_bundle *bundle, bugpack_error *error);

#endif
