/*
 * What the program prints: results on standard output, everything else on standard error; and text
 * from outside, made safe for a terminal and for JSON.
 */
#ifndef BP_CLI_OUTPUT_H
#define BP_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/report.h>

#include "cli/command.h"
#include "json/json.h"

/* The command that usage errors point to; NULL for the program itself. */
extern const char *bp_cli_current_command;

/* True if SIGPIPE was ignored when the program began. The program itself always ignores it. */
extern bool bp_cli_pipe_was_ignored;

/*
 * Ignores SIGPIPE, so that a reader that went away is a failed write with a message, and survives
 * SIGXFSZ, so that a limit on the size of files is one too. Opens those of
 * descriptors 0 to 2 that are closed, in a way that every use of them fails: otherwise the next
 * file opened, perhaps the report itself, would become standard output and receive its text.
 * False, with errno, when that fails.
 */
bool bp_cli_prepare_output(void);

/*
 * Writes "bugpack: ", the message and a newline to standard error, escaped for the terminal. At
 * most 2 KiB of it are shown.
 */
void bp_cli_say(const char *format, ...) BUGPACK_PRINTF(1, 2);

/* The same for a bad command line, with a second line that points to the help. BP_CLI_USAGE. */
bp_cli_exit bp_cli_say_usage(const char *format, ...) BUGPACK_PRINTF(1, 2);

/* Says in a line what of a report was not searched for secrets, where there is something. */
void bp_cli_say_unsearched(const bugpack_report_result *result);

/* Reports a failure of the library. Returns the exit status for it. */
bp_cli_exit bp_cli_say_error(const bugpack_error *error);
/* The same whose exit status is FAILED, whatever has failed. */
bp_cli_exit bp_cli_say_failed(const bugpack_error *error);
bp_cli_exit bp_cli_exit_of(bugpack_status status);

/*
 * Flushes standard output. COMPLETE, or FAILED with a message when it did not take everything that
 * was ever written to it.
 */
bp_cli_exit bp_cli_finish_output(void);

/* The same where the path of a report was printed; INCOMPLETE where something is missing. */
bp_cli_exit bp_cli_finish_report(const char *path, uint32_t missing_count);

/* True if a descriptor is a terminal that understands escape sequences. */
bool bp_cli_is_terminal(int fd);

/* True if the user has not switched colour off (https://no-color.org). */
bool bp_cli_wants_colour(void);

/*
 * The length of the UTF-8 character at `text`, which is not at its end, and whether it is safe to
 * show: no control character (C0, DEL, C1, bidirectional) and no byte that is part of no character.
 */
size_t bp_cli_next_character(const char *text, bool *ret_is_safe);

/*
 * Copies a text with \xNN for each byte that is not safe to show. What does not fit is cut between
 * characters. `out_bytes` is over 0.
 */
void bp_cli_escape(const char *text, char *out, size_t out_bytes);

/* Prints a text in the same way, whole. */
void bp_cli_print_escaped(FILE *out, const char *text);

/* Bounds a document that is printed. */
#define BP_CLI_JSON_BYTES ((size_t)64 << 20)

/* Finishes a document, prints it and releases its buffer. A failure is said. */
void bp_cli_print_json(FILE *out, bp_json *json);

#endif
