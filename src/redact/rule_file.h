/*
 * Redaction rules as text: the file that is built in, and those of callers. docs/REDACTION.md has
 * the format.
 */
#ifndef BP_REDACT_RULE_FILE_H
#define BP_REDACT_RULE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "redact/checks.h"

enum {
    BP_RULE_MAX_COUNT = 512,    /* of one set */
    BP_RULE_ID_BYTES = 32,      /* with its NUL: lower case letters, digits and '-' */
    BP_RULE_PATTERN_MAX = 8192, /* expanded */
    BP_RULE_TEXT_MAX = 1 << 20  /* of a file */
};

/* One rule. Its texts are its own. */
typedef struct bp_rule {
    char id[BP_RULE_ID_BYTES];
    char category[BP_RULE_ID_BYTES]; /* "" where the file has none */
    char *keywords;                  /* separated by spaces; NULL: searched for everywhere */
    char *pattern;                   /* of PCRE2; group 1 is what is replaced, else all of it */
    char *until;                     /* ends a block of lines that the pattern begins; or NULL */
    unsigned before_bytes;           /* the match may begin as far before its keyword */
    unsigned line_count;             /* and may end as many lines behind that of its keyword */
    bool is_off;                     /* applies only where a later text says "use" */
    bool is_of_traffic;              /* applies to the payload of messages alone */
    bp_check *check;                 /* of what the pattern has found; NULL: none */
} bp_rule;

typedef struct bp_rule_list {
    bp_rule *rules;
    size_t count, capacity;
    bool reads_base64;        /* "use = base64": what is in base64 is searched too */
    struct bp_rule_let *lets; /* texts that patterns include as %{name} */
    size_t let_count, let_capacity;
} bp_rule_list;

/* Gets each example of a file: what stands between « and » is a secret; `is_match` false: nothing.
 */
typedef void bp_rule_example(void *context, const bp_rule *rule, bool is_match, const char *text);

/*
 * Appends the rules of a text to a list, which starts as {0}. A rule with the id of an earlier one
 * replaces it. `name` is for sentences. `example` is optional. NO_MEMORY; LIMIT; INVALID with the
 * line that is wrong. On failure release the list: it may hold some of them.
 */
bugpack_status bp_rule_list_parse(bp_rule_list *list, const char *name, const char *text,
                                  size_t byte_count, bp_rule_example *example, void *context,
                                  bugpack_error *error);

/* The rules that are built in, with their examples. */
bugpack_status bp_rule_list_add_builtin(bp_rule_list *list, bp_rule_example *example, void *context,
                                        bugpack_error *error);

void bp_rule_list_release(bp_rule_list *list);

#endif
