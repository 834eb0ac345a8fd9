/*
 * What a user names for the report: the files of --session, --log and --attach, --without and
 * --redact.
 */
#ifndef BP_CLI_FILES_H
#define BP_CLI_FILES_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/session.h>

#include "cli/option.h"
#include "cli/redaction.h"

/* How long an entry may take: a slow disk needs this long for a large file. */
enum { BP_CLI_FILE_TIMEOUT_MS = 30000 };

typedef struct bp_cli_input {
    const char *path; /* borrowed from the command line */
    char *name;       /* of the entry; owned */
} bp_cli_input;

typedef struct bp_cli_inputs {
    bp_cli_input *items;
    size_t count;
} bp_cli_inputs;

typedef struct bp_cli_files {
    const char *session_path; /* NULL: none */
    bp_cli_inputs logs;
    uint64_t log_limit_bytes;
    bp_cli_inputs attachments;
    uint64_t attach_limit_bytes;
    const char *without; /* names of entries; NULL: all */
    bp_cli_redaction redaction;
} bp_cli_files;

#define BP_CLI_FILES_INIT                                                                          \
    { .log_limit_bytes = (uint64_t)4 << 20, .attach_limit_bytes = (uint64_t)256 << 20 }

bp_cli_reader bp_cli_read_log;
bp_cli_reader bp_cli_read_attachment;

/* The rows of a table whose command has the files in `field`. */
#define BP_CLI_FILE_OPTIONS(type, field)                                                           \
    BP_CLI_VALUE(type, field.logs, 0, "log", "FILE",                                               \
                 "the end of a log file, as logs/NAME; repeatable", bp_cli_read_log,               \
                 &bp_cli_some_text),                                                               \
        BP_CLI_VALUE(type, field.log_limit_bytes, 0, "log-limit", "BYTES",                         \
                     "how much of each log file (default 4M)", bp_cli_read_size, NULL),            \
        BP_CLI_VALUE(type, field.session_path, 0, "session", "FILE",                               \
                     "a JSON file with the program's own state", bp_cli_read_text,                 \
                     &bp_cli_some_text),                                                           \
        BP_CLI_VALUE(type, field.attachments, 0, "attach", "[NAME=]FILE",                          \
                     "a whole file, as NAME; repeatable", bp_cli_read_attachment,                  \
                     &bp_cli_some_text),                                                           \
        BP_CLI_VALUE(type, field.attach_limit_bytes, 0, "attach-limit", "BYTES",                   \
                     "leave out larger attachments (default 256M)", bp_cli_read_size, NULL),       \
        BP_CLI_VALUE(type, field.without, 0, "without", "ENTRIES",                                 \
                     "leave out these entries, such as threads.json", bp_cli_read_text,            \
                     &bp_cli_some_text),                                                           \
        BP_CLI_REDACTION_OPTIONS(type, field.redaction)

/* The last component of a path. */
const char *bp_cli_base_name(const char *path);

void bp_cli_files_release(bp_cli_files *files);

/* Checks the session file, to report a mistake in it at once. OK without one. */
bugpack_status bp_cli_files_check_session(const bp_cli_files *files);

/* Registers the files, in the order of the zip. Reports what fails. */
bugpack_status bp_cli_files_provide(const bp_cli_files *files, bugpack *session);

#endif
