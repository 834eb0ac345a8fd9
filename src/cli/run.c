#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <bugpack/gap.h>
#include <bugpack/log.h>
#include <bugpack/report.h>
#include <bugpack/session.h>

#include "base/lock.h"
#include "cli/files.h"
#include "cli/option.h"
#include "cli/output.h"
#include "run/child.h"
#include "run/keyboard.h"
#include "run/pattern.h"
#include "run/relay.h"

/* As in env(1), nice(1) and every shell. */
enum { exit_cannot_execute = 126, exit_not_found = 127, exit_signal_base = 128 };

/* Strings are borrowed from the command line; NULL: not given. */
typedef struct run_options {
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
} run_options;

/* How programs report what they do not handle. The group is the rest of the phrase. */
static const char default_pattern[] =
    "((unimplemented|not implemented|not yet implemented|unsupported|not supported|unhandled|"
    "unknown|unrecognized)[ :=]+[[:alnum:]_./-]+)";

static bool read_hotkey(const bp_cli_option *option, const char *text, void *field) {
    if (!bp_hotkey_parse(text, field)) {
        bp_cli_say_usage("--%s takes F1 to F12, Ctrl- and a letter but I, J and M, or none, "
                         "not '%s'",
                         option->name, text);
        return false;
    }
    return true;
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

static const bp_cli_bounds intervals = {"seconds", 0, UINT32_MAX / 1000u, 1000};
static const bp_cli_bounds caps = {"a number", 1, 1000000, 1};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(run_options, hotkey, 0, "hotkey", "KEY",
                 "F1 to F12, Ctrl-LETTER, or none (default F12)", read_hotkey, NULL),
    BP_CLI_VALUE(run_options, patterns, 0, "gap-pattern", "REGEX",
                 "a line that matches is a gap: one report for each\n"
                 "distinct first group, or match; repeatable; implies\n"
                 "--pedantic",
                 read_pattern, NULL),
    BP_CLI_FLAG(run_options, is_pedantic, 0, "pedantic",
                "report gaps; without a pattern, lines that mention\n"
                "something unsupported, unimplemented or unknown"),
    BP_CLI_VALUE(run_options, pedantic_dir, 0, "pedantic-dir", "DIR",
                 "the directory for reports about gaps", bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_VALUE(run_options, auto_snapshot_interval_ms, 0, "auto-snapshot-interval", "SECS",
                 "how often to write a report (default 0: never)", bp_cli_read_number, &intervals),
    BP_CLI_VALUE(run_options, auto_snapshot_cap, 0, "auto-snapshot-cap", "N",
                 "how many of these to keep (default 20)", bp_cli_read_number, &caps),
    BP_CLI_FILE_OPTIONS(run_options, files),
    BP_CLI_VALUE(run_options, app_name, 0, "app", "NAME",
                 "name the reports after NAME, not after the command", bp_cli_read_text,
                 &bp_cli_app_names),
    BP_CLI_VALUE(run_options, description, 0, "description", "TEXT", "what you are looking for",
                 bp_cli_read_text, &bp_cli_descriptions),
    BP_CLI_VALUE(run_options, output_dir, 'o', "output-dir", "DIR",
                 "where to write the zips (default: current directory)", bp_cli_read_text,
                 &bp_cli_some_text),
    BP_CLI_FLAG(run_options, quiet, 'q', "quiet", "print no messages about reports"),
    BP_CLI_OPTIONS_END};

/* Room for messages that wait for the end of the command; the rest are only counted. */
enum { waiting_bytes = 32 * 1024 };

/* A session that watches a command: the lines it writes become log records and gaps. */
typedef struct run_session {
    bugpack *session;
    const run_options *options;
    bool says_at_once;      /* the command does not own our terminal */
    atomic_bool is_closing; /* and all reports have ended */
    char app_name[65];
    bp_lock lock;                /* of what follows, which the session's threads write */
    char waiting[waiting_bytes]; /* messages, each with its NUL */
    size_t waiting_used;
    size_t dropped_count;
} run_session;

/* Says something about a report: now, or when it cannot disturb what the command shows. */
static void say(run_session *session, const char *what, const char *detail) {
    if (session->says_at_once) {
        bp_cli_say("%s%s", what, detail);
        return;
    }
    bp_lock_acquire(&session->lock);
    size_t room_bytes = sizeof session->waiting - session->waiting_used;
    int length =
        snprintf(session->waiting + session->waiting_used, room_bytes, "%s%s", what, detail);
    if (length >= 0 && (size_t)length < room_bytes) {
        session->waiting_used += (size_t)length + 1;
    } else {
        session->dropped_count++;
    }
    bp_lock_release(&session->lock);
}

static void say_waiting(const run_session *session) {
    for (size_t at = 0; at < session->waiting_used; at += strlen(session->waiting + at) + 1) {
        bp_cli_say("%s", session->waiting + at);
    }
    if (session->dropped_count > 0) {
        bp_cli_say("and %zu more like these", session->dropped_count);
    }
}

static void say_written(run_session *session, const char *path) {
    if (!session->options->quiet) {
        say(session, "report written: ", path);
    }
}

/* Reports that this program asked for. */
static void on_done(const bugpack_report_result *result, void *context) {
    run_session *session = context;
    if (result->status == BUGPACK_OK) {
        say_written(session, result->path);
    } else {
        say(session, "no report: ", result->error.message);
    }
}

/* Reports that the library starts by itself. */
static void on_event(const bugpack_event *event, void *context) {
    run_session *session = context;
    bool is_own = strcmp(event->report_type, "pedantic") == 0 ||
                  strcmp(event->report_type, "auto-snapshot") == 0;
    if (is_own && event->kind == BUGPACK_EVENT_WRITTEN) {
        say_written(session, event->path);
    } else if (is_own && event->kind == BUGPACK_EVENT_FAILED) {
        say(session, "no report: ", event->error.message);
    }
}

/* The channels of the log, and what a person calls them. */
static const struct {
    const char *channel, *name;
} streams[BP_RUN_STREAM_COUNT] = {[BP_RUN_STDOUT] = {"stdout", "standard output"},
                                  [BP_RUN_STDERR] = {"stderr", "standard error"},
                                  [BP_RUN_TERMINAL] = {"terminal", "the terminal"},
                                  [BP_RUN_OUTPUT] = {"output", "standard output and error"}};

/* At the close: what became of a crash whose report failed. Before, all is in the reports. */
static void on_diagnostic(bugpack_level level, const char *text, void *context) {
    run_session *session = context;
    if (session->is_closing) {
        say(session, "", text);
    }
    if (session->is_closing && level < BUGPACK_LEVEL_ERROR) {
        say(session, "to write its report: bugpack recover -o DIR --app ", session->app_name);
    }
}

static void take_line(void *context, bp_run_stream stream, const char *line, size_t line_bytes) {
    const run_session *session = context;
    const char *channel = streams[stream].channel;
    bugpack_level level = stream == BP_RUN_STDERR ? BUGPACK_LEVEL_WARN : BUGPACK_LEVEL_INFO;
    bugpack_log_bytes(session->session, level, channel, line, line_bytes);
    char key[BP_RUN_KEY_BYTES];
    if (bp_run_patterns_match(&session->options->patterns, channel, line, line_bytes, key)) {
        bugpack_gap(session->session, key);
    }
}

static void request_report(run_session *session, bool is_crash, const char *description) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = description;
    request.is_crash = is_crash;
    bugpack_status status = bugpack_report_async(session->session, &request, on_done, session);
    if (status != BUGPACK_OK) {
        say(session, "no report: ", bugpack_status_name(status));
    }
}

/* Reads the command's facts now, for a command that dies early. No error: it may have ended. */
static void read_facts(void *context) {
    const run_session *session = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status ignored = bugpack_refresh_target(session->session, &error);
    (void)ignored;
}

static void on_request(void *context) {
    run_session *session = context;
    request_report(session, false, session->options->description);
}

/* A command that somebody ended did not crash: by a signal passed on, Ctrl-C, or a closed pipe. */
static bool is_crash(const bp_run_result *result) {
    int number = result->end.value;
    return !result->is_lost && result->end.is_signal && number != SIGINT && number != SIGPIPE &&
           number != result->passed_on_last;
}

static void report_crash(run_session *session, const bp_run_result *result) {
    if (is_crash(result)) {
        const char *given = session->options->description;
        const char *name = strsignal(result->end.value);
        char description[1024];
        (void)snprintf(description, sizeof description, "killed by signal %d (%s)%s%s%.800s",
                       result->end.value, name != NULL ? name : "unknown",
                       result->end.has_core ? ", core dumped" : "", given != NULL ? ": " : "",
                       given != NULL ? given : "");
        request_report(session, true, description);
    }
}

/* About a command that is not yet let go. Reports a failure. */
static bugpack_status open_session(run_session *session, const bp_run_child *child) {
    const run_options *given = session->options;
    (void)snprintf(session->app_name, sizeof session->app_name, "%s",
                   given->app_name != NULL ? given->app_name
                                           : bp_cli_base_name(given->arguments[0]));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = session->app_name;
    options.report_dir = given->output_dir != NULL ? given->output_dir : ".";
    options.target_pid = child->pid;
    options.target_with_descendants = true;
    options.provider_timeout_ms = BP_CLI_FILE_TIMEOUT_MS;
    options.calibrator_path = BP_CLI_OWN_PATH;
    options.traffic_budget_bytes = BUGPACK_OFF;
    options.pedantic = given->is_pedantic;
    options.pedantic_dir = given->pedantic_dir;
    options.auto_snapshot_interval_ms = given->auto_snapshot_interval_ms;
    options.auto_snapshot_max_count = given->auto_snapshot_cap;
    bp_cli_redaction_apply(&given->files.redaction, &options);
    options.without_entries = given->files.without;
    options.on_event = on_event;
    options.on_event_context = session;
    options.on_diagnostic = on_diagnostic;
    options.on_diagnostic_context = session;
    if (given->pedantic_dir != NULL) {
        (void)mkdir(given->pedantic_dir, 0700); /* bugpack_open checks it */
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_open(&options, &session->session, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return status;
    }
    return bp_cli_files_provide(&given->files, session->session);
}

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
    return (bp_cli_exit)(exit_signal_base + number);
}

static bp_cli_exit say_not_started(const run_options *options, const bugpack_error *error) {
    if (error->system_errno == 0) {
        bp_cli_say("%s", error->message);
        return BP_CLI_FAILED;
    }
    bp_cli_say("cannot run '%s': %s", options->arguments[0], strerror(error->system_errno));
    return (bp_cli_exit)(error->system_errno == ENOENT ? exit_not_found : exit_cannot_execute);
}

/* Lets the command go and relays until it ends. */
static bp_cli_exit relay_command(run_options *options, bp_run_child *child, run_session *session,
                                 bp_run_end *ret_end) {
    const bp_run_calls calls = {
        .line = take_line, .report = on_request, .started = read_facts, .context = session};
    bp_run_result result = {.is_lost = false};
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_run_relay(child, &options->hotkey, &calls, &result, &error) != BUGPACK_OK) {
        return say_not_started(options, &error);
    }
    report_crash(session, &result);
    if (result.is_lost) {
        bp_cli_say("the monitor of the command was killed: the exit status is not known");
    }
    for (size_t i = 0; i < result.loss_count; i++) {
        const bp_run_loss *loss = &result.losses[i];
        char detail[192];
        (void)snprintf(detail, sizeof detail, "%llu bytes could not be written to %s: %s",
                       (unsigned long long)loss->bytes, streams[loss->stream].name,
                       strerror(loss->system_errno));
        say(session, "", detail);
    }
    *ret_end = result.end;
    return BP_CLI_COMPLETE;
}

static bp_cli_exit run_command(run_options *options) {
    if (bp_cli_files_check_session(&options->files) != BUGPACK_OK) {
        return BP_CLI_FAILED;
    }
    bp_run_child child;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_run_child_start(options->arguments, bp_cli_pipe_was_ignored, &child, &error) !=
        BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    run_session session = {.options = options,
                           .says_at_once = child.pipes.keyboard_to_fd < 0,
                           .lock = BP_LOCK_INIT(BP_LOCK_COMMAND_OUTPUT)};
    bp_run_end end = {.is_signal = false};
    bugpack_status status = open_session(&session, &child);
    bp_cli_exit result = status == BUGPACK_ERR_INVALID ? BP_CLI_USAGE : BP_CLI_FAILED;
    if (status == BUGPACK_OK) {
        result = relay_command(options, &child, &session, &end);
    }
    if (session.session != NULL) {
        (void)bugpack_flush(session.session, UINT32_MAX); /* reads what the command left */
    }
    bp_run_child_reap(&child);
    session.is_closing = true;
    bugpack_close(session.session); /* waits for the reports in flight */
    say_waiting(&session);
    if (result != BP_CLI_COMPLETE) {
        return result;
    }
    return end.is_signal ? end_by_signal(end.value) : (bp_cli_exit)end.value;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    run_options options = {.files = BP_CLI_FILES_INIT};
    bp_cli_exit result;
    (void)bp_hotkey_parse("F12", &options.hotkey);
    if (bp_cli_read_options(&bp_cli_run_command, argument_count, arguments, &options,
                            &options.arguments, &result)) {
        bool has_pattern = options.patterns.count > 0;
        if (options.arguments[0] == NULL) {
            result = bp_cli_say_usage("a command is missing");
        } else if (bp_cli_redaction_prepare(&options.files.redaction, &result) &&
                   (has_pattern || !options.is_pedantic ||
                    read_pattern(NULL, default_pattern, &options.patterns))) {
            options.is_pedantic = options.is_pedantic || has_pattern;
            result = run_command(&options);
        }
    }
    bp_run_patterns_release(&options.patterns);
    bp_cli_files_release(&options.files);
    return result;
}

const bp_cli_command bp_cli_run_command = {
    "run",
    "run a command under a recorder",
    "Usage: bugpack run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "\n"
    "Run a command under a recorder. The command behaves as usual; what it prints and\n"
    "what it costs is recorded in memory. A report is written when you press F12, on\n"
    "SIGUSR1, and when the command is killed by a signal.\n",
    option_rows,
    "BYTES may end in K, M or G.\n"
    "\n"
    "Exit status: that of the command; a signal that ended it ends bugpack as well.\n"
    "126 the command cannot be executed, 127 it was not found, 1 failed before it\n"
    "started, 2 usage.\n",
    BP_CLI_OTHER_COMMAND,
    run};
