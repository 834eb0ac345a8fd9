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

#include "cli/message.h"
#include "cli/provide.h"
#include "run/lines.h"

/* What is kept to be told when the command has ended; beyond that the number of reports. */
enum { sentences_max = 100 };

struct bp_cli_run_session {
    bugpack *session;
    const bp_cli_run_options *options;
    bool speaks_at_once;
    bp_run_lines *lines;
    /* Written by the session's worker, read when that is gone. */
    pthread_mutex_t mutex;
    char *sentences[sentences_max];
    size_t sentence_count;
    size_t untold_count;
};

/* Says something of a report: now, or when it cannot disturb what the command shows. */
static void tell(bp_cli_run_session *session, const char *what, const char *detail) {
    if (session->speaks_at_once) {
        bp_cli_say("%s%s", what, detail);
        return;
    }
    size_t sentence_bytes = strlen(what) + strlen(detail) + 1;
    char *sentence = malloc(sentence_bytes);
    (void)pthread_mutex_lock(&session->mutex);
    if (sentence != NULL && session->sentence_count < sentences_max) {
        (void)snprintf(sentence, sentence_bytes, "%s%s", what, detail);
        session->sentences[session->sentence_count++] = sentence;
        sentence = NULL;
    } else {
        session->untold_count++;
    }
    (void)pthread_mutex_unlock(&session->mutex);
    free(sentence);
}

static void tell_written(bp_cli_run_session *session, const char *path) {
    if (!session->options->quiet) {
        tell(session, "report written: ", path);
    }
}

/* Reports that this program asked for. */
static void on_done(const bugpack_report_result *result, void *context) {
    bp_cli_run_session *session = context;
    if (result->status == BUGPACK_OK) {
        tell_written(session, result->path);
    } else {
        tell(session, "no report: ", result->error.message);
    }
}

/* Reports that the library takes by itself. */
static void on_event(const bugpack_event *event, void *context) {
    bp_cli_run_session *session = context;
    bool is_own = strcmp(event->report_type, "pedantic") == 0 ||
                  strcmp(event->report_type, "auto-snapshot") == 0;
    if (is_own && event->kind == BUGPACK_EVENT_WRITTEN) {
        tell_written(session, event->path);
    } else if (is_own && event->kind == BUGPACK_EVENT_FAILED) {
        tell(session, "no report: ", event->error.message);
    }
}

static void take_line(void *context, bp_run_stream stream, const char *line, size_t line_bytes) {
    const bp_cli_run_session *session = context;
    const char *channel = bp_run_stream_name(stream);
    bugpack_level level = stream == BP_RUN_STDERR ? BUGPACK_LEVEL_WARN : BUGPACK_LEVEL_INFO;
    bugpack_log_bytes(session->session, level, channel, line, line_bytes);
    char key[BP_RUN_KEY_BYTES];
    if (bp_run_patterns_match(session->options->patterns, channel, line, line_bytes, key)) {
        bugpack_gap(session->session, key);
    }
}

void bp_cli_run_session_output(void *context, bp_run_stream stream, const char *bytes,
                               size_t byte_count) {
    const bp_cli_run_session *session = context;
    bp_run_lines_feed(session->lines, stream, bytes, byte_count);
}

static void ask_for_report(bp_cli_run_session *session, bool is_crash, const char *description) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = description;
    request.is_crash = is_crash;
    /* What stands in an unfinished line belongs to the moment of the report: a prompt, for one. */
    bp_run_lines_flush(session->lines);
    bugpack_status status = bugpack_report_async(session->session, &request, on_done, session);
    if (status != BUGPACK_OK) {
        tell(session, "no report: ", bugpack_status_name(status));
    }
}

/* What it is by now, for the report of a command that dies at once. One that has ended already has
 * nothing to tell. */
void bp_cli_run_session_started(void *context) {
    const bp_cli_run_session *session = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status ignored = bugpack_refresh_target(session->session, &error);
    (void)ignored;
}

void bp_cli_run_session_report(void *context, bp_run_asker asker) {
    bp_cli_run_session *session = context;
    (void)asker;
    ask_for_report(session, false, session->options->description);
}

/*
 * Not when somebody ended it: by a signal that we were sent for it, from the keyboard, or by going
 * away as its reader.
 */
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
        ask_for_report(session, true, description);
    }
    bp_run_lines_flush(session->lines);
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
    /* There is one program to look at, and its streams are no channels of a protocol. */
    options.pedantic_channel_cap = options.pedantic_cap;
    options.auto_snapshot_interval_ms = given->auto_snapshot_interval_ms;
    options.auto_snapshot_max_count = given->auto_snapshot_cap;
    options.on_event = on_event;
    options.on_event_context = session;
    if (given->pedantic_dir != NULL) {
        (void)mkdir(given->pedantic_dir,
                    0700); /* whether it can be used is checked by the opening */
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_open(&options, &session->session, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return status;
    }
    const bp_cli_files files = {given->session_path, &given->logs, given->log_limit_bytes,
                                &given->attachments, given->attach_limit_bytes};
    return bp_cli_provide_files(session->session, "run", &files);
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
    session->speaks_at_once = child->keyboard_to_fd < 0;
    session->lines = bp_run_lines_new(take_line, session);
    bugpack_status status = BUGPACK_ERR_NO_MEMORY;
    if (session->lines == NULL) {
        bp_cli_say("cannot open a session: out of memory");
    } else {
        status = open_session(session, child);
    }
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
    for (size_t i = 0; i < session->sentence_count; i++) {
        bp_cli_say("%s", session->sentences[i]);
        free(session->sentences[i]);
    }
    if (session->untold_count > 0) {
        bp_cli_say("and %zu more like these", session->untold_count);
    }
    bp_run_lines_free(session->lines);
    (void)pthread_mutex_destroy(&session->mutex);
    free(session);
}
