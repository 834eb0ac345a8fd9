/*
 * One line per report: what a fleet is asked about, flat, so that any table takes it.
 */
#ifndef BP_INSPECT_INDEX_H
#define BP_INSPECT_INDEX_H

#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"

/*
 * Appends the line of a report: a JSON object without nested ones (docs/schema/index.schema.json),
 * and a newline. Reads only its small documents, so that a line takes less than a millisecond.
 * Errors of bp_report_file_open_any; NO_MEMORY.
 */
bugpack_status bp_index_line(const char *path, uint64_t byte_count, bp_buffer *out,
                             bugpack_error *error);

#endif
