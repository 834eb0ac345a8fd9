/*
 * What differs between two JSON documents, member by member. Pure: texts in, rows out.
 */
#ifndef BP_INSPECT_JSON_DIFF_H
#define BP_INSPECT_JSON_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "inspect/json_differences.h"

/* Bounds the memory for each of the documents, with its text: some 140,000 values that are
 * compared. */
#define BP_JSON_DIFF_SIDE_BYTES ((size_t)18 << 20)

typedef struct bp_json_diff_rule {
    const char *entry; /* static */
    const char *parts; /* members of the root that are compared, in words; "" for all */
    const char *skip;  /* members that are not compared, at any depth, in words */
    bool by_name;      /* elements with a name and a tid are the same if their names are */
} bp_json_diff_rule;

/*
 * Appends what differs, by path. Elements of an array are matched by what names them (name and tid,
 * path, name, key or id), where all have it, otherwise by their index; a path has it in brackets.
 * CORRUPT for a text that is no JSON, or would take more than BP_JSON_DIFF_SIDE_BYTES;
 * NO_MEMORY.
 */
bugpack_status bp_json_diff(const bp_buffer *before, const bp_buffer *after,
                            const bp_json_diff_rule *rule, bp_json_differences *list,
                            bugpack_error *error);

#endif
