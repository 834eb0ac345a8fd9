/*
 * One line out of the ledger of a report.
 */
#ifndef BP_INSPECT_MANIFEST_READER_H
#define BP_INSPECT_MANIFEST_READER_H

#include "inspect/report_file.h"

/* Finds what a manifest.json says of an artefact. CORRUPT or NO_MEMORY. */
bugpack_status bp_manifest_find(const bp_buffer *manifest, const char *name,
                                bp_report_line *ret_line, bugpack_error *error);

#endif
