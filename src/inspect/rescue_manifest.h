/*
 * The manifest of a report that was saved: that of the damaged one with what is no longer so, or a
 * new one.
 */
#ifndef BP_INSPECT_RESCUE_MANIFEST_H
#define BP_INSPECT_RESCUE_MANIFEST_H

#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "inspect/rescue.h"

typedef struct bp_rescue_manifest bp_rescue_manifest;

/* What was lost and what was not listed goes to `result`, which outlives it. NULL without memory.
 */
bp_rescue_manifest *bp_rescue_manifest_new(bp_rescue_result *result);
/* NULL is fine. */
void bp_rescue_manifest_free(bp_rescue_manifest *manifest);

/* Notes an entry that was saved. NO_MEMORY. */
bugpack_status bp_rescue_manifest_add(bp_rescue_manifest *manifest, const char *name,
                                      uint64_t byte_count, const char *sha256,
                                      bugpack_error *error);
/* Notes one that cannot be saved; `name` is NULL for what has no name. NO_MEMORY. */
bugpack_status bp_rescue_manifest_lose(bp_rescue_manifest *manifest, const char *name,
                                       const char *why, bugpack_error *error);

/* Takes the text of metadata.json, for the id of the report. */
void bp_rescue_manifest_read_id(bp_rescue_manifest *manifest, const bp_buffer *metadata);
/* Takes the text of the old manifest. Notes it as lost if `bugpack verify` would refuse it.
 * NO_MEMORY. */
bugpack_status bp_rescue_manifest_read_old(bp_rescue_manifest *manifest, const bp_buffer *text,
                                           bugpack_error *error);

/* Appends the new manifest; once. Each entry has the size and the SHA-256 with which it was saved.
 * NO_MEMORY, LIMIT of the buffer. */
bugpack_status bp_rescue_manifest_print(bp_rescue_manifest *manifest, bp_buffer *out,
                                        bugpack_error *error);

#endif
