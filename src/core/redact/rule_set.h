/*
 * Redaction rules: as text, which is a file that is built in and those of callers
 * (docs/REDACTION.md has the format), and compiled for use.
 */
#ifndef BP_REDACT_RULE_SET_H
#define BP_REDACT_RULE_SET_H

#include <stdatomic.h>

#include "redact/keywords.h"

typedef struct bp_match {
    size_t from, to;               /* the whole match */
    size_t secret_from, secret_to; /* what is to be replaced */
} bp_match;

/* True if the pattern's match is a secret. May move the part that is to be replaced. */
typedef bool bp_check(const unsigned char *text, size_t byte_count, bp_match *match);

/* By the name in a file of rules (`check`); NULL: there is none of that name. redact/checks.c */
bp_check *bp_check_find(const char *name);

enum {
    BP_RULE_MAX_COUNT = 512,    /* of one set */
    BP_RULE_ID_BYTES = 32,      /* with its NUL: lower case letters, digits and '-' */
    BP_RULE_PATTERN_MAX = 8192, /* expanded */
    BP_RULE_TEXT_MAX = 1 << 20  /* of a file */
};

/* One rule. Its texts are its own. */
typedef struct bp_rule {
    char id[BP_RULE_ID_BYTES]; /* "" for a rule that no error needs to name */
    char *keywords;            /* separated by spaces; NULL: searched for everywhere */
    char *pattern;             /* of PCRE2; group 1 is what is replaced, else all of it */
    char *until;               /* ends a block of lines that the pattern begins; or NULL */
    unsigned before_bytes;     /* the match may begin as far before its keyword */
    unsigned line_count;       /* and may end as many lines behind that of its keyword */
    bool is_off;               /* applies only where a later text says "use" */
    bool is_of_traffic;        /* applies to the payload of messages alone */
    bp_check *check;           /* of what the pattern has found; NULL: none */
} bp_rule;

typedef struct bp_rule_list {
    bp_rule *rules;
    size_t count, capacity;
    struct bp_rule_let *lets; /* texts that patterns include as %{name} */
    size_t let_count, let_capacity;
} bp_rule_list;

/*
 * Appends the rules of a text to a list, which starts as {0}. A rule with the id of an earlier one
 * replaces it. `name` is for sentences. NO_MEMORY; LIMIT; INVALID with the line that is wrong. On
 * failure release the list: it may hold some of them.
 */
bugpack_status bp_rule_list_parse(bp_rule_list *list, const char *name, const char *text,
                                  size_t byte_count, bugpack_error *error);

/* The rules that are built in: rules.conf, from which CMake makes the bytes. */
extern const unsigned char bp_builtin_rules[];
extern const size_t bp_builtin_rules_bytes;
bugpack_status bp_rule_list_add_builtin(bp_rule_list *list, bugpack_error *error);

void bp_rule_list_release(bp_rule_list *list);

/*
 * Rules compiled: the keywords of all as one automaton, and each pattern by PCRE2, with JIT where
 * the system allows it. It is not changed afterwards, so that any number of threads may share it.
 */
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
/* The rules that are built in, and behind them those of some texts. Errors of both. */
bugpack_status bp_rule_set_of_texts(const char *name, char *const *texts, size_t count,
                                    bp_rule_set **ret_set, bugpack_error *error);
bp_rule_set *bp_rule_set_retain(bp_rule_set *set);
/* The last reference frees it. NULL is fine. */
void bp_rule_set_drop(bp_rule_set *set);

/* The matching state of one thread. NULL without memory. */
typedef struct bp_matcher bp_matcher;
bp_matcher *bp_matcher_new(const bp_rule_set *set);
void bp_matcher_free(bp_matcher *matcher);

typedef enum bp_match_result {
    BP_MATCH_NONE,
    BP_MATCH_FOUND,
    BP_MATCH_GAVE_UP /* the pattern needs too many steps for this text */
} bp_match_result;

/*
 * Matches a rule with a keyword at `offset` exactly, or up to its `before` bytes earlier; a rule
 * without one at `offset` or later. Patterns see the text before `offset`.
 */
bp_match_result bp_matcher_match(bp_matcher *matcher, size_t rule, const unsigned char *text,
                                 size_t byte_count, size_t offset, bp_match *ret_match);

/* True if a rule that does not match there might if the text went on; then where the match would
 * begin, and whether all of it would be replaced. */
bool bp_matcher_is_undecided(bp_matcher *matcher, size_t rule, const unsigned char *text,
                             size_t byte_count, size_t offset, size_t *ret_from,
                             bool *ret_is_whole);

#endif
