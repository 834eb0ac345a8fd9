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

/* A bp_sink for a bp_buffer: keeps the last BP_SUMMARY_TAIL_BYTES. */
bugpack_status bp_summary_keep_tail(void *context, const void *bytes, size_t byte_count);

/* Errors of the last seconds before the trigger in the end of a text log, in which `last` is. */
typedef struct bp_log_errors {
    size_t count;
    bool is_cut;
    const char *condition; /* " if ...", or "" */
    const char *last;      /* without its time */
    size_t last_bytes;
} bp_log_errors;
bp_log_errors bp_log_errors_count(const bp_buffer *tail, uint64_t trigger_ns);

#endif
