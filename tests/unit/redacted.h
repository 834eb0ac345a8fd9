/*
 * Runs texts through a redactor.
 */
#ifndef TESTS_UNIT_REDACTED_H
#define TESTS_UNIT_REDACTED_H

#include <stddef.h>

#include "redact/redactor.h"

/* The built-in rules, and those of `rules` if it is not NULL. Ends the test where they are wrong.
 */
bp_rule_set *redacted_set(const char *rules);

/* Gives each example of the built-in rules, and returns how many have a secret. */
typedef void redacted_example_taker(const bp_rule *rule, bool is_match, const char *text);
size_t redacted_each_example(redacted_example_taker *take);

/* With the rules that are on by default, and with the others too. */
extern bp_rule_set *sets[2];
extern bp_redactor *redactors[2];

/* What begins and ends a test that uses them. */
void redacted_setup(void);
void redacted_teardown(void);

/* An entry as it comes out if it is written in pieces of `piece_bytes`. The text is the caller's to
 * release. */
void redacted(bp_redactor *redactor, bp_redact_form form, const char *text, size_t byte_count,
              size_t piece_bytes, bp_buffer *out);

/* Replaces each tag by "«»", in place. */
void redacted_without_tags(char *text);

/* An example of a rule: the text, and what it has to become, without what stands between « and ».
 */
void redacted_example(const char *example, char *plain, char *expected);

#endif
