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
#include "redact/keywords.h"

enum {
    BP_VIEW_BARE = 0xFD, /* precedes a JSON value without quotes */
    BP_VIEW_KEY = 0xFE,  /* ends a key */
    BP_VIEW_END = 0xFF   /* ends a value */
};

enum {
    BP_NAMES_MAX = 8,
    BP_NAME_MAX_BYTES = 64 /* a longer key names nothing */
};

/* A key of JSON that has a keyword, and so may name a secret. */
typedef struct bp_name {
    uint32_t depth; /* that of its array or object */
    uint8_t size;
    unsigned char text[BP_NAME_MAX_BYTES + 1]; /* ends in BP_VIEW_KEY */
} bp_name;

/* The names that a reader is below. Starts as {0}. */
typedef struct bp_names {
    uint32_t depth; /* arrays and objects that are open, from that of the first name on */
    uint32_t count; /* 0: what is read is below no such key */
    bp_name names[BP_NAMES_MAX];
} bp_names;

/* An array or an object begins, as the value of this key; NULL: of none. */
void bp_names_open(bp_names *names, const bp_keywords *keywords, const unsigned char *key,
                   size_t byte_count);
/* It ends. */
void bp_names_close(bp_names *names);

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
    const unsigned char *text;
    size_t size;
    bool is_json;          /* keys and values have their separators */
    bool goes_on;          /* more follows, which is not there yet or was cut off */
    unsigned char *memory; /* of the text, unless it is the record itself */
    size_t capacity;
    bp_view_point *points, *old_points;
    size_t point_count; /* 0: it is the record itself */
    size_t point_capacity, old_capacity;
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

/* The view of a record. */
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

/* Looks at a text as it is, which has to stay. */
void bp_view_plain(bp_view *view, const void *raw, size_t byte_count);

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

/* True if that byte is of a value without quotes; then its first and last byte in the record. */
bool bp_view_is_bare(const bp_view *view, size_t at, size_t *ret_from, size_t *ret_to);

#endif
