/*
 * The session that watches a command: the lines it writes become log records and gaps, and reports
 * are written on request and at a crash.
 */
#ifndef BP_CLI_RUN_SESSION_H
#define BP_CLI_RUN_SESSION_H

#include <stdbool.h>

#include <bugpack/session.h>

#include "cli/command.h"
#include "cli/files.h"
#include "run/keyboard.h"
#include "run/pattern.h"
#include "run/relay.h"

/* Strings are borrowed from the command line; NULL: not given. */
typedef struct bp_cli_run_options {
    char **arguments; /* the command and its arguments, up to a NULL */
    const char *app_name;
    const char *description;
    const char *output_dir;
    const char *pedantic_dir;
    bool is_pedantic; /* asked for, or implied by a pattern */
    bp_run_patterns patterns;
    bp_hotkey hotkey;
    uint32_t auto_snapshot_interval_ms; /* 0: never */
    uint32_t auto_snapshot_cap;
    bp_cli_files files;
    bool quiet;
} bp_cli_run_options;

typedef struct bp_cli_run_session bp_cli_run_session;

/*
 * Opens the session about a command that is not yet let go. Reports a failure. While the command
 * owns our terminal, messages about reports wait until it has ended.
 */
bp_cli_exit bp_cli_run_session_open(const bp_cli_run_options *options, const bp_run_child *child,
                                    bp_cli_run_session **ret_session);

/* What the relay calls, with the session as context. */
void bp_cli_run_session_line(void *context, bp_run_stream stream, const char *line,
                             size_t line_bytes);
void bp_cli_run_session_started(void *context);
void bp_cli_run_session_report(void *context);

/* The command has ended: requests a crash report if it crashed. */
void bp_cli_run_session_end(bp_cli_run_session *session, const bp_run_result *result);

/* Waits for the reports in flight, prints the messages that waited, and frees. NULL is fine. */
void bp_cli_run_session_close(bp_cli_run_session *session);

#endif
