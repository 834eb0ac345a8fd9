/*
 * What of the entries with many lines goes into the summary.
 */
#ifndef BP_INSPECT_SUMMARY_LINES_H
#define BP_INSPECT_SUMMARY_LINES_H

#include "inspect/json_lines.h"
#include "inspect/summary.h"

/* The context is the summary. */
typedef struct bp_summary_line_reader {
    const char *entry;
    bp_json_line_taker *add;
} bp_summary_line_reader;

extern const bp_summary_line_reader bp_summary_line_readers[];
extern const size_t bp_summary_line_reader_count;

#endif
