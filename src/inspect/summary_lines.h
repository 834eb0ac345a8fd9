/*
 * What of the entries with many lines goes into the summary.
 */
#ifndef BP_INSPECT_SUMMARY_LINES_H
#define BP_INSPECT_SUMMARY_LINES_H

#include <stdbool.h>

#include <bugpack/error.h>

#include "inspect/summary.h"

enum { BP_SUMMARY_LINES = 3 };
extern const char *const bp_summary_line_entries[BP_SUMMARY_LINES];

/* Whether to read one of these entries, and how it went. */
typedef struct bp_summary_lines {
    bool is_wanted;
    bugpack_status status;
    bugpack_error failure;
} bp_summary_lines;

/* Reads those that are wanted: long ones at once, each by a thread of its own. */
void bp_summary_read_lines(bp_summary *summary, bp_summary_lines lines[BP_SUMMARY_LINES]);

#endif
