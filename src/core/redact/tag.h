/*
 * The replacement of a secret: the same text for the same secret within one report, and another
 * one in the next, so that a reader can follow a token without having it.
 */
#ifndef BP_REDACT_TAG_H
#define BP_REDACT_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BP_TAG_PREFIX "REDACTED-"
bool bp_tag_begins(const void *text, size_t byte_count);
enum { BP_TAG_BYTES = 64 };

/* The key of one report, which is random and stored nowhere. */
typedef struct bp_tag_key {
    uint64_t words[2];
    bool is_there; /* false where the system has no random numbers: tags then have no hash */
} bp_tag_key;

void bp_tag_key_new(bp_tag_key *ret_key);
void bp_tag_key_clear(bp_tag_key *key);

/* SipHash-2-4 (Aumasson and Bernstein, 2012): without the key a tag is no help in guessing. */
uint64_t bp_tag_hash(const bp_tag_key *key, const void *bytes, size_t byte_count);

/* Writes "REDACTED-<rule>-<12 hex digits of the hash>": letters, digits and '-' alone, so that it
 * fits into JSON, a URL and a file name. Returns its length. */
size_t bp_tag_print(const bp_tag_key *key, const char *rule, uint64_t hash,
                    char ret_tag[BP_TAG_BYTES]);

#endif
