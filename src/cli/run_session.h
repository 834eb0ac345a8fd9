/*
 * The session that watches a command: its output becomes log records and gaps, and whoever asks
 * gets a report.
 */
#ifndef BP_CLI_RUN_SESSION_H
#define BP_CLI_RUN_SESSION_H

#include <stdbool.h>

#include <bugpack/session.h>

#include "cli/command.h"
#include "cli/run_options.h"
#include "run/child.h"
#include "run/relay.h"

typedef struct bp_cli_run_session bp_cli_run_session;

/*
 * Opens the session about a command that is not yet let go. `speaks_at_once`: the command does not
 * own our terminal, so reports are told as they are written, and otherwise when it has ended.
 * What fails is told.
 */
bp_cli_exit bp_cli_run_session_open(const bp_cli_run_options *options, const bp_run_child *child,
                                    bp_cli_run_session **ret_session);

/* What the relay calls. */
void bp_cli_run_session_output(void *context, bp_run_stream stream, const char *bytes,
                               size_t byte_count);
void bp_cli_run_session_started(void *context);
void bp_cli_run_session_report(void *context, bp_run_asker asker);

/* The command has ended: takes the crash report where it is one. */
void bp_cli_run_session_end(bp_cli_run_session *session, const bp_run_result *result);

/* Waits for the reports in flight, tells what was not told yet, and frees. NULL is fine. */
void bp_cli_run_session_close(bp_cli_run_session *session);

#endif
