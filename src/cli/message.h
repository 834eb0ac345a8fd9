/*
 * What the program says: results on standard output, everything else on standard error.
 */
#ifndef BP_CLI_MESSAGE_H
#define BP_CLI_MESSAGE_H

#include <stdbool.h>

#include <bugpack/export.h>

#include "cli/command.h"

/*
 * Opens what of descriptors 0 to 2 is closed, in a way that every use of it fails: else the next
 * file opened, perhaps the report itself, would become standard output and receive its text.
 * False, with errno, when that is impossible.
 */
bool bp_cli_hold_standard_descriptors(void);

/*
 * Writes "bugpack: ", the sentence and a newline to standard error. The sentence may hold anything:
 * it is escaped for the terminal. At most 2 KiB of it are shown.
 */
void bp_cli_say(const char *format, ...) BUGPACK_PRINTF(1, 2);

/*
 * The same for a command line that is not acceptable, with a second line that says where help is.
 * `command` is NULL for the program itself. Returns BP_CLI_USAGE.
 */
bp_cli_exit bp_cli_say_usage(const char *command, const char *format, ...) BUGPACK_PRINTF(2, 3);

/*
 * Writes out what stands in standard output's buffer. False, with a message told, when standard
 * output did not take everything that was ever put there.
 */
bool bp_cli_finish_output(void);

/* Prints a text to standard output. The exit status says whether it arrived. */
bp_cli_exit bp_cli_print(const char *text);

#endif
