/*
 * Values in the columns of a table whose heading names a secret: CSV, what psql and mysql print,
 * and the rows of COPY. Each is replaced if it would be as the value of that name.
 */
#ifndef BP_REDACT_TABLE_H
#define BP_REDACT_TABLE_H

#include "redact/scan.h"

/*
 * Adds the hits in rows, and notes headings; the rows may be in later records of the stream. Of
 * JSON only the message of a log record is searched. NO_MEMORY.
 */
bugpack_status bp_tables_search(bp_scan *scan, const bp_scan_text *text, uint64_t stream);

#endif
