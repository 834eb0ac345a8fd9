/*
 * The question to the user whether a report is to be written.
 */
#ifndef BP_CLI_REVIEW_H
#define BP_CLI_REVIEW_H

#include <stdbool.h>

#include <bugpack/error.h>

#include "base/buffer.h"

/* Whether somebody can be asked: standard input and standard error are terminals. */
bool bp_cli_review_is_possible(void);

/* bp_redact_list, with the names of who calls and of this machine. */
bugpack_status bp_cli_review_list(int fd, const char *path, bp_buffer *out, bugpack_error *error);

/*
 * Prints what is in the report of `zip_fd`, and waits for an answer. Until then there is a page of
 * it, which only the user can read; with `is_secret` on a file system in memory alone, or nowhere.
 * OK is a yes. CANCELLED is
 * everything else: no, an empty line, the end of input, a hang-up, a signal that ends the wait for
 * the report (cli/progress.h). What was typed before the question does not count. In the background
 * it waits until it comes to the foreground.
 */
bugpack_status bp_cli_review_ask(int zip_fd, bool is_secret, bugpack_error *error);

#endif
