/*
 * A comparison of two reports, for a person.
 */
#ifndef BP_CLI_DIFF_TEXT_H
#define BP_CLI_DIFF_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "inspect/diff.h"

/*
 * Prints it to standard output: at most `limit` groups of a capture, and how many are left out.
 * Every name is escaped. `emphasis`: headings may be bold. False when there is no memory; failures
 * to write show later.
 */
bool bp_cli_diff_print(const bp_diff *diff, size_t limit, bool emphasis);

#endif
