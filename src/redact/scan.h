/*
 * The secrets of one record: all rules in one pass over its view.
 */
#ifndef BP_REDACT_SCAN_H
#define BP_REDACT_SCAN_H

#include <stdint.h>

#include "redact/rule_set.h"

/* A part of the view that is to be replaced. */
typedef struct bp_hit {
    size_t from, to;
    uint16_t rule;
    bool gave_up; /* the pattern took too many steps, so that the text is not known to be clean */
} bp_hit;

/* A block of lines, such as a private key, whose end has not been seen. Its lines may be records of
 * their own, between those of other threads. */
typedef struct bp_open_block {
    uint64_t stream; /* the thread and channel, or 0 */
    uint64_t key;    /* the member of JSON that its lines are, or 0 */
    uint16_t rule;
    uint16_t line_count, miss_count;
    bool is_open;
} bp_open_block;

enum { BP_OPEN_BLOCKS = 8, BP_GAVE_UP_MAX = 64 };

typedef struct bp_scan {
    const bp_rule_set *set;
    bp_matcher *matcher;
    bp_hit *hits; /* sorted, and they do not overlap */
    size_t hit_count, hit_capacity;
    bp_open_block blocks[BP_OPEN_BLOCKS];
    unsigned open_count;
    uint16_t gave_up_counts[BP_RULE_MAX_COUNT]; /* after BP_GAVE_UP_MAX a rule is not tried again */
} bp_scan;

/* NO_MEMORY. */
bugpack_status bp_scan_init(bp_scan *scan, const bp_rule_set *set);
void bp_scan_release(bp_scan *scan);

/* Forgets what an entry left. */
void bp_scan_reset(bp_scan *scan);

/*
 * Adds to `hits`. In a view of JSON (`is_json`) keys and values have their separators
 * (redact/view.h). NO_MEMORY.
 */
bugpack_status bp_scan_record(bp_scan *scan, const unsigned char *text, size_t byte_count,
                              bool is_json, uint64_t stream);

/* Adds a hit that was found in another way; merge afterwards. NO_MEMORY. */
bugpack_status bp_scan_add(bp_scan *scan, const bp_hit *hit);

/* Sorts the hits, and joins those that overlap. */
void bp_scan_merge(bp_scan *scan);

#endif
