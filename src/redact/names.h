/*
 * The keys of JSON that a reader is below and that may name a secret: those with a keyword.
 */
#ifndef BP_REDACT_NAMES_H
#define BP_REDACT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "redact/keywords.h"

enum {
    BP_NAMES_MAX = 8,
    BP_NAME_MAX_BYTES = 64, /* a longer key names nothing */
    BP_NAME_END = 0xFE
};

typedef struct bp_name {
    uint32_t depth; /* that of its array or object */
    uint8_t size;
    unsigned char text[BP_NAME_MAX_BYTES + 1]; /* ends in BP_NAME_END */
} bp_name;

/* Starts as {0}. */
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

#endif
