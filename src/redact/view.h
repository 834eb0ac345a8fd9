/*
 * A record as rules see it: JSON strings without their escapes, and from where in the record each
 * part of it came.
 */
#ifndef BP_REDACT_VIEW_H
#define BP_REDACT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "redact/names.h"

enum {
    BP_VIEW_BARE = 0xFD,       /* precedes a JSON value without quotes */
    BP_VIEW_KEY = BP_NAME_END, /* ends a key */
    BP_VIEW_END = 0xFF         /* ends a value */
};

typedef struct bp_view_point {
    uint32_t view, raw; /* from here on both go on alike, to the next point */
    bool is_bare;       /* a value without quotes begins */
} bp_view_point;

/* Starts as {0}. Its memory is reused. */
typedef struct bp_view {
    unsigned char *text;
    size_t size, capacity;
    bp_view_point *points;
    size_t point_count, point_capacity;
    bool is_in_string; /* the record ended inside of one */
    /* The first place at or behind `cut_at` where the record may be divided. */
    size_t cut_raw, cut_view;
    bool is_cut_in_string;
    /* The keys of JSON that the record is below: at first where it begins, then where it ends, and
     * where it may be divided. */
    bp_names names, cut_names;
} bp_view;

/* Gets a value below `names`, from its first byte, or the one behind BP_VIEW_BARE, to its end.
 * False: no memory. */
typedef bool bp_view_value(void *context, const bp_view *view, size_t from, size_t to,
                           bool is_bare);

typedef struct bp_view_below {
    const bp_keywords *keywords; /* of the keys that are names */
    bp_view_value *value;
    void *context;
} bp_view_below;

void bp_view_release(bp_view *view);

/*
 * Looks at JSON, or at what should be JSON: quotes that do not match end with their line. With
 * `is_in_string` it begins inside of a string. What is outside of strings and no number of a list
 * is there as well, and below a name such a number too. Escapes of escapes (\\u0070) are resolved
 * too. At most 1 GiB. NO_MEMORY.
 */
bugpack_status bp_view_json(bp_view *view, const char *raw, size_t byte_count, bool is_in_string,
                            size_t cut_at, const bp_view_below *below);

/* A text, with \u00XX resolved. NO_MEMORY. */
bugpack_status bp_view_text(bp_view *view, const char *raw, size_t byte_count, size_t cut_at);

/* From where in the record the byte at `at` of the view came. */
size_t bp_view_raw(const bp_view *view, size_t at);

/* Whether that byte is of a value without quotes; then its first and last byte in the record. */
bool bp_view_is_bare(const bp_view *view, size_t at, size_t *ret_from, size_t *ret_to);

#endif
