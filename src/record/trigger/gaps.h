/*
 * The gaps of a session: a bounded table of keys that only grows, with a count each, and the places
 * of the reports that they may lead to. It knows no session and no report.
 *
 * One lock guards all of it. An occurrence of a key whose report is written, or on its way, is
 * counted without it. Memory is allocated at the start; the system provides pages as they are first
 * written.
 */
#ifndef BP_TRIGGER_GAPS_H
#define BP_TRIGGER_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/gap.h>

#include "model/manifest.h"
#include "model/pedantic_summary.h"
#include "redact/tag.h"

/*
 * The key of a gap: what it is called, and which channel it is of.
 */

/* Bytes at the front of a longer key; '~' and 16 hexadecimal digits follow. */
#define BP_GAP_KEY_FRONT_BYTES (BUGPACK_GAP_KEY_MAX_BYTES - 17)

/* The name of an empty key, which no report and no manifest could name. */
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

typedef struct bp_gaps bp_gaps;
/* One key's row. It stays where it is until the table is freed. */
typedef struct bp_gap bp_gap;

typedef struct bp_gaps_options {
    uint32_t cap;         /* reports in all; what is over BUGPACK_GAP_KEYS_MAX means that */
    uint32_t channel_cap; /* of these, for one channel; 0: no cap of its own */
} bp_gaps_options;

bugpack_status bp_gaps_new(const bp_gaps_options *options, bp_gaps **ret_gaps,
                           bugpack_error *error);
/* NULL is fine. */
void bp_gaps_free(bp_gaps *gaps);

/* bp_gap_key_read, with the key of the hashes of these gaps, which is random and stored nowhere: a
 * key that is too long has one name in a session, and another one in the next. Any thread. */
void bp_gaps_read_key(const bp_gaps *gaps, bp_gap_key *key, const char *text);

/* The outcome of an occurrence. */
typedef enum bp_gap_occurrence {
    BP_GAP_COUNTED,     /* that is all */
    BP_GAP_REPORT,      /* its place is taken: report it, and call bp_gaps_settle */
    BP_GAP_CAP,         /* counted, and the first that the cap keeps from its report */
    BP_GAP_CHANNEL_CAP, /* counted, and the first of its channel that the channel's share keeps */
} bp_gap_occurrence;

/*
 * Counts one occurrence of a key, and says whether it leads to a report, which it never does while
 * `is_enabled` is false. `ret_gap` gets the row for all but BP_GAP_COUNTED. A key for which there
 * is no room counts as "<channel>:unknown:overflow", "<channel>:overflow" or, when the whole table
 * is full, as "overflow". Any thread.
 */
bp_gap_occurrence bp_gaps_see(bp_gaps *gaps, const bp_gap_key *key, bool is_enabled,
                              bp_gap **ret_gap);

/*
 * Ends what BP_GAP_REPORT began: a written report keeps its place for good, a failed one gives it
 * back, and the key's next occurrence may try again while it has tries. Any thread.
 */
void bp_gaps_settle(bp_gaps *gaps, bp_gap *gap, bool is_written);

/* Ends it likewise: there is no report in this session, for the reason, which is static. Any
 * thread.
 */
void bp_gaps_give_up(bp_gaps *gaps, bp_gap *gap, const char *reason);

/* Borrowed; NUL-terminated, any bytes. The channel is not terminated. */
const char *bp_gap_text(const bp_gap *gap);
size_t bp_gap_channel_bytes(const bp_gap *gap);

/* Fills the counts of the state. Any thread. */
void bp_gaps_count(bp_gaps *gaps, bugpack_pedantic_state *ret_state);

/* The fields that change in the first `count` rows, in their order; there are as many. Any thread.
 */
void bp_gaps_tallies(bp_gaps *gaps, bp_trigger_tally *ret_tallies, size_t count);

/*
 * One row for each key by first occurrence, the caller's to free; texts are borrowed from the
 * table. `writing` (NULL for none) is a row whose report is being written, and counts as written.
 * NO_MEMORY. Any thread.
 */
bugpack_status bp_gaps_list(bp_gaps *gaps, const bp_gap *writing, bp_pedantic_gap **ret_rows,
                            size_t *ret_count, bugpack_error *error);

#endif
