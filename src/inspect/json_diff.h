/*
 * What differs between two JSON documents, member by member. Pure: texts in, rows out.
 */
#ifndef BP_INSPECT_JSON_DIFF_H
#define BP_INSPECT_JSON_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "json/scanner.h"

/* A number before and after. One with a fraction is multiplied by a power of ten, which its owner
 * knows. */
typedef struct bp_change {
    uint64_t before, after; /* 0 where it is not known */
    bool is_known_before, is_known_after;
    bool has_delta;   /* both are known */
    int64_t delta;    /* after - before, saturated */
    bool has_percent; /* there is a delta, and `before` is not 0 */
    double percent;   /* of `before`, rounded to hundredths */
} bp_change;

/* Fills in the rest from the first four members. */
void bp_change_complete(bp_change *change);

/* A member that differs. The texts are offsets in the buffer of the list. */
typedef struct bp_json_difference {
    const char *entry; /* the document; as it was given */
    size_t path;       /* "limits[Max open files].soft" */
    bool has_before, has_after;
    size_t before, after; /* JSON without white space */
    bool is_redacted;     /* both sides have other secrets, or the same: it is not known */
    bool is_number;       /* `change` is filled in, with so many decimals */
    unsigned decimals;
    bp_change change;
} bp_json_difference;

enum { BP_JSON_DIFFERENCE_MAX = 10000 };

typedef struct bp_json_differences {
    bp_json_difference *rows;
    size_t count, capacity;
    size_t redacted_count;
    bool is_cut; /* there are more than BP_JSON_DIFFERENCE_MAX */
    bp_buffer texts;
} bp_json_differences;

void bp_json_differences_init(bp_json_differences *list);
void bp_json_differences_release(bp_json_differences *list);

/*
 * Appends a row; a side that is NULL does not have the member. Where the list is full it says so.
 * False without memory.
 */
bool bp_json_differences_add(bp_json_differences *list, const char *entry, const bp_buffer *path,
                             const bp_json_token *before, const bp_json_token *after);

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
