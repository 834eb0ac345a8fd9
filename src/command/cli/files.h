/*
 * What a user names for the report: the files of --session, --log and --attach, what --journal and
 * --command print, --without and --redact. What can be read only once, as standard input, a FIFO,
 * and what a program prints, is a stream.
 */
#ifndef BP_CLI_FILES_H
#define BP_CLI_FILES_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/session.h>

#include "cli/option.h"
#include "cli/redaction.h"
#include "cli/stream.h"

/* Both texts are owned. */
typedef struct bp_cli_input {
    char *source; /* the path, "-" for standard input; the unit of a journal; a command */
    char *name;   /* of the entry */
    bool is_journal;
    size_t found_bytes;   /* of a path: as in base/file.h */
    bool is_stream;       /* "-", or a FIFO */
    bp_cli_stream stream; /* where it can be read only once */
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
    bp_cli_inputs commands;
    bool uses_shell;
    uint32_t input_timeout_ms; /* of each that can be read only once; 0: such are not read */
    const char *without;       /* names of entries; NULL: all */
    bool with_hostname;
    bp_cli_redaction redaction;
    uint64_t max_zip_bytes; /* of a report; 0: no limit */
} bp_cli_files;

#define BP_CLI_FILES_INIT(timeout_ms)                                                              \
    {                                                                                              \
        .log_limit_bytes = (uint64_t)4 << 20, .attach_limit_bytes = (uint64_t)256 << 20,           \
        .input_timeout_ms = (timeout_ms)                                                           \
    }

bp_cli_reader bp_cli_read_log;
bp_cli_reader bp_cli_read_attachment;
bp_cli_reader bp_cli_read_journal;
bp_cli_reader bp_cli_read_command;
bp_cli_reader bp_cli_read_without;
extern const bp_cli_bounds bp_cli_input_timeouts;

/* The rows of a table whose command has the files in `field`. */
#define BP_CLI_FILE_OPTIONS(type, field)                                                           \
    BP_CLI_VALUE(type, field.logs, 0, "log", "FILE",                                               \
                 "the end of a log file, as logs/NAME; a directory\nor a pattern stands for its "  \
                 "files; repeatable",                                                              \
                 bp_cli_read_log, &bp_cli_some_text),                                              \
        BP_CLI_VALUE(type, field.log_limit_bytes, 0, "log-limit", "BYTES",                         \
                     "how much of each log file (default 4M)", bp_cli_read_size, NULL),            \
        BP_CLI_VALUE(type, field.session_path, 0, "session", "FILE",                               \
                     "a JSON file with the program's own state", bp_cli_read_text,                 \
                     &bp_cli_some_text),                                                           \
        BP_CLI_VALUE(                                                                              \
            type, field.attachments, 0, "attach", "[NAME=]FILE",                                   \
            "a whole file, as NAME; a directory or a\npattern stands for its files; repeatable",   \
            bp_cli_read_attachment, &bp_cli_some_text),                                            \
        BP_CLI_VALUE(type, field.attach_limit_bytes, 0, "attach-limit", "BYTES",                   \
                     "leave out larger attachments (default 256M)", bp_cli_read_size, NULL),       \
        BP_CLI_VALUE(type, field.without, 0, "without", "ENTRIES",                                 \
                     "leave out these entries, such as threads.json", bp_cli_read_without,         \
                     &bp_cli_some_text),                                                           \
        BP_CLI_MAX_SIZE_OPTION(type, field.max_zip_bytes),                                         \
        BP_CLI_FLAG(type, field.with_hostname, 0, "hostname", "name the machine in the report"),   \
        BP_CLI_REDACTION_OPTIONS(type, field.redaction)

/* The rows of a table whose command also reads what can be read only once. */
#define BP_CLI_STREAM_OPTIONS(type, field)                                                         \
    BP_CLI_VALUE(type, field.logs, 0, "journal", "UNIT",                                           \
                 "the newest lines of a systemd unit's journal;\nrepeatable", bp_cli_read_journal, \
                 &bp_cli_some_text),                                                               \
        BP_CLI_VALUE(type, field.commands, 0, "command", "COMMAND",                                \
                     "what a command prints, as commands/NAME.txt;\nrepeatable",                   \
                     bp_cli_read_command, &bp_cli_some_text),                                      \
        BP_CLI_FLAG(type, field.uses_shell, 0, "shell", "let sh run the commands"),                \
        BP_CLI_VALUE(type, field.input_timeout_ms, 0, "input-timeout", "TIME",                     \
                     "how long each command, journal and FIFO may take, in\nseconds, or such as "  \
                     "500ms (default 10s)",                                                        \
                     bp_cli_read_time, &bp_cli_input_timeouts)

/* Checks the commands, and the session file, to report a mistake in them at once. False after a
 * failure that was reported, with the program's exit status. */
bool bp_cli_files_check(const bp_cli_files *files, bp_cli_exit *ret_exit);

/* Sets what a session's options have of it, and the rest that all commands set alike. */
void bp_cli_files_apply(const bp_cli_files *files, bugpack_options *options);

/* Registers the files, in the order of the zip. They are used until the session is closed. Reports
 * what fails. */
bugpack_status bp_cli_files_provide(const bp_cli_files *files, bugpack_session *session);

#endif
