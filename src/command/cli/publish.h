/*
 * What happens to a report before it is written: --review; under sudo it is given to who
 * called it. And a zip on standard output: `--output -`.
 */
#ifndef BP_CLI_PUBLISH_H
#define BP_CLI_PUBLISH_H

#include <stdbool.h>

#include <bugpack/report.h>

#include "base/buffer.h"
#include "cli/command.h"
#include "cli/option.h"

/* The row of a table whose command has it in `field`. */
#define BP_CLI_REVIEW_OPTION(type, field)                                                          \
    BP_CLI_FLAG(type, field, 0, "review", "print what is in the report, and ask before writing\nit")

/* Checks that somebody can be asked. False after a usage error. */
bool bp_cli_review_prepare(bool is_reviewed, bp_cli_exit *ret_exit);

/* For before_publish of options, with any context; NULL where there is nothing to do. */
bugpack_before_publish_callback *bp_cli_publish_call(bool is_reviewed);

/* bp_redact_list, with the names of who calls and of this machine. */
bugpack_status bp_cli_review_list(int fd, const char *path, bool as_json, bp_buffer *out,
                                  bugpack_error *error);

/* The path of a zip, or "-", into a const char *; not one below /dev, which has no files to keep.
 */
bp_cli_reader bp_cli_read_output;
/* The same of a directory, but "-". */
bp_cli_reader bp_cli_read_output_dir;

/* Checks the current directory, where reports go by default. False after a failure that was
 * reported: its file system does not answer. */
bool bp_cli_check_current_dir(void);

/* Whether it is "-". NULL is not. */
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
