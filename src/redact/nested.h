/*
 * Values whose name is not beside them: in the arrays and objects below a key of JSON, as in
 * {"password":["a",{"x":"b"}]}, and in the columns of a table. Each is replaced if it would be as
 * the only value of that name.
 */
#ifndef BP_REDACT_NESTED_H
#define BP_REDACT_NESTED_H

#include "redact/scan.h"

/* A bp_view_value of JSON; `scan` gets its hit. */
bool bp_nested_value(void *scan, const bp_view *view, size_t from, size_t to, bool is_bare);

/* Adds the hit of a value below the innermost of `names` that has one. NO_MEMORY. */
bugpack_status bp_nested_try(bp_scan *scan, const bp_names *names, const unsigned char *text,
                             size_t from, size_t to, bool is_bare);

/* Adds the hits in JSON that is in a text, in one line of it or in one string of JSON, with any
 * number of backslashes. NO_MEMORY. */
bugpack_status bp_nested_search(bp_scan *scan, const bp_view *view);

/*
 * Adds the hits in the rows of tables whose heading names a secret (CSV, what psql and mysql print,
 * COPY), and notes headings; the rows may be in later records of the stream. Of JSON only the
 * message of a log record is searched. NO_MEMORY.
 */
bugpack_status bp_nested_search_tables(bp_scan *scan, const bp_view *view, uint64_t stream);

#endif
