/*
 * The session of `bugpack run`: the lines that a command writes become log records and gaps, and
 * reports are written about it.
 */
#ifndef BP_CLI_RUN_SESSION_H
#define BP_CLI_RUN_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/session.h>

#include "base/lock.h"
#include "cli/files.h"
#include "run/child.h"
#include "run/pattern.h"
#include "run/relay.h"

/* The ends of the command that lead to a report. */
typedef enum bp_cli_on_failure {
    BP_CLI_ON_FAILURE_ANY,
    BP_CLI_ON_FAILURE_SIGNAL,
    BP_CLI_ON_FAILURE_NONE
} bp_cli_on_failure;

/* Strings are borrowed from the command line; NULL: not given. */
typedef struct bp_cli_run_options {
    char **arguments; /* the command and its arguments, up to a NULL */
    const char *app_name;
    const char *description;
    const char *output_dir;
    const char *pedantic_dir;
    const char *send_to; /* a destination of the configuration */
    bool is_pedantic;    /* asked for, or implied by a pattern */
    bp_run_patterns patterns;
    const char *hotkey; /* its name */
    bp_cli_on_failure on_failure;
    uint32_t auto_snapshot_interval_ms; /* 0: never */
    uint32_t auto_snapshot_cap;
    uint32_t hang_after_ms; /* 0: never */
    bp_cli_files files;
    bool is_reviewed, quiet, as_json;
    uint32_t profile_hz; /* 0: no profiles */
    bool with_stacks;    /* of what the command crashes by */
} bp_cli_run_options;

/* Room for messages that wait for the end of the command; the rest are only counted. */
enum { BP_CLI_RUN_WAITING_BYTES = 32 * 1024 };

typedef struct bp_cli_run_session {
    bugpack_session *session;
    const bp_cli_run_options *options; /* borrowed */
    bool says_at_once;                 /* the command does not own our terminal */
    atomic_bool is_closing;            /* and all reports have ended */
    char app_name[65];
    bugpack_error trace_error; /* why the command is not traced; OK: it is, if asked for */
    bp_lock lock;              /* of what follows, which the session's threads write */
    pthread_cond_t command_ended;
    bool has_ended;
    char waiting[BP_CLI_RUN_WAITING_BYTES]; /* messages, each with its NUL */
    size_t waiting_used;
    size_t dropped_count;
} bp_cli_run_session;

/* About a command that is not yet let go. Reports a failure, after which it must be closed too. */
bugpack_status bp_cli_run_session_open(bp_cli_run_session *session,
                                       const bp_cli_run_options *options,
                                       const bp_run_child *child);

/* The relay's callbacks: lines become records and gaps, a key or a signal a report. */
bp_run_calls bp_cli_run_session_calls(bp_cli_run_session *session);

/* Asks for the report of a command that has failed, and says what was lost. */
void bp_cli_run_session_end(bp_cli_run_session *session, const bp_run_result *result);

/* Asks for the report of a command that could not be executed, with the status that we end with. */
void bp_cli_run_session_refused(bp_cli_run_session *session, int status, const char *reason);

/* Waits for all reports, reaps the command, and says what has waited. */
void bp_cli_run_session_close(bp_cli_run_session *session, bp_run_child *child);

#endif
