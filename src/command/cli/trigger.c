#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include <bugpack/report.h>

#include "base/clock.h"
#include "cli/event.h"
#include "cli/option.h"
#include "cli/output.h"
#include "run/ask.h"

typedef struct trigger_options {
    uint64_t max_zip_bytes;
    uint32_t timeout_ms;
    bool as_json;
} trigger_options;

static const bp_cli_bounds timeouts = {"seconds", 1, UINT32_MAX / 1000u, 1000};

static const bp_cli_option option_rows[] = {
    BP_CLI_MAX_SIZE_OPTION(trigger_options, max_zip_bytes),
    BP_CLI_VALUE(trigger_options, timeout_ms, 0, "timeout", "TIME",
                 "how long to wait for the report (default 60s)", bp_cli_read_time, &timeouts),
    BP_CLI_FLAG(trigger_options, as_json, 0, "json", "JSON, an object each line"),
    BP_CLI_OPTIONS_END};

static bp_cli_exit ask(const bp_run_answering *session, const trigger_options *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    char path[BUGPACK_REPORT_PATH_BYTES];
    uint32_t missing_count = 0;
    uint64_t deadline_ns = bp_clock_monotonic_ns() + options->timeout_ms * BP_NS_PER_MS;
    bugpack_status status = bp_run_ask(session, options->max_zip_bytes, deadline_ns, &missing_count,
                                       path, sizeof path, &error);
    if (status != BUGPACK_OK) {
        if (options->as_json) {
            bp_cli_print_failed(stdout, "report-failed", NULL, error.message);
        }
        bp_cli_say("%s (process %ld): %s", session->app_name, (long)session->pid, error.message);
        return bp_cli_exit_of(status);
    }
    if (options->as_json) {
        bp_cli_print_written(stdout, path, missing_count, NULL);
    } else if (bp_cli_is_terminal(STDOUT_FILENO)) {
        bp_cli_print_escaped(stdout, path); /* root reads what another user's process says */
        (void)putchar('\n');
    } else {
        (void)printf("%s\n", path);
    }
    bp_cli_exit result = bp_cli_finish_report(path, missing_count);
    if (result == BP_CLI_INCOMPLETE) {
        bp_cli_say("%s: something is missing; its manifest.json says what", path);
    }
    return result;
}

static bp_cli_exit list(const bp_run_answering *sessions, size_t count, bool as_json) {
    bp_cli_say("%zu sessions could write a report; name one:", count);
    for (size_t i = 0; i < count; i++) {
        const bp_run_answering *session = &sessions[i];
        if (as_json) {
            BP_CLI_PRINT_EVENT(stdout, "session", 0,
                               {"pid", BP_CLI_NUMBER, NULL, (uint64_t)session->pid},
                               {"app", BP_CLI_TEXT, session->app_name, 0},
                               {"target_pid", BP_CLI_ID, NULL, (uint64_t)session->target_pid},
                               {"target", BP_CLI_TEXT, session->target_name, 0});
        }
        if (session->target_pid != 0) {
            bp_cli_say("  %ld  %s, about process %ld (%s)", (long)session->pid, session->app_name,
                       (long)session->target_pid, session->target_name);
        } else {
            bp_cli_say("  %ld  %s", (long)session->pid, session->app_name);
        }
    }
    return BP_CLI_FAILED;
}

static const trigger_options defaults = {.timeout_ms = 60000};

static bp_cli_exit run(void *context, char **operands) {
    const trigger_options *options = context;
    bp_cli_exit result = BP_CLI_NO_PROCESS;
    uint64_t number = 0;
    if (operands[0] != NULL &&
        (!bp_cli_parse_number(operands[0], INT32_MAX, &number) || number == 0)) {
        return bp_cli_say_usage("'%s' is no process id", operands[0]);
    }
    pid_t pid = (pid_t)number;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_run_answering *sessions = NULL;
    size_t count = 0;
    bugpack_status status = bp_run_ask_list(pid, &sessions, &count, &error);
    if (status != BUGPACK_OK) {
        return bp_cli_say_error(&error);
    }
    if (count == 1) {
        result = ask(&sessions[0], options);
    } else if (count > 1) {
        result = list(sessions, count, options->as_json);
    } else if (pid != 0) {
        bp_cli_say("process %ld has no session that answers; see bugpack-trigger(1)", (long)pid);
    } else {
        bp_cli_say(
            "no session answers: start a command with bugpack run, or see bugpack-trigger(1)");
    }
    bp_run_ask_free(sessions, count);
    return result;
}

const bp_cli_command bp_cli_trigger_command = {
    "trigger",
    "ask a running command or host for a report",
    "Usage: bugpack trigger [OPTION]... [PID]\n"
    "\n"
    "Ask a running `bugpack run`, or a host that answers, for a report, and print its\n"
    "path. PID is its process, or the command that it runs. Without a PID there must\n"
    "be only one; otherwise they are listed.\n",
    option_rows,
    "Exit status: 0 complete, 1 failed, 2 usage, 3 written but something is missing,\n"
    "4 no such process, 5 timed out.\n",
    1,
    .run = run,
    .options_bytes = sizeof(trigger_options),
    .defaults = &defaults};
