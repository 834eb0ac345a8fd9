/*
 * A set of bytes, as one position of a keyword is written (redact/keywords.h).
 */
#ifndef BP_REDACT_BYTE_SET_H
#define BP_REDACT_BYTE_SET_H

#include <stdint.h>

typedef struct bp_byte_set {
    uint64_t words[4];
} bp_byte_set;

/* Reads one position and returns what is behind it; NULL where it is not understood. `text` is not
 * empty. */
const char *bp_byte_set_parse(const char *text, bp_byte_set *ret_set);

#endif
