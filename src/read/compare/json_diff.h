/*
 * The differences between JSON documents, member by member. Pure: texts in, rows out.
 */
#ifndef BP_COMPARE_JSON_DIFF_H
#define BP_COMPARE_JSON_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/sink.h"
#include "json/scanner.h"

/* The members of a document that are compared. Lists of words; all static. */
typedef struct bp_json_diff_rule {
    const char *entry; /* the name of the document */
    const char *parts; /* the members of the root that are; "" for all */
    const char *skip;  /* the members, at any depth, that are not */
} bp_json_diff_rule;

/* Bounds the memory of a side. A thread takes some 400 bytes of it. */
#define BP_JSON_SIDE_BYTES ((size_t)64 << 20)

/* The documents of a side, without what their rules leave out. */
typedef struct bp_json_side {
    bp_buffer text; /* without white space */
    struct bp_json_node *nodes;
    size_t count, capacity;
} bp_json_side;

void bp_json_side_init(bp_json_side *side);
void bp_json_side_release(bp_json_side *side);

/*
 * Adds a document, whose root is not 0. CORRUPT for a text that is no JSON, and where the side
 * would take more than BP_JSON_SIDE_BYTES; NO_MEMORY; errors of the giver.
 */
bugpack_status bp_json_side_read(bp_json_side *side, const bp_giver *text,
                                 const bp_json_diff_rule *rule, uint32_t *ret_root,
                                 bugpack_error *error);

/* A member that differs. Its values are parts of the texts of the sides. */
typedef struct bp_json_change {
    const char *entry, *path;    /* "limits[Max open files].soft"; owned by the list */
    bp_json_token before, after; /* of no bytes where there is none */
    bool is_number; /* both are numbers, with at most `decimals` digits after the point */
    unsigned decimals;
    uint64_t numbers[2]; /* before and after, times ten to the power of `decimals` */
    int64_t delta;       /* their difference, saturated */
} bp_json_change;

enum { BP_JSON_CHANGE_MAX = 1 << 18 };

/* All zero is empty. */
typedef struct bp_json_changes {
    bp_json_change *rows;
    size_t count, capacity;
    bool is_cut; /* there are more than BP_JSON_CHANGE_MAX, or their paths are too long */
    bp_buffer paths;
} bp_json_changes;

void bp_json_changes_release(bp_json_changes *list);

/* The part of a path behind its last array element: rows with the same part are of one kind. */
const char *bp_json_change_kind(const bp_json_change *change);

/*
 * Appends what differs between two documents, by kind, of which the largest change comes first.
 * Elements of an array are matched by what names them (path, name, key or id, and tid), where all
 * have it, otherwise by their index; a path has it in brackets. Strings that differ only in the
 * hash of a redacted secret are equal. The sides must not grow while the rows are used. NO_MEMORY.
 */
bugpack_status bp_json_diff(const bp_json_side *before, uint32_t before_root,
                            const bp_json_side *after, uint32_t after_root, const char *entry,
                            bp_json_changes *list, bugpack_error *error);

#endif
