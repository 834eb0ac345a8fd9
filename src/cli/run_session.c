#include "cli/run_session.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bugpack/gap.h>
#include <bugpack/log.h>
#include <bugpack/report.h>

#include "cli/output.h"

/* Messages that wait for the end of the command; of more, the number is printed. */
enum { message_max = 100 };

struct bp_cli_run_session {
    bugpack *session;
    const bp_cli_run_options *options;
    bool says_at_once;
    pthread_mutex_t mutex; /* of what follows, which the session's threads write */
    char *messages[message_max];
    size_t message_count;
    size_t dropped_count;
};

/* Says something about a report: now, or when it cannot disturb what the command shows. */
static void say(bp_cli_run_session *session, const char *what, const char *detail) {
    if (session->says_at_once) {
        bp_cli_say("%s%s", what, detail);
        return;
    }
    size_t message_bytes = strlen(what) + strlen(detail) + 1;
    char *message = malloc(message_bytes);
    (void)pthread_mutex_lock(&session->mutex);
    if (message != NULL && session->message_count < message_max) {
        (void)snprintf(message, message_bytes, "%s%s", what, detail);
        session->messages[session->message_count++] = message;
        message = NULL;
    } else {
        session->dropped_count++;
    }
    (void)pthread_mutex_unlock(&session->mutex);
    free(message);
}

static void say_written(bp_cli_run_session *session, const char *path) {
    if (!session->options->quiet) {
        say(session, "report written: ", path);
    }
}

/* Reports that this program asked for. */
static void on_done(const bugpack_report_result *result, void *context) {
    bp_cli_run_session *session = context;
    if (result->status == BUGPACK_OK) {
        say_written(session, result->path);
    } else {
        say(session, "no report: ", result->error.message);
    }
}

/* Reports that the library starts by itself. */
static void on_event(const bugpack_event *event, void *context) {
    bp_cli_run_session *session = context;
    bool is_own = strcmp(event->report_type, "pedantic") == 0 ||
                  strcmp(event->report_type, "auto-snapshot") == 0;
    if (is_own && event->kind == BUGPACK_EVENT_WRITTEN) {
        say_written(session, event->path);
    } else if (is_own && event->kind == BUGPACK_EVENT_FAILED) {
        say(session, "no report: ", event->error.message);
    }
}

void bp_cli_run_session_line(void *context, bp_run_stream stream, const char *line,
                             size_t line_bytes) {
    static const char *const names[BP_RUN_STREAM_COUNT] = {"stdout", "stderr", "terminal"};
    const bp_cli_run_session *session = context;
    const char *channel = names[stream];
    bugpack_level level = stream == BP_RUN_STDERR ? BUGPACK_LEVEL_WARN : BUGPACK_LEVEL_INFO;
    bugpack_log_bytes(session->session, level, channel, line, line_bytes);
    char key[BP_RUN_KEY_BYTES];
    if (bp_run_patterns_match(&session->options->patterns, channel, line, line_bytes, key)) {
        bugpack_gap(session->session, key);
    }
}

static void request_report(bp_cli_run_session *session, bool is_crash, const char *description) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = description;
    request.is_crash = is_crash;
    bugpack_status status = bugpack_report_async(session->session, &request, on_done, session);
    if (status != BUGPACK_OK) {
        say(session, "no report: ", bugpack_status_name(status));
    }
}

/* Reads the command's facts now, for a command that dies early. No error: it may have ended. */
void bp_cli_run_session_started(void *context) {
    const bp_cli_run_session *session = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status ignored = bugpack_refresh_target(session->session, &error);
    (void)ignored;
}

void bp_cli_run_session_report(void *context) {
    bp_cli_run_session *session = context;
    request_report(session, false, session->options->description);
}

/* A command that somebody ended did not crash: by a signal passed on, Ctrl-C, or a closed pipe. */
static bool is_crash(const bp_run_result *result) {
    int number = result->end.value;
    return !result->is_lost && result->end.is_signal && number != SIGINT && number != SIGPIPE &&
           number != result->passed_on_last;
}

void bp_cli_run_session_end(bp_cli_run_session *session, const bp_run_result *result) {
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

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static bugpack_status open_session(bp_cli_run_session *session, const bp_run_child *child) {
    const bp_cli_run_options *given = session->options;
    char app_name[65];
    (void)snprintf(app_name, sizeof app_name, "%s", base_name(given->arguments[0]));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = given->app_name != NULL ? given->app_name : app_name;
    options.report_dir = given->output_dir != NULL ? given->output_dir : ".";
    options.target_pid = child->pid;
    options.target_with_descendants = true;
    options.provider_timeout_ms = BP_CLI_FILE_TIMEOUT_MS;
    options.traffic_budget_bytes = 0;
    options.pedantic = given->is_pedantic;
    options.pedantic_dir = given->pedantic_dir;
    /* The streams of one program are no channels of a protocol, so they share one cap. */
    options.pedantic_channel_cap = options.pedantic_cap;
    options.auto_snapshot_interval_ms = given->auto_snapshot_interval_ms;
    options.auto_snapshot_max_count = given->auto_snapshot_cap;
    options.on_event = on_event;
    options.on_event_context = session;
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

bp_cli_exit bp_cli_run_session_open(const bp_cli_run_options *options, const bp_run_child *child,
                                    bp_cli_run_session **ret_session) {
    bp_cli_run_session *session = calloc(1, sizeof *session);
    if (session == NULL || pthread_mutex_init(&session->mutex, NULL) != 0) {
        free(session);
        bp_cli_say("cannot open a session: out of memory");
        return BP_CLI_FAILED;
    }
    session->options = options;
    session->says_at_once = child->pipes.keyboard_to_fd < 0;
    bugpack_status status = open_session(session, child);
    if (status != BUGPACK_OK) {
        bp_cli_run_session_close(session);
        return status == BUGPACK_ERR_INVALID ? BP_CLI_USAGE : BP_CLI_FAILED;
    }
    *ret_session = session;
    return BP_CLI_COMPLETE;
}

void bp_cli_run_session_close(bp_cli_run_session *session) {
    if (session == NULL) {
        return;
    }
    bugpack_close(session->session);
    for (size_t i = 0; i < session->message_count; i++) {
        bp_cli_say("%s", session->messages[i]);
        free(session->messages[i]);
    }
    if (session->dropped_count > 0) {
        bp_cli_say("and %zu more like these", session->dropped_count);
    }
    (void)pthread_mutex_destroy(&session->mutex);
    free(session);
}
