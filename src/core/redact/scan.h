/*
 * The secrets of one record: all rules in one pass over its view.
 */
#ifndef BP_REDACT_SCAN_H
#define BP_REDACT_SCAN_H

#include <stdint.h>

#include "redact/rule_set.h"
#include "redact/view.h"

/* A part of the view that is to be replaced. */
typedef struct bp_hit {
    size_t from, to;
    size_t match_from; /* where the match begins that found it: at its keyword, or before */
    uint16_t rule;
} bp_hit;

/* A block of lines, such as a private key, whose end has not been seen. Its lines may be records of
 * their own, between those of other threads. */
typedef struct bp_open_block {
    uint64_t stream; /* the thread and channel, or 0 */
    uint64_t key;    /* the member of JSON that its lines are, or 0 */
    uint16_t rule;
    uint16_t line_count, miss_count;
    uint16_t begun_count; /* whose ends have not been seen: two may have their lines mixed */
    bool is_open;
} bp_open_block;

enum { BP_OPEN_BLOCKS = 8, BP_GAVE_UP_MAX = 64 };

typedef struct bp_scan {
    const bp_rule_set *set;
    bool is_of_traffic; /* what is searched is payload */
    bool is_decoded;    /* and not as it was sent: a length in it would be wrong */
    bp_matcher *matcher;
    bp_hit *hits; /* in no order */
    size_t hit_count, hit_capacity;
    bp_open_block blocks[BP_OPEN_BLOCKS];
    unsigned open_count;  /* of blocks */
    uint64_t block_key;   /* of the string that a record ended inside of */
    bool has_block_begin; /* the record that was searched last has the begin of a block */
    size_t lines_from;    /* from here on keywords count for: */
    unsigned line_count;  /* how many lines behind the text a match may go on in */
    /* In a text that goes on: the first match that depends on how, and what it would replace. */
    bool is_undecided;
    bp_hit undecided;
    uint16_t gave_up_counts[BP_RULE_MAX_COUNT]; /* after BP_GAVE_UP_MAX a rule is not tried again */
} bp_scan;

/* NO_MEMORY. */
bugpack_status bp_scan_init(bp_scan *scan, const bp_rule_set *set);
void bp_scan_release(bp_scan *scan);

/* Forgets what an entry left. */
void bp_scan_reset(bp_scan *scan);

/* Adds to `hits`, except for blocks of lines. NO_MEMORY. */
bugpack_status bp_scan_record(bp_scan *scan, const bp_view *view);

/* Adds blocks of lines, which may have begun in earlier records of the stream. NO_MEMORY. */
bugpack_status bp_scan_blocks(bp_scan *scan, const bp_view *view, uint64_t stream);

/* Notes a match that depends on how the text goes on. */
void bp_scan_add_undecided(bp_scan *scan, const bp_hit *hit);

/* Matches, unless the rule has given up too often: it does where the pattern takes too many steps,
 * so that the text is not known to be clean. */
bp_match_result bp_scan_match(bp_scan *scan, uint16_t rule, const unsigned char *text, size_t size,
                              size_t offset, bp_match *ret_match);

/* Adds a hit that was found in another way, also one that overlaps others. NO_MEMORY. */
bugpack_status bp_scan_add(bp_scan *scan, const bp_hit *hit);

#endif
