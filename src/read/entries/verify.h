/*
 * Checks that a report is whole: its zip, every entry, and what the manifest says of each.
 *
 * Time and memory are bounded whatever the file holds: entries are checked while they are read, and
 * nothing is kept of them.
 */
#ifndef BP_ENTRIES_VERIFY_H
#define BP_ENTRIES_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"

#define BP_VERIFY_MAX_BYTES ((uint64_t)256 << 20)

typedef struct bp_verify_result {
    size_t fault_count;
    bp_buffer
        faults; /* the first of them, separated by "; ". Text of the report is in it as it is */
    size_t entry_count;
    uint64_t bytes; /* of all entries, uncompressed */
} bp_verify_result;

/*
 * Checks the report in `fd`, a regular file that stays the caller's. More than `max_bytes` of
 * uncompressed bytes are a fault, and so are values that take more work than these may. OK with the
 * result, to be released; IO and NO_MEMORY.
 */
bugpack_status bp_verify(int fd, uint64_t max_bytes, bp_verify_result *ret_result,
                         bugpack_error *error);
void bp_verify_release(bp_verify_result *result);

#endif
