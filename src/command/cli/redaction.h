/*
 * The options about redaction: --redact and --no-redact.
 */
#ifndef BP_CLI_REDACTION_H
#define BP_CLI_REDACTION_H

#include <bugpack/session.h>

#include "cli/command.h"
#include "cli/option.h"

typedef struct bp_cli_redaction {
    const char *path; /* of a file of rules, borrowed; NULL: none */
    bool is_off;
    char *text; /* what is in it; owned */
} bp_cli_redaction;

/* The rows of a table whose command has it in `field`. */
#define BP_CLI_REDACTION_OPTIONS(type, field)                                                      \
    BP_CLI_VALUE(type, field.path, 0, "redact", "FILE",                                            \
                 "replace also what the rules in FILE match", bp_cli_read_text,                    \
                 &bp_cli_some_text),                                                               \
        BP_CLI_FLAG(type, field.is_off, 0, "no-redact",                                            \
                    "leave passwords and tokens in the report")

/* Checks the options and reads the file, if there is one. False after a failure that was reported,
 * with the program's exit status. */
bool bp_cli_redaction_prepare(bp_cli_redaction *redaction, bp_cli_exit *ret_exit);

/* Sets a session's options, which borrow the text. */
void bp_cli_redaction_apply(const bp_cli_redaction *redaction, bugpack_options *options);

#endif
