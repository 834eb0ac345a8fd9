/*
 * What a rule's pattern cannot say: digits that add up, and secrets whose length stands in front of
 * them, as in the logins of binary protocols.
 */
#ifndef BP_REDACT_CHECKS_H
#define BP_REDACT_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

struct bp_match;

/* Whether what the pattern has found is a secret. May move the part that is to be replaced. */
typedef bool bp_check(const unsigned char *text, size_t byte_count, struct bp_match *match);

/* By the name in a file of rules (`check`); NULL: there is none of that name. */
bp_check *bp_check_find(const char *name);

#endif
