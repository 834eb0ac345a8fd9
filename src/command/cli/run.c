#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bugpack/condition.h>
#include <bugpack/gap.h>
#include <bugpack/log.h>
#include <bugpack/provide.h>
#include <bugpack/report.h>
#include <bugpack/session.h>

#include "base/lock.h"
#include "cli/destination.h"
#include "cli/event.h"
#include "cli/files.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/publish.h"
#include "cli/review.h"
#include "report/recover.h"
#include "run/child.h"
#include "run/keyboard.h"
#include "run/pattern.h"
#include "run/relay.h"
#include "session/command.h"
#include "stacks/crash_trace.h"

/*
 * The session of `bugpack run`: the lines that a command writes become log records and gaps, and
 * reports are written about it.
 */

/* Which ends of the command lead to a report. */
typedef enum cli_on_failure {
    BP_CLI_ON_FAILURE_ANY,
    BP_CLI_ON_FAILURE_SIGNAL,
    BP_CLI_ON_FAILURE_NONE
} cli_on_failure;

/* Strings are borrowed from the command line; NULL: not given. */
typedef struct run_options {
    char **arguments; /* the command and its arguments, up to a NULL */
    const char *app_name;
    const char *description;
    const char *output_dir;
    const char *pedantic_dir;
    bool is_pedantic; /* asked for, or implied by a pattern */
    bp_run_patterns patterns;
    const char *hotkey; /* its name */
    cli_on_failure on_failure;
    uint32_t auto_snapshot_interval_ms; /* 0: never */
    uint32_t auto_snapshot_cap;
    uint32_t hang_after_ms; /* 0: never */
    bp_cli_files files;
    bool is_reviewed, quiet, as_json;
    uint32_t profile_hz; /* 0: no profiles */
    bool with_stacks;    /* of what the command crashes by */
} run_options;

/* Room for messages that wait for the end of the command; the rest are only counted. */
enum { waiting_bytes = 32 * 1024 };

typedef struct run_session {
    bugpack_session *session;
    const run_options *options; /* borrowed */
    bool says_at_once;          /* the command does not own our terminal */
    atomic_bool is_closing;     /* and all reports have ended */
    char app_name[65];
    bugpack_error trace_error; /* why the command is not traced; OK: it is, if asked for */
    bp_lock lock;              /* of what follows, which the session's threads write */
    pthread_cond_t command_ended;
    bool has_ended;
    char waiting[waiting_bytes]; /* messages, each with its NUL */
    size_t waiting_used;
    size_t dropped_count;
} run_session;

/* What a line of --json begins with here, and no sentence does. */
static const char event_mark[] = "\x1f";

static void print_said(const char *what, const char *detail) {
    if (what[0] == event_mark[0]) {
        (void)fprintf(stderr, "%s%s", what + 1, detail);
    } else {
        bp_cli_say("%s%s", what, detail);
    }
}

/* Says something about a report: now, or when it cannot disturb what the command shows. */
static void say(run_session *session, const char *what, const char *detail) {
    if (session->says_at_once) {
        print_said(what, detail);
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

/* A report that was written; without a path there is none, and why. */
static void say_report(run_session *session, const char *path, uint32_t missing_count,
                       const char *not_searched, const char *error) {
    if (!session->options->as_json) {
        if (path == NULL) {
            say(session, "no report: ", error);
        } else if (!session->options->quiet) {
            say(session, "report written: ", path);
        }
        return;
    }
    char *line = NULL;
    size_t line_bytes = 0;
    FILE *out = open_memstream(&line, &line_bytes);
    if (out != NULL && path != NULL) {
        bp_cli_print_written(out, path, missing_count, not_searched);
    } else if (out != NULL) {
        bp_cli_print_failed(out, "report-failed", NULL, error);
    }
    if (out != NULL && fclose(out) == 0) {
        say(session, event_mark, line);
    }
    free(line);
}

/* Reports that this program asked for. */
static void on_done(const bugpack_report_result *result, void *context) {
    run_session *session = context;
    bool is_written = result->status == BUGPACK_OK;
    say_report(session, is_written ? result->path : NULL, result->missing_count,
               result->not_searched, result->error.message);
    if (is_written && result->not_searched[0] != '\0' && !session->options->as_json) {
        say(session, "not searched for secrets: ", result->not_searched);
    }
}

/* Reports that the library starts by itself. */
static void on_event(const bugpack_event *event, void *context) {
    bool is_written = event->kind == BUGPACK_EVENT_WRITTEN;
    bool is_own = strcmp(event->report_type, "pedantic") == 0 ||
                  strcmp(event->report_type, "auto-snapshot") == 0 ||
                  strcmp(event->report_type, "condition") == 0;
    if (is_own && (is_written || event->kind == BUGPACK_EVENT_FAILED)) {
        say_report(context, is_written ? event->path : NULL, event->missing_count, NULL,
                   event->error.message);
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

static void take_line(void *context, bp_run_stream stream, const char *line, size_t line_bytes,
                      unsigned part) {
    const run_session *session = context;
    const char *channel = streams[stream].channel;
    bugpack_level level = stream == BP_RUN_STDERR ? BUGPACK_LEVEL_WARN : BUGPACK_LEVEL_INFO;
    bugpack_log_part(session->session, level, channel, line, line_bytes, part);
    char key[BP_RUN_KEY_BYTES];
    if (bp_run_patterns_match(&session->options->patterns, channel, line, line_bytes, key)) {
        bugpack_gap(session->session, key);
    }
}

/* `end`: how the command ended; NULL: it runs. `cpu_ns`: what it used then. */
static void request_report(run_session *session, const char *description, const bugpack_exit *end,
                           uint64_t cpu_ns) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = description;
    request.is_crash = end != NULL;
    request.target_exit = end;
    request.target_cpu_ns = cpu_ns;
    bugpack_status status =
        bugpack_report_async(session->session, &request, on_done, session, NULL);
    if (status != BUGPACK_OK) {
        say_report(session, NULL, 0, NULL, bugpack_status_name(status));
    }
}

/* Reads the command's facts now, for a command that dies early. No error: it may have ended. */
static void read_facts(void *context) {
    const run_session *session = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status ignored = bp_session_refresh_target(session->session, &error);
    (void)ignored;
}

static void note_output(void *context) {
    const run_session *session = context;
    bp_session_note_output(session->session);
}

static void on_request(void *context) {
    run_session *session = context;
    request_report(session, session->options->description, NULL, 0);
}

/* A bugpack_provider_callback of crash.json; its context is the copy. */
static int print_crash(bugpack_writer *writer, void *context) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_recover_print_crash(context, false, writer, &error);
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error.message);
}

/* Likewise; its context is a text. */
static int omit_crash(bugpack_writer *writer, void *context) {
    return bugpack_omit(writer, "%s", (const char *)context);
}

static void provide_crash(run_session *session, int number) {
    const char *reason = session->trace_error.message;
    bugpack_error error = BUGPACK_ERROR_INIT;
    const bp_crash_page *page = reason[0] == '\0' ? bp_crash_trace_finish(number, &reason) : NULL;
    if (bugpack_provide(session->session, "crash.json", BUGPACK_PROVIDE_JSON,
                        page != NULL ? print_crash : omit_crash,
                        page != NULL ? (void *)(uintptr_t)page : (void *)(uintptr_t)reason,
                        &error) != BUGPACK_OK) {
        say(session, "no crash.json: ", error.message);
    }
}

static void report_failure(run_session *session, const bp_run_result *result) {
    const bp_run_end *end = &result->end;
    cli_on_failure on_failure = session->options->on_failure;
    bool has_failed = end->is_signal ? on_failure != BP_CLI_ON_FAILURE_NONE
                                     : end->value != 0 && on_failure == BP_CLI_ON_FAILURE_ANY;
    /* A command that its user ended has not failed. */
    if (!has_failed || result->is_lost || result->is_expected) {
        return;
    }
    const char *given = session->options->description;
    const char *name = end->is_signal ? strsignal(end->value) : NULL;
    char how[160];
    char description[1024];
    if (end->is_signal && session->options->with_stacks) {
        provide_crash(session, end->value);
    }
    if (end->is_signal) {
        (void)snprintf(how, sizeof how, "killed by signal %d (%s)%s", end->value,
                       name != NULL ? name : "unknown", end->has_core ? ", core dumped" : "");
    } else {
        (void)snprintf(how, sizeof how, "exited with status %d", end->value);
    }
    (void)snprintf(description, sizeof description, "%s%s%.800s", how, given != NULL ? ": " : "",
                   given != NULL ? given : "");
    const bugpack_exit facts = {.status = end->is_signal ? 0 : end->value,
                                .signal = end->is_signal ? end->value : 0,
                                .core_dumped = end->has_core};
    request_report(session, description, &facts, end->cpu_ns);
}

/* A bugpack_before_publish_callback. The question waits until the terminal is ours again. */
static bugpack_status review_and_publish(const bugpack_unpublished *report, void *context,
                                         bugpack_error *error) {
    run_session *session = context;
    bool is_reviewed = session->options->is_reviewed;
    bp_lock_acquire(&session->lock);
    while (is_reviewed && !session->has_ended) {
        bp_lock_wait(&session->lock, &session->command_ended);
    }
    bp_lock_release(&session->lock);
    return bp_cli_publish_call(is_reviewed)(report, NULL, error);
}

/* About a command that is not yet let go. Reports a failure, after which it must be closed too. */
static bugpack_status run_session_open(run_session *session, const run_options *given,
                                       const bp_run_child *child) {
    *session = (run_session){.options = given,
                             .says_at_once = child->pipes.keyboard_to_fd < 0,
                             .lock = BP_LOCK_INIT(BP_LOCK_COMMAND_OUTPUT),
                             .command_ended = PTHREAD_COND_INITIALIZER};
    (void)snprintf(session->app_name, sizeof session->app_name, "%s",
                   given->app_name != NULL ? given->app_name
                                           : bp_cli_base_name(given->arguments[0]));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = session->app_name;
    options.report_dir = given->output_dir != NULL ? given->output_dir : ".";
    options.target_pid = child->pid;
    options.target_with_descendants = true;
    options.recorder.profile_hz = given->profile_hz;
    options.recorder.traffic_budget_bytes = BUGPACK_OFF;
    options.pedantic.is_enabled = given->is_pedantic;
    options.pedantic.dir = given->pedantic_dir;
    options.auto_snapshot.interval_ms = given->auto_snapshot_interval_ms;
    options.auto_snapshot.max_count = given->auto_snapshot_cap;
    if (bp_cli_publish_call(given->is_reviewed) != NULL) {
        options.before_publish = review_and_publish;
    }
    options.before_publish_context = session;
    bp_cli_files_apply(&given->files, &options);
    options.answers_trigger = true;
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
    const char *trouble = bp_session_profile_trouble(session->session);
    if (trouble != NULL) {
        bp_cli_say("there are no profiles: %s", trouble);
    }
    if (given->hang_after_ms > 0) {
        char condition[64];
        (void)snprintf(condition, sizeof condition, "idle for %" PRIu32 "ms", given->hang_after_ms);
        status = bugpack_condition_add(session->session, condition, &error);
    }
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return status;
    }
    return bp_cli_files_provide(&given->files, session->session);
}

/* Asks for the report of a command that has failed, and says what was lost. */
static void run_session_end(run_session *session, const bp_run_result *result) {
    report_failure(session, result);
    if (result->is_lost) {
        bp_cli_say("the exit status is not known: the monitor of the command was killed, or "
                   "the system does not tell");
    }
    for (size_t i = 0; i < result->loss_count; i++) {
        const bp_run_loss *loss = &result->losses[i];
        char detail[192];
        (void)snprintf(detail, sizeof detail, "%llu bytes could not be written to %s: %s",
                       (unsigned long long)loss->bytes, streams[loss->stream].name,
                       strerror(loss->system_errno));
        say(session, "", detail);
    }
}

/* Waits for all reports, reaps the command, and says what has waited. */
static void run_session_close(run_session *session, bp_run_child *child) {
    bp_lock_acquire(&session->lock);
    session->has_ended = true;
    (void)pthread_cond_broadcast(&session->command_ended);
    bp_lock_release(&session->lock);
    if (session->session != NULL) {
        (void)bugpack_flush(session->session, UINT32_MAX, NULL); /* reads what the command left */
    }
    bp_run_child_reap(child);
    session->is_closing = true;
    bugpack_close(session->session); /* waits for the reports in flight */
    for (size_t at = 0; at < session->waiting_used; at += strlen(session->waiting + at) + 1) {
        print_said(session->waiting + at, "");
    }
    if (session->dropped_count > 0) {
        bp_cli_say("and %zu more like these", session->dropped_count);
    }
}

/* As in env(1), nice(1) and every shell. */
enum { exit_cannot_execute = 126, exit_not_found = 127 };

/* How programs report what they do not handle. The group is the rest of the phrase. */
static const char default_pattern[] =
    "((unimplemented|not implemented|not yet implemented|unsupported|not supported|unhandled|"
    "unknown|unrecognized)[ :=]+[[:alnum:]_./-]+)";

static bool read_hotkey(const bp_cli_option *option, const char *text, void *field) {
    bp_hotkey key;
    if (!bp_hotkey_parse(text, &key)) {
        bp_cli_say_usage("--%s takes F1 to F12, Ctrl- and a letter but I, J and M, or none, "
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

static bool read_failure_kind(const bp_cli_option *option, const char *text, void *field) {
    static const char *const names[] = {[BP_CLI_ON_FAILURE_ANY] = "any",
                                        [BP_CLI_ON_FAILURE_SIGNAL] = "signal",
                                        [BP_CLI_ON_FAILURE_NONE] = "none",
                                        NULL};
    size_t index;
    if (!bp_cli_find_choice(option, text, names, &index)) {
        return false;
    }
    *(cli_on_failure *)field = (cli_on_failure)index;
    return true;
}

static const bp_cli_bounds intervals = {"seconds", 0, UINT32_MAX / 1000u, 1000};
static const bp_cli_bounds hang_times = {"seconds", 0, 7 * 24 * 3600, 1000};
static const bp_cli_bounds rates = {"a number", 1, 1000, 1};
static const bp_cli_bounds caps = {"a number", 1, 1000000, 1};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(run_options, hotkey, 0, "hotkey", "KEY",
                 "F1 to F12, Ctrl-LETTER, or none (default F12)", read_hotkey, NULL),
    BP_CLI_VALUE(run_options, on_failure, 0, "on-failure", "KIND",
                 "which failures lead to a report: any (default), by a\n"
                 "signal or a status other than 0; signal; none",
                 read_failure_kind, NULL),
    BP_CLI_FLAG(run_options, with_stacks, 0, "stacks",
                "trace the command, for the backtrace of a crash"),
    BP_CLI_VALUE(
        run_options, profile_hz, 0, "profile-hz", "N",
        "keep N samples of each thread in a second of its CPU\ntime, for the profile of a report",
        bp_cli_read_number, &rates),
    BP_CLI_VALUE(run_options, patterns, 0, "gap-pattern", "REGEX",
                 "a line that matches is a gap: one report for each\n"
                 "distinct first group, or match; repeatable; implies\n"
                 "--pedantic",
                 read_pattern, NULL),
    BP_CLI_FLAG(run_options, is_pedantic, 0, "pedantic",
                "report gaps; without a pattern, lines that mention\n"
                "something unsupported, unimplemented or unknown"),
    BP_CLI_VALUE(run_options, pedantic_dir, 0, "pedantic-dir", "DIR",
                 "the directory for reports about gaps; needs\n--pedantic or --gap-pattern",
                 bp_cli_read_output_dir, &bp_cli_some_text),
    BP_CLI_VALUE(run_options, auto_snapshot_interval_ms, 0, "auto-snapshot-interval", "TIME",
                 "how often to write a report, in seconds, or such as\n5min (default 0: never)",
                 bp_cli_read_time, &intervals),
    BP_CLI_VALUE(run_options, auto_snapshot_cap, 0, "auto-snapshot-cap", "N",
                 "how many of these to keep (default 20)", bp_cli_read_number, &caps),
    BP_CLI_VALUE(run_options, hang_after_ms, 0, "hang-after", "TIME",
                 "report a command that has used no CPU and printed\nnothing for so long, in "
                 "seconds, or such as 5min\n(default 0: never)",
                 bp_cli_read_time, &hang_times),
    BP_CLI_REVIEW_OPTION(run_options, is_reviewed),
    BP_CLI_FILE_OPTIONS(run_options, files),
    BP_CLI_VALUE(run_options, app_name, 0, "app", "NAME",
                 "name the reports after NAME, not after the command", bp_cli_read_text,
                 &bp_cli_app_names),
    BP_CLI_VALUE(run_options, description, 0, "description", "TEXT", "what you are looking for",
                 bp_cli_read_text, &bp_cli_descriptions),
    BP_CLI_VALUE(run_options, output_dir, 'o', "output-dir", "DIR",
                 "where to write the zips (default: current directory)", bp_cli_read_output_dir,
                 &bp_cli_some_text),
    BP_CLI_FLAG(run_options, quiet, 'q', "quiet", "print no messages about reports"),
    BP_CLI_FLAG(run_options, as_json, 0, "json",
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

/* Traces the command if that was asked for, lets it go and relays until it ends. */
static bp_cli_exit relay_command(run_options *options, bp_run_child *child, run_session *session,
                                 bp_run_end *ret_end) {
    const bp_run_calls calls = {.line = take_line,
                                .wrote = note_output,
                                .report = on_request,
                                .started = read_facts,
                                .rings = !options->quiet,
                                .context = session};
    bp_run_result result = {.is_lost = false};
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (options->with_stacks && bp_crash_trace_start(child->pid, options->arguments[0],
                                                     &session->trace_error) != BUGPACK_OK) {
        bp_cli_say("no stacks of a crash: %s", session->trace_error.message);
    }
    bp_hotkey hotkey;
    (void)bp_hotkey_parse(options->hotkey, &hotkey);
    if (bp_run_relay(child, &hotkey, &calls, &result, &error) == BUGPACK_OK) {
        run_session_end(session, &result);
        *ret_end = result.end;
        return BP_CLI_COMPLETE;
    }
    if (error.system_errno == 0) {
        return bp_cli_say_failed(&error);
    }
    bp_cli_say("cannot run '%s': %s", options->arguments[0], strerror(error.system_errno));
    return (bp_cli_exit)(error.system_errno == ENOENT ? exit_not_found : exit_cannot_execute);
}

static bp_cli_exit run_command(run_options *options) {
    bp_cli_exit bad_files;
    if (!bp_cli_files_check(&options->files, &bad_files)) {
        return bad_files;
    }
    if (options->output_dir == NULL && !bp_cli_check_current_dir()) {
        return BP_CLI_FAILED;
    }
    bp_run_child child;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_run_child_start(options->arguments, bp_cli_pipe_was_ignored, &child, &error) !=
        BUGPACK_OK) {
        return bp_cli_say_failed(&error);
    }
    run_session session;
    bp_run_end end = {.is_signal = false};
    bugpack_status status = run_session_open(&session, options, &child);
    bp_cli_exit result = status == BUGPACK_ERR_INVALID ? BP_CLI_USAGE : BP_CLI_FAILED;
    if (status == BUGPACK_OK) {
        result = relay_command(options, &child, &session, &end);
    }
    run_session_close(&session, &child);
    if (result != BP_CLI_COMPLETE) {
        return result;
    }
    return end.is_signal ? end_by_signal(end.value) : (bp_cli_exit)end.value;
}

static const run_options defaults = {.hotkey = "F12", .files = BP_CLI_FILES_INIT(0)};

static bp_cli_exit run(void *context, char **operands) {
    run_options *options = context;
    bool has_pattern = options->patterns.count > 0;
    bp_cli_exit result = BP_CLI_USAGE;
    options->arguments = operands;
    if (options->pedantic_dir != NULL && !options->is_pedantic && !has_pattern) {
        return bp_cli_say_usage("--pedantic-dir needs --pedantic");
    }
    if (!bp_cli_redaction_prepare(&options->files.redaction, &result) ||
        !bp_cli_review_prepare(options->is_reviewed, &result) ||
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
    .options_bytes = sizeof(run_options),
    .defaults = &defaults,
    .needed = "a command"};
