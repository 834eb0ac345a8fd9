/*
 * --review: a person sees what is in a report before it is written, and decides.
 */
#ifndef BP_CLI_REVIEW_H
#define BP_CLI_REVIEW_H

#include <stdbool.h>
#include <stdio.h>

#include <bugpack/error.h>

#include "cli/command.h"
#include "cli/option.h"

/* The row of a table whose command has it in `field`. */
#define BP_CLI_REVIEW_OPTION(type, field)                                                          \
    BP_CLI_FLAG(type, field, 0, "review", "print what is in the report, and ask before writing\nit")

/* True if a person can be asked: standard input and standard error are a terminal. */
bool bp_cli_review_can_ask(void);

/* Checks that somebody can be asked. False after a usage error. */
bool bp_cli_review_prepare(bool is_reviewed, bp_cli_exit *ret_exit);

/*
 * Prints what is in the report of `zip_fd`, asks the question ("Write it"), and waits for an
 * answer. OK is a yes. CANCELLED is everything else: no, an empty line, the end of input, a
 * hang-up, a signal that ends the wait for the report (cli/interrupt.h); the sentence says that the
 * report is not `done` ("written"). What was typed before the question does not count. In the
 * background it waits until it comes to the foreground.
 */
bugpack_status bp_cli_review_ask(int zip_fd, const char *question, const char *done,
                                 bugpack_error *error);

/* Prints bp_redact_list, with the names of who calls and of this machine. */
bugpack_status bp_cli_review_print(FILE *out, int fd, const char *path, bool as_json,
                                   bugpack_error *error);

#endif
