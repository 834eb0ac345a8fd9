/*
 * A record as rules see it: JSON strings without their escapes, text without escape sequences of a
 * terminal, and from where in the record each part of it came.
 */
#ifndef BP_REDACT_VIEW_H
#define BP_REDACT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "redact/codes.h"
#include "redact/names.h"

enum {
    BP_VIEW_BARE = 0xFD,       /* precedes a JSON value without quotes */
    BP_VIEW_KEY = BP_NAME_END, /* ends a key */
    BP_VIEW_END = 0xFF         /* ends a value */
};

typedef enum bp_view_kind {
    BP_VIEW_SAME,   /* each byte is one of the record */
    BP_VIEW_VALUE,  /* the same, and a value without quotes begins */
    BP_VIEW_EARLIER /* none is of this record */
} bp_view_kind;

/* How the view goes on from here to the next point. Of two at one byte of the view the first says
 * where in the record ends what is before it, the last where begins what follows. */
typedef struct bp_view_point {
    uint32_t view, raw;
    bp_view_kind kind;
} bp_view_point;

/* Starts as {0}. Its memory is reused. */
typedef struct bp_view {
    unsigned char *text;
    size_t size, capacity;
    bp_view_point *points, *old_points;
    size_t point_count, point_capacity, old_capacity;
    bool is_in_string; /* the record ended inside of one */
    bool decodes;      /* it would be another one with BP_CODES_DECODED */
    size_t key_from;   /* the last key, where `size` is behind it and its value is not there */
    bp_names names;    /* the keys of JSON that the record is below: where it begins, then ends */
    size_t message_from, message_to; /* of a log record's "message"; of a text: all of it */
} bp_view;

/* Gets a value below `names`, from its first byte, or the one behind BP_VIEW_BARE, to its end.
 * False: no memory. */
typedef bool bp_view_value(void *context, const bp_view *view, size_t from, size_t to,
                           bool is_bare);

/* How a record is seen. */
typedef struct bp_view_how {
    bp_code_mode mode;
    bool is_in_string;   /* JSON: it begins inside of a string */
    const char *earlier; /* what the line began with, in earlier records, or NULL */
    size_t earlier_bytes;
    const bp_keywords *keywords; /* JSON: of the keys that are names */
    bp_view_value *value;        /* JSON, or NULL */
    void *context;
} bp_view_how;

void bp_view_release(bp_view *view);

/*
 * Looks at JSON, or at what should be JSON: quotes that do not match end with their line. What is
 * outside of strings and no number of a list is there as well, and below a name such a number too.
 * Escapes of escapes (\\u0070) are resolved too. At most 1 GiB. NO_MEMORY.
 */
bugpack_status bp_view_json(bp_view *view, const char *raw, size_t byte_count,
                            const bp_view_how *how);

bugpack_status bp_view_text(bp_view *view, const char *raw, size_t byte_count,
                            const bp_view_how *how);

/* From where in the record the byte at `at` of the view came, and where in it ends what is before
 * that byte: between the two may be what is not in the view. */
size_t bp_view_raw(const bp_view *view, size_t at);
size_t bp_view_raw_end(const bp_view *view, size_t at);

/* The next byte that is directly behind another one of its word only because a sequence between
 * them was taken out; the first one of each word. `*point` is where the search goes on, 0 at first.
 * SIZE_MAX: there is none. */
size_t bp_view_next_joint(const bp_view *view, size_t *point);

/* Whether that byte is of a value without quotes; then its first and last byte in the record. */
bool bp_view_is_bare(const bp_view *view, size_t at, size_t *ret_from, size_t *ret_to);

#endif
