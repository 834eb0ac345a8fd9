/*
 * The key of a gap: what it is called, and which channel it is of.
 */
#ifndef BP_TRIGGER_GAP_KEY_H
#define BP_TRIGGER_GAP_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/gap.h>

#include "redact/tag.h"

/* Bytes at the front of a longer key; '~' and 16 hexadecimal digits follow. */
#define BP_GAP_KEY_FRONT_BYTES (BUGPACK_GAP_KEY_MAX_BYTES - 17)

/* What an empty key is counted as: no report and no manifest could name it. */
#define BP_GAP_KEY_UNNAMED "unnamed"

/* A key on its way into the table. `text` is the caller's, or points into `made`: not to be copied.
 */
typedef struct bp_gap_key {
    const char *text; /* any bytes but NUL; `bytes` long, then a NUL */
    size_t bytes;     /* 1 to BUGPACK_GAP_KEY_MAX_BYTES */
    size_t channel_bytes;
    bool is_unknown; /* its kind is "unknown": a channel may have few of these */
    char made[BUGPACK_GAP_KEY_MAX_BYTES + 1];
} bp_gap_key;

/*
 * Reads "<channel>:<kind>:<detail>", which may be anything: the channel is all before the first
 * ':', or the whole key. One that is too long is cut, and ends in a hash of all of it by the
 * session's key (NULL for a text that is short); without random numbers for that, in '~' alone.
 * `text` is borrowed and must outlive the key.
 */
void bp_gap_key_read(bp_gap_key *key, const bp_tag_key *hash_key, const char *text);

/* "<channel>:unknown:<opcode>"; a ':' inside the channel stays the channel's. */
void bp_gap_key_make_unknown(bp_gap_key *key, const char *channel, uint64_t opcode);

/* "<channel>:overflow", or "<channel>:unknown:overflow", for the channel of another key. */
void bp_gap_key_make_overflow(bp_gap_key *key, const bp_gap_key *of, bool of_unknown);

/* Whether one of these patterns of fnmatch(3) fits the key. */
bool bp_gap_key_matches(const bp_gap_key *key, const char *const *patterns, size_t pattern_count);

#endif
