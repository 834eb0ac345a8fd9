#include "cli/run_session.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <bugpack/condition.h>
#include <bugpack/gap.h>
#include <bugpack/log.h>
#include <bugpack/provide.h>
#include <bugpack/report.h>

#include "base/file.h"
#include "base/utf8.h"
#include "cli/event.h"
#include "cli/hand_over.h"
#include "cli/output.h"
#include "cli/publish.h"
#include "report/recover.h"
#include "session/command.h"
#include "stacks/crash_trace.h"

/* A line of --json begins with this mark here, and no sentence does. */
static const char event_mark[] = "\x1f";

static void print_said(const char *what, const char *detail) {
    if (what[0] == event_mark[0]) {
        (void)fprintf(stderr, "%s%s", what + 1, detail);
    } else {
        bp_cli_say("%s%s", what, detail);
    }
}

/* Says something about a report: now, or when it cannot disturb what the command shows. */
static void say(bp_cli_run_session *session, const char *what, const char *detail) {
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

/* A report that was written, which is handed over; without a path there is none, and why. */
static void take_report(bp_cli_run_session *session, const char *path, uint32_t missing_count,
                        const char *not_searched, const char *error) {
    bugpack_error reason = BUGPACK_ERROR_INIT;
    if (path != NULL && bp_cli_hand_over(session->options->send_to, path, &reason) != BUGPACK_OK) {
        say(session, "not sent: ", reason.message);
    }
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
    bp_cli_run_session *session = context;
    bool is_written = result->status == BUGPACK_OK;
    take_report(session, is_written ? result->path : NULL, result->missing_count,
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
        take_report(context, is_written ? event->path : NULL, event->missing_count, NULL,
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
    bp_cli_run_session *session = context;
    if (session->is_closing) {
        say(session, "", text);
    }
    if (session->is_closing && level < BUGPACK_LEVEL_ERROR) {
        say(session, "to write its report: bugpack recover -o DIR --app ", session->app_name);
    }
}

static void take_line(void *context, bp_run_stream stream, const char *line, size_t line_bytes,
                      unsigned part) {
    const bp_cli_run_session *session = context;
    const char *channel = streams[stream].channel;
    bugpack_level level = stream == BP_RUN_STDERR ? BUGPACK_LEVEL_WARN : BUGPACK_LEVEL_INFO;
    bugpack_log_part(session->session, level, channel, line, line_bytes, part);
    char key[BP_RUN_KEY_BYTES];
    if (bp_run_patterns_match(&session->options->patterns, channel, line, line_bytes, key)) {
        bugpack_gap(session->session, key);
    }
}

/* `end`: how the command ended; NULL: it runs. */
static void request_report(bp_cli_run_session *session, const char *description,
                           const bp_target_end *end) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = description;
    bugpack_status status =
        bp_session_report(session->session, &request, end, on_done, session, NULL);
    if (status != BUGPACK_OK) {
        take_report(session, NULL, 0, NULL, bugpack_status_name(status));
    }
}

/* Reads the command's facts now, for a command that dies early. No error: it may have ended. */
static void read_facts(void *context) {
    const bp_cli_run_session *session = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status ignored = bp_session_refresh_target(session->session, &error);
    (void)ignored;
}

static void note_output(void *context) {
    const bp_cli_run_session *session = context;
    bp_session_note_output(session->session);
}

static void on_request(void *context) {
    bp_cli_run_session *session = context;
    request_report(session, session->options->description, NULL);
}

/* A bugpack_provider_callback of crash.json; its context is the copy. */
static int print_crash(bugpack_writer *writer, void *context) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_recover_print_crash(context, bp_crash_trace_python(), writer, &error);
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error.message);
}

/* Likewise; its context is a text. */
static int omit_crash(bugpack_writer *writer, void *context) {
    return bugpack_omit(writer, "%s", (const char *)context);
}

/* NULL where it could not be copied, which the entry then says. */
static const bp_crash_page *provide_crash(bp_cli_run_session *session, int number) {
    const char *reason = session->trace_error.message;
    bugpack_error error = BUGPACK_ERROR_INIT;
    const bp_crash_page *page = reason[0] == '\0' ? bp_crash_trace_finish(number, &reason) : NULL;
    if (bugpack_provide(session->session, "crash.json", BUGPACK_PROVIDE_JSON,
                        page != NULL ? print_crash : omit_crash,
                        page != NULL ? (void *)(uintptr_t)page : (void *)(uintptr_t)reason,
                        &error) != BUGPACK_OK) {
        say(session, "no crash.json: ", error.message);
    }
    return page;
}

static void report_failure(bp_cli_run_session *session, const bp_run_result *result) {
    const bp_run_end *end = &result->end;
    bp_cli_on_failure on_failure = session->options->on_failure;
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
    const bp_crash_page *crash = NULL;
    if (end->is_signal && session->options->with_stacks) {
        crash = provide_crash(session, end->value);
    }
    if (end->is_signal) {
        (void)snprintf(how, sizeof how, "killed by signal %d (%s)%s", end->value,
                       name != NULL ? name : "unknown", end->has_core ? ", core dumped" : "");
    } else {
        (void)snprintf(how, sizeof how, "exited with status %d", end->value);
    }
    (void)snprintf(description, sizeof description, "%s%s%.800s", how, given != NULL ? ": " : "",
                   given != NULL ? given : "");
    const bp_target_end facts = {.exit = {.status = end->is_signal ? 0 : end->value,
                                          .signal = end->is_signal ? end->value : 0,
                                          .has_core = end->has_core,
                                          .cpu_ns = end->cpu_ns},
                                 .crash = crash};
    request_report(session, description, &facts);
}

/* A bugpack_before_publish_callback. The question waits until the terminal is ours again. */
static bugpack_status review_and_publish(const bugpack_unpublished *report, void *context,
                                         bugpack_error *error) {
    bp_cli_run_session *session = context;
    bool is_reviewed = session->options->is_reviewed;
    bp_lock_acquire(&session->lock);
    while (is_reviewed && !session->has_ended) {
        bp_lock_wait(&session->lock, &session->command_ended);
    }
    bp_lock_release(&session->lock);
    return bp_cli_publish_call(is_reviewed)(report, NULL, error);
}

/* About a process; 0: about none. */
static bugpack_status open_about(bp_cli_run_session *session, pid_t pid, bugpack_error *error) {
    const bp_cli_run_options *given = session->options;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = session->app_name;
    options.report_dir = given->output_dir != NULL ? given->output_dir : ".";
    options.target_pid = pid;
    options.target_with_descendants = pid != 0;
    options.without_process = pid == 0;
    options.recorder.profile_hz = given->profile_hz;
    options.recorder.traffic_budget_bytes = BUGPACK_OFF;
    options.pedantic.is_enabled = given->is_pedantic;
    options.pedantic.dir = given->pedantic_dir;
    options.limits.per_signature = BUGPACK_OFF;
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
    return bugpack_open(&options, &session->session, error);
}

bugpack_status bp_cli_run_session_open(bp_cli_run_session *session, const bp_cli_run_options *given,
                                       const bp_run_child *child) {
    *session = (bp_cli_run_session){.options = given,
                                    .says_at_once = child->pipes.keyboard_to_fd < 0,
                                    .lock = BP_LOCK_INIT(BP_LOCK_COMMAND_OUTPUT),
                                    .command_ended = PTHREAD_COND_INITIALIZER};
    (void)snprintf(session->app_name, sizeof session->app_name, "%s",
                   given->app_name != NULL ? given->app_name
                                           : bp_file_base_name(given->arguments[0]));
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = open_about(session, child->pid, &error);
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

bp_run_calls bp_cli_run_session_calls(bp_cli_run_session *session) {
    return (bp_run_calls){.line = take_line,
                          .wrote = note_output,
                          .report = on_request,
                          .started = read_facts,
                          .rings = !session->options->quiet,
                          .context = session};
}

void bp_cli_run_session_end(bp_cli_run_session *session, const bp_run_result *result) {
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

/* The process that was to become the command is still this program: the report is of none. */
void bp_cli_run_session_refused(bp_cli_run_session *session, int status, const char *reason) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_target_end end = {.exit = {.status = status}};
    const char *given = session->options->description;
    char description[1024];
    bp_utf8_copy(end.exit.not_executed, sizeof end.exit.not_executed, reason);
    (void)snprintf(description, sizeof description, "cannot run '%.160s'%s%.800s",
                   session->options->arguments[0], given != NULL ? ": " : "",
                   given != NULL ? given : "");
    if (session->options->on_failure != BP_CLI_ON_FAILURE_ANY) {
        return;
    }
    bugpack_close(session->session);
    session->session = NULL;
    if (open_about(session, 0, &error) == BUGPACK_OK &&
        bp_cli_files_provide(&session->options->files, session->session) == BUGPACK_OK) {
        request_report(session, description, &end);
    } else {
        take_report(session, NULL, 0, NULL, error.message);
    }
}

void bp_cli_run_session_close(bp_cli_run_session *session, bp_run_child *child) {
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
