/*
 * A comparison of two reports as text.
 */
#ifndef BP_CLI_DIFF_PRINT_H
#define BP_CLI_DIFF_PRINT_H

#include <stdbool.h>
#include <stddef.h>

#include "inspect/diff.h"

/*
 * Prints what changed to standard output, at most `limit` groups of a capture, and members of a
 * document. `emphasis`: headings are bold. `is_raw`: numbers are as in the documents, without
 * units. False without memory.
 */
bool bp_cli_print_diff(const bp_diff *diff, size_t limit, bool emphasis, bool is_raw);

#endif
