/*
 * What happens to a report before it is written: --review and --encrypt-to; under sudo it is given
 * to who called it. And a zip on standard output: `--output -`.
 */
#ifndef BP_CLI_PUBLISH_H
#define BP_CLI_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/report.h>

#include "base/buffer.h"
#include "cli/command.h"
#include "cli/option.h"

enum { BP_CLI_RECIPIENT_MAX = 16 };

typedef struct bp_cli_publish {
    bool is_reviewed;
    const char *recipients[BP_CLI_RECIPIENT_MAX]; /* borrowed */
    size_t recipient_count;
    uint64_t deadline_ns; /* of encryption, monotonic; 0: none. The caller's to set */
} bp_cli_publish;

bp_cli_reader bp_cli_read_recipient;

/* The rows of a table whose command has it in `field`. */
#define BP_CLI_REVIEW_OPTION(type, field)                                                          \
    BP_CLI_FLAG(type, field.is_reviewed, 0, "review",                                              \
                "print what is in the report, and ask before writing\nit")
#define BP_CLI_ENCRYPT_OPTION(type, field)                                                         \
    BP_CLI_VALUE(type, field.recipients, 0, "encrypt-to", "RECIPIENT",                             \
                 "encrypt by age (age1... or ssh-...) or else by gpg;\nrepeatable",                \
                 bp_cli_read_recipient, NULL)

/*
 * Checks that somebody can be asked, and that the program can encrypt to the recipients, with an
 * empty text. False after a failure that was reported, with the program's exit status.
 */
bool bp_cli_publish_prepare(const bp_cli_publish *publish, bp_cli_exit *ret_exit);

/* For before_publish and publish_suffix of options; NULL where there is nothing to do. The context
 * is the bp_cli_publish. */
bugpack_before_publish_callback *bp_cli_publish_call(const bp_cli_publish *publish);
const char *bp_cli_publish_suffix(const bp_cli_publish *publish);

/* bp_redact_list, with the names of who calls and of this machine. */
bugpack_status bp_cli_review_list(int fd, const char *path, bool as_json, bp_buffer *out,
                                  bugpack_error *error);

/* The path of a zip, or "-", into a const char *; not one below /dev, which has no files to keep.
 */
bp_cli_reader bp_cli_read_output;
/* The same of a directory, but "-". */
bp_cli_reader bp_cli_read_output_dir;

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
