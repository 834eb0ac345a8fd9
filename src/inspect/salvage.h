/*
 * Saves what can be saved of a report that was cut or damaged, into a new one.
 */
#ifndef BP_INSPECT_SALVAGE_H
#define BP_INSPECT_SALVAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"

typedef struct bp_salvage_result {
    size_t saved_count, lost_count, unlisted_count;
    bool lacks_manifest; /* nothing says which entries there were: more may be lost */
    /* What was lost, and what was saved though the manifest does not list it, a line each: "entry
     * "logs.jsonl": the file ends in it", "entry "x"". Text of the report is in it as it is. */
    bp_buffer lost, unlisted;
} bp_salvage_result;

/*
 * Walks the entries from the first byte of `fd`, a regular file that stays the caller's, and writes
 * those whose checksum is right to a new report, which `bugpack verify` accepts if what its entries
 * hold is right. Its manifest is that of the old one, corrected, if it is among them and valid; and
 * says in any case what was lost. At most `max_bytes` are decompressed.
 *
 * `output_path` has a slash; "-2" and so on is added to a name that is taken, and `ret_name` gets
 * the name without the directory. CORRUPT: not one entry can be saved. IO, NO_MEMORY. Nothing is
 * left behind on failure; the result is to be released on success.
 */
bugpack_status bp_salvage(int fd, uint64_t max_bytes, const char *output_path, char *ret_name,
                          size_t name_bytes, bp_salvage_result *ret_result, bugpack_error *error);
void bp_salvage_release(bp_salvage_result *result);

#endif
