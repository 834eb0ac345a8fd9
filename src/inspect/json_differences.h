/*
 * A list of the members in which two JSON documents differ.
 */
#ifndef BP_INSPECT_JSON_DIFFERENCES_H
#define BP_INSPECT_JSON_DIFFERENCES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "inspect/change.h"
#include "json/scanner.h"

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

#endif
