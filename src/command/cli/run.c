#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/destination.h"
#include "cli/files.h"
#include "cli/hand_over.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/review.h"
#include "cli/run_session.h"
#include "run/aside.h"
#include "run/child.h"
#include "run/executable.h"
#include "run/keyboard.h"
#include "run/pattern.h"
#include "run/relay.h"
#include "stacks/crash_trace.h"

/* As in env(1), nice(1) and every shell. */
enum { exit_cannot_execute = 126, exit_not_found = 127 };

/* How programs report what they do not handle. The group is the rest of the phrase. */
static const char default_pattern[] =
    "((unimplemented|not implemented|not yet implemented|unsupported|not supported|unhandled|"
    "unknown|unrecognized)[ :=]+[[:alnum:]_./-]+)";

static bool read_hotkey(const bp_cli_option *option, const char *text, void *field) {
    bp_hotkey key;
    if (!bp_hotkey_parse(text, &key)) {
        bp_cli_say_usage("--%s takes F1 to F12, Ctrl- and a letter other than I, J and M, or none, "
                         "not '%s'",
                         option->name, text);
        return false;
    }
    return bp_cli_read_text(option, text, field);
}

static bool read_pattern(const bp_cli_option *option, const char *text, void *field) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    (void)option;
    if (bp_run_patterns_add(field, text, &error) != BUGPACK_OK) {
        bp_cli_say_usage("%s", error.message);
        return false;
    }
    return true;
}

static const bp_cli_choice failure_kinds[] = {{"any", BP_CLI_ON_FAILURE_ANY},
                                              {"signal", BP_CLI_ON_FAILURE_SIGNAL},
                                              {"none", BP_CLI_ON_FAILURE_NONE},
                                              {NULL, 0}};
static const bp_cli_bounds intervals = {"seconds", 0, UINT32_MAX / 1000u, 1000};
static const bp_cli_bounds hang_times = {"seconds", 0, 7 * 24 * 3600, 1000};
static const bp_cli_bounds rates = {"a number", 1, 1000, 1};
static const bp_cli_bounds caps = {"a number", 1, 1000000, 1};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(bp_cli_run_options, hotkey, 0, "hotkey", "KEY",
                 "F1 to F12, Ctrl-LETTER, or none (default F12)", read_hotkey, NULL),
    BP_CLI_CHOICE(bp_cli_run_options, on_failure, "on-failure", "KIND",
                  "which failures lead to a report: any (default), by a\n"
                  "signal or a status other than 0; signal; none",
                  failure_kinds),
    BP_CLI_FLAG(bp_cli_run_options, with_stacks, 0, "stacks",
                "trace the command, for the backtrace of a crash"),
    BP_CLI_VALUE(
        bp_cli_run_options, profile_hz, 0, "profile-hz", "N",
        "keep N samples of each thread in a second of its CPU\ntime, for the profile of a report",
        bp_cli_read_number, &rates),
    BP_CLI_VALUE(bp_cli_run_options, patterns, 0, "gap-pattern", "REGEX",
                 "a line that matches is a gap: one report for each\n"
                 "distinct first group, or match; repeatable; implies\n"
                 "--pedantic",
                 read_pattern, NULL),
    BP_CLI_FLAG(bp_cli_run_options, is_pedantic, 0, "pedantic",
                "report gaps; without a pattern, lines that mention\n"
                "something unsupported, unimplemented or unknown"),
    BP_CLI_VALUE(bp_cli_run_options, pedantic_dir, 0, "pedantic-dir", "DIR",
                 "the directory for reports about gaps; needs\n--pedantic or --gap-pattern",
                 bp_cli_read_output_dir, &bp_cli_some_text),
    BP_CLI_VALUE(bp_cli_run_options, auto_snapshot_interval_ms, 0, "auto-snapshot-interval", "TIME",
                 "how often to write a report, in seconds, or such as\n5min (default 0: never)",
                 bp_cli_read_time, &intervals),
    BP_CLI_VALUE(bp_cli_run_options, auto_snapshot_cap, 0, "auto-snapshot-cap", "N",
                 "how many of these to keep (default 20)", bp_cli_read_number, &caps),
    BP_CLI_VALUE(bp_cli_run_options, hang_after_ms, 0, "hang-after", "TIME",
                 "report a command that has used no CPU and printed\nnothing for so long, in "
                 "seconds, or such as 5min\n(default 0: never)",
                 bp_cli_read_time, &hang_times),
    BP_CLI_REVIEW_OPTION(bp_cli_run_options, is_reviewed),
    BP_CLI_SEND_OPTION(bp_cli_run_options, send_to),
    BP_CLI_FILE_OPTIONS(bp_cli_run_options, files),
    BP_CLI_VALUE(bp_cli_run_options, app_name, 0, "app", "NAME",
                 "name the reports after NAME, not after the command", bp_cli_read_text,
                 &bp_cli_app_names),
    BP_CLI_VALUE(bp_cli_run_options, description, 0, "description", "TEXT",
                 "what you are looking for", bp_cli_read_text, &bp_cli_descriptions),
    BP_CLI_VALUE(bp_cli_run_options, output_dir, 'o', "output-dir", "DIR",
                 "where to write the zips (default: current directory)", bp_cli_read_output_dir,
                 &bp_cli_some_text),
    BP_CLI_FLAG(bp_cli_run_options, quiet, 'q', "quiet", "print no messages about reports"),
    BP_CLI_FLAG(bp_cli_run_options, as_json, 0, "json",
                "print each report as a JSON object in a line of\nstandard error"),
    BP_CLI_OPTIONS_END};

/*
 * Ends this program as the command ended, so that our parent sees the same, without writing a core
 * of our own.
 */
static bp_cli_exit end_by_signal(int number) {
    const struct rlimit no_core = {0, 0};
    sigset_t set;
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)signal(number, SIG_DFL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(number);
    return (bp_cli_exit)(BP_RUN_STATUS_OF_SIGNAL + number);
}

/* A command that could not be executed. One that is there and is no program of this machine has a
 * report; what is wrong with a name or a permission is said whole by the errno. */
static bp_cli_exit say_refused(const bp_cli_run_options *options, bp_cli_run_session *session,
                               int system_errno) {
    const char *command = options->arguments[0];
    char file[PATH_MAX], reason[BP_EXECUTABLE_REASON_BYTES];
    bool is_there = bp_run_executable_find(command, getenv("PATH"), file);
    bool is_missing = system_errno == ENOENT && !is_there;
    bp_run_executable_explain(is_there ? file : command, system_errno, reason);
    bp_cli_say("cannot run '%s': %s", command, reason);
    if (is_there && (system_errno == ENOENT || system_errno == ENOEXEC)) {
        bp_cli_run_session_refused(session, exit_cannot_execute, reason);
    }
    return (bp_cli_exit)(is_missing ? exit_not_found : exit_cannot_execute);
}

/* Traces the command if that was asked for, lets it go and relays until it ends. */
static bp_cli_exit relay_command(bp_cli_run_options *options, bp_run_child *child,
                                 bp_cli_run_session *session, bp_run_end *ret_end) {
    const bp_run_calls calls = bp_cli_run_session_calls(session);
    bp_run_result result = {.is_lost = false};
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (options->with_stacks) {
        const char *command = options->arguments[0];
        char file[PATH_MAX];
        bool is_there = bp_run_executable_find(command, getenv("PATH"), file);
        if (bp_crash_trace_start(child->pid, command, is_there ? file : command, bp_run_aside,
                                 &session->trace_error) != BUGPACK_OK) {
            bp_cli_say("no stacks of a crash: %s", session->trace_error.message);
        }
    }
    bp_hotkey hotkey;
    (void)bp_hotkey_parse(options->hotkey, &hotkey);
    if (bp_run_relay(child, &hotkey, &calls, &result, &error) == BUGPACK_OK) {
        bp_cli_run_session_end(session, &result);
        *ret_end = result.end;
        return BP_CLI_COMPLETE;
    }
    if (error.system_errno == 0) {
        return bp_cli_say_failed(&error);
    }
    return say_refused(options, session, error.system_errno);
}

static bp_cli_exit run_command(bp_cli_run_options *options) {
    bp_cli_exit bad_files;
    if (!bp_cli_files_check(&options->files, &bad_files)) {
        return bad_files;
    }
    if (options->output_dir == NULL && !bp_cli_check_current_dir()) {
        return BP_CLI_FAILED;
    }
    bp_run_child child;
    char file[PATH_MAX];
    bugpack_error error = BUGPACK_ERROR_INIT;
    bool is_binary = bp_run_executable_find(options->arguments[0], getenv("PATH"), file) &&
                     bp_run_executable_is_binary(file);
    if (bp_run_child_start(options->arguments, bp_cli_pipe_was_ignored, is_binary ? file : NULL,
                           &child, &error) != BUGPACK_OK) {
        return bp_cli_say_failed(&error);
    }
    bp_cli_run_session session;
    bp_run_end end = {.is_signal = false};
    bugpack_status status = bp_cli_run_session_open(&session, options, &child);
    bp_cli_exit result = status == BUGPACK_ERR_INVALID ? BP_CLI_USAGE : BP_CLI_FAILED;
    if (status == BUGPACK_OK) {
        result = relay_command(options, &child, &session, &end);
    }
    bp_cli_run_session_close(&session, &child);
    if (result != BP_CLI_COMPLETE) {
        return result;
    }
    return end.is_signal ? end_by_signal(end.value) : (bp_cli_exit)end.value;
}

static const bp_cli_run_options defaults = {.hotkey = "F12", .files = BP_CLI_FILES_INIT(0)};

static bp_cli_exit run(void *context, char **operands) {
    bp_cli_run_options *options = context;
    bool has_pattern = options->patterns.count > 0;
    bp_cli_exit result = BP_CLI_USAGE;
    options->arguments = operands;
    if (options->pedantic_dir != NULL && !options->is_pedantic && !has_pattern) {
        return bp_cli_say_usage("--pedantic-dir needs --pedantic");
    }
    if (options->auto_snapshot_cap != 0 && options->auto_snapshot_interval_ms == 0) {
        return bp_cli_say_usage("--auto-snapshot-cap needs --auto-snapshot-interval");
    }
    if (!bp_cli_redaction_prepare(&options->files.redaction, &result) ||
        !bp_cli_review_prepare(options->is_reviewed, &result) ||
        !bp_cli_hand_over_prepare(options->send_to, &result) ||
        (options->is_pedantic && !has_pattern &&
         !read_pattern(NULL, default_pattern, &options->patterns))) {
        return result;
    }
    options->is_pedantic = options->is_pedantic || has_pattern;
    result = run_command(options);
    bp_run_patterns_release(&options->patterns);
    return result;
}

const bp_cli_command bp_cli_run_command = {
    "run",
    "run a command under a recorder",
    "Usage: bugpack run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "\n"
    "Run a command under a recorder. The command behaves as usual; what it prints and\n"
    "what it costs is recorded in memory. A report is written when you press F12, on\n"
    "SIGUSR1, and when the command fails.\n",
    option_rows,
    "BYTES may end in K, M or G.\n"
    "\n"
    "Exit status: that of the command; a signal that ended it ends bugpack as well.\n"
    "126 the command cannot be executed, 127 it was not found, 1 failed before it\n"
    "started, 2 usage.\n",
    BP_CLI_OTHER_COMMAND,
    .run = run,
    .options_bytes = sizeof(bp_cli_run_options),
    .defaults = &defaults,
    .needed = "a command"};
