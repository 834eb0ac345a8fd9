/*
 * Rules compiled for use: the keywords of all as one automaton, and each pattern by PCRE2, with JIT
 * where the system allows it. It is not changed afterwards, so that any number of threads may share
 * it.
 */
#ifndef BP_REDACT_RULE_SET_H
#define BP_REDACT_RULE_SET_H

#include <stdatomic.h>

#include "redact/keywords.h"
#include "redact/rule_file.h"

/* For reading. */
typedef struct bp_rule_set {
    atomic_uint reference_count;
    bp_rule_list list;
    void **codes; /* each a pcre2_code; NULL where the rule does not apply */
    bp_keywords *keywords;
    char *reserve; /* memory for the compiler; NULL once the rules are compiled */
    size_t reserve_used;
    bool searches_all; /* a rule applies that has no keyword: every record is searched */
} bp_rule_set;

/*
 * Takes over the rules of a list, which is empty afterwards, also on failure. INVALID for a pattern
 * that does not compile; LIMIT; NO_MEMORY.
 */
bugpack_status bp_rule_set_new(bp_rule_list *list, bp_rule_set **ret_set, bugpack_error *error);
bp_rule_set *bp_rule_set_retain(bp_rule_set *set);
/* The last reference frees it. NULL is fine. */
void bp_rule_set_drop(bp_rule_set *set);

size_t bp_rule_set_count(const bp_rule_set *set);
const bp_rule *bp_rule_set_rule(const bp_rule_set *set, size_t index);

/* What one thread needs to match. NULL without memory. */
typedef struct bp_matcher bp_matcher;
bp_matcher *bp_matcher_new(const bp_rule_set *set);
void bp_matcher_free(bp_matcher *matcher);

typedef enum bp_match_result {
    BP_MATCH_NONE,
    BP_MATCH_FOUND,
    BP_MATCH_GAVE_UP /* the pattern needs too many steps for this text */
} bp_match_result;

typedef struct bp_match {
    size_t from, to;               /* the whole match */
    size_t secret_from, secret_to; /* what is to be replaced */
} bp_match;

/*
 * Matches a rule with a keyword at `offset` exactly, or up to its `before` bytes earlier; a rule
 * without one at `offset` or later. Patterns see the text before `offset`.
 */
bp_match_result bp_matcher_match(bp_matcher *matcher, size_t rule, const unsigned char *text,
                                 size_t byte_count, size_t offset, bp_match *ret_match);

/* Whether a rule that does not match there might if the text went on; then where the match would
 * begin, and whether all of it would be replaced. */
bool bp_matcher_is_undecided(bp_matcher *matcher, size_t rule, const unsigned char *text,
                             size_t byte_count, size_t offset, size_t *ret_from,
                             bool *ret_is_whole);

#endif
