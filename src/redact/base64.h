/*
 * Secrets inside of base64 (RFC 4648, both alphabets), for callers that want them found: a text
 * that may be base64 is decoded and searched by the same rules.
 */
#ifndef BP_REDACT_BASE64_H
#define BP_REDACT_BASE64_H

#include "redact/scan.h"

/* A shorter run of its characters is not looked at. */
enum { BP_BASE64_MIN = 24 };

/* One thread at a time. */
typedef struct bp_base64 bp_base64;
bp_base64 *bp_base64_new(const bp_rule_set *set);
void bp_base64_free(bp_base64 *base64);

/* The first run of at least BP_BASE64_MIN characters that is at or behind `at`; `size` where there
 * is none. */
size_t bp_base64_find(const char *text, size_t size, size_t at);

/* The end of the lines that base64 goes on in behind the line that ends at `end`. */
size_t bp_base64_find_end(const char *text, size_t size, size_t end);

/* Adds to the hits of a record what its base64 has: the characters that a secret is in. NO_MEMORY.
 */
bugpack_status bp_base64_search(bp_base64 *base64, const unsigned char *text, size_t size,
                                bp_scan *to);

#endif
