/*
 * Where a report goes: a file, a directory, or standard output (`--output -`).
 */
#ifndef BP_CLI_DESTINATION_H
#define BP_CLI_DESTINATION_H

#include <stdbool.h>

#include "cli/command.h"
#include "cli/option.h"

/* The path of a zip, or "-", into a const char *; not one below /dev, which has no files to keep.
 */
bp_cli_reader bp_cli_read_output;
/* The same of a directory, but "-". */
bp_cli_reader bp_cli_read_output_dir;

/* The row of a table whose command writes one report to the path in `field`. */
#define BP_CLI_OUTPUT_OPTION(type, field, letter)                                                  \
    BP_CLI_VALUE(type, field, letter, "output", "FILE",                                            \
                 "write this file; if it exists, -2, -3, ... is added;\n- is standard output",     \
                 bp_cli_read_output, &bp_cli_some_text)

/* Checks the current directory, where reports go by default. False after a failure that was
 * reported: its file system does not answer. */
bool bp_cli_check_current_dir(void);

/* True if it is "-". NULL is not. */
bool bp_cli_is_streamed(const char *output_path);

/*
 * A directory of our own for the zip, until it is complete: one that is cut off cannot be told from
 * a whole one by whoever reads the pipe. NULL after a failure that was reported, or a usage error.
 */
char *bp_cli_streamed_begin(bp_cli_exit *ret_exit);

/* Removes the directory, and writes the zip (NULL: there is none) to standard output. False after a
 * failure that was reported. Frees `dir`, which may be NULL. */
bool bp_cli_streamed_end(char *dir, const char *path);

#endif
