/*
 * The question to the user whether a report is to be written.
 */
#ifndef BP_CLI_REVIEW_H
#define BP_CLI_REVIEW_H

#include <stdbool.h>

#include <bugpack/error.h>

/* Whether somebody can be asked: standard input and standard error are terminals. */
bool bp_cli_review_is_possible(void);

/*
 * Prints what is in the report of `zip_fd`, and waits for an answer. OK is a yes. CANCELLED is
 * everything else: no, an empty line, the end of input, a hang-up, a signal that ends the wait for
 * the report (cli/progress.h). What was typed before the question does not count. In the background
 * it waits until it comes to the foreground.
 */
bugpack_status bp_cli_review_ask(int zip_fd, bugpack_error *error);

#endif
