/*
 * A command that writes a report again: to a file, or to standard output.
 */
#ifndef BP_CLI_REWRITE_H
#define BP_CLI_REWRITE_H

#include "cli/command.h"
#include "entries/rewrite_report.h"

/* All borrowed. */
typedef struct bp_cli_rewriting {
    bp_rewrite_request request; /* without output path and hook */
    const char *output_path;    /* "-": standard output */
    bool as_json;
    const char *event, *counted; /* of the line of JSON: its name, and the key of the count */
    const char *words;           /* after the count, on standard error */
} bp_cli_rewriting;

/* Writes it, and prints its path, or what failed. */
bp_cli_exit bp_cli_rewrite(const bp_cli_rewriting *rewriting);

/* Reports a failure about the report at `path`: the sentence, and with `as_json` the event. */
bp_cli_exit bp_cli_rewrite_fail(bool as_json, const char *path, const bugpack_error *error);

#endif
