#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/capture_host.h>
#include <bugpack/report.h>
#include <bugpack/session.h>

#include "cli/capture_options.h"
#include "cli/command.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/provide.h"
#include "cli/text.h"

/* A report on its way: the worker thread fills the result, then writes one byte to the pipe. */
typedef struct pending_report {
    bugpack_report_result result;
    int done_pipe[2];
    int ended_by;       /* the signal that took it back; 0 for none */
    bp_cli_steps steps; /* of a capture of the machine */
} pending_report;

static void on_done(const bugpack_report_result *result, void *context) {
    pending_report *pending = context;
    pending->result = *result;
    ssize_t written;
    do {
        written = write(pending->done_pipe[1], "", 1);
    } while (written < 0 && errno == EINTR);
}

static void on_host_progress(uint64_t done, uint64_t total, void *context) {
    bp_cli_steps *steps = context;
    atomic_store(&steps->total, total);
    atomic_store(&steps->done, done);
}

static bugpack_status provide_host(bugpack *session, pending_report *pending) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_host_options options = BUGPACK_HOST_OPTIONS_INIT;
    options.calibrator_path = bp_cli_own_path;
    options.on_progress = on_host_progress;
    options.context = &pending->steps;
    bugpack_status status = bugpack_provide_host_threads(session, &options, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
    }
    return status;
}

/* Triggers the report and waits until it is there or has failed; tells what failed. */
static bugpack_status take_report(bugpack *session, const bp_cli_capture_options *options,
                                  pending_report *pending) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = options->description;
    request.output_path = options->output_path;
    request.timeout_ms = options->timeout_ms;
    bugpack_status status = bugpack_report_async(session, &request, on_done, pending);
    if (status != BUGPACK_OK) {
        bp_cli_say("cannot take a report: %s", bugpack_status_name(status));
        return status;
    }
    bool show = !options->quiet && !options->json && bp_cli_progress_is_possible();
    pending->ended_by = bp_cli_progress_wait(pending->done_pipe, options->window_ms,
                                             options->host ? &pending->steps : NULL, show);
    if (pending->ended_by != 0) {
        (void)bugpack_cancel(session, 0); /* INVALID when it has just ended */
        char byte;
        do { /* two signals may have come */
            while (read(pending->done_pipe[0], &byte, 1) < 0 && errno == EINTR) {}
        } while (byte == BP_CLI_SIGNAL_BYTE);
    }
    if (pending->result.status != BUGPACK_OK && pending->ended_by == 0) {
        bp_cli_say("%s", pending->result.error.message);
    }
    return pending->result.status;
}

/* The library gives a line for each missing artefact, as far as there is room for whole lines. */
static void warn_of_missing(const bugpack_report_result *result) {
    uint32_t told = 0;
    for (const char *line = result->missing; *line != '\0'; told++) {
        size_t length = strcspn(line, "\n");
        bp_cli_say("the report is incomplete: %.*s", (int)length, line);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    if (told < result->missing_count) {
        bp_cli_say("the report is incomplete: manifest.json tells of %" PRIu32 " more",
                   result->missing_count - told);
    }
}

/* Standard output gets the path, or the JSON object that stands for it. */
static bp_cli_exit print_result(const bugpack_report_result *result,
                                const bp_cli_capture_options *options) {
    bool complete = result->missing_count == 0;
    if (!complete && !options->quiet) {
        warn_of_missing(result);
    }
    if (options->json) {
        (void)fputs("{\n  \"path\": ", stdout);
        bp_cli_text_write_json(stdout, result->path);
        (void)printf(",\n  \"complete\": %s,\n  \"missing\": %" PRIu32 ",\n  \"bytes\": %" PRIu64
                     "\n}\n",
                     complete ? "true" : "false", result->missing_count, result->zip_bytes);
    } else {
        (void)printf("%s\n", result->path);
    }
    if (!bp_cli_finish_output()) {
        bp_cli_say("the report is written: %s", result->path);
        return BP_CLI_FAILED;
    }
    return complete ? BP_CLI_COMPLETE : BP_CLI_INCOMPLETE;
}

/*
 * The directory that the session opens: that of --output where there is one, so that a report that
 * goes elsewhere does not depend on the current directory. Owned; NULL without memory.
 */
static char *report_dir_new(const bp_cli_capture_options *options) {
    if (options->output_path == NULL) {
        return strdup(options->output_dir != NULL ? options->output_dir : ".");
    }
    const char *slash = strrchr(options->output_path, '/');
    if (slash == NULL) {
        return strdup(".");
    }
    size_t length = (size_t)(slash - options->output_path);
    return strndup(options->output_path, length > 0 ? length : 1);
}

static bugpack_status open_session(const bp_cli_capture_options *options, bugpack **ret_session) {
    char *report_dir = report_dir_new(options);
    if (report_dir == NULL) {
        bp_cli_say("cannot open a session: out of memory");
        return BUGPACK_ERR_NO_MEMORY;
    }
    bugpack_options session_options = BUGPACK_OPTIONS_INIT;
    session_options.app_name =
        options->host && options->app_name == NULL ? "host" : options->app_name;
    session_options.without_process = options->host;
    session_options.target_pid = options->pid;
    session_options.sample_window_ms = options->window_ms;
    session_options.report_dir = report_dir;
    session_options.provider_timeout_ms = BP_CLI_FILE_TIMEOUT_MS;
    /* One report, and then the end: there is no past to keep. */
    session_options.log_ring_bytes = 0;
    session_options.traffic_budget_bytes = 0;
    session_options.history_interval_ms = 0;
    session_options.recorder_in_memory = true;
    /* A person asked for it, and knows the disk: nothing is refused, and nothing is removed. */
    session_options.min_free_bytes = 0;
    session_options.report_dir_max_count = 0;
    session_options.report_dir_max_bytes = 0;
    session_options.calibrator_path = bp_cli_own_path;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_open(&session_options, ret_session, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
    }
    free(report_dir);
    return status;
}

static bp_cli_exit capture(const bp_cli_capture_options *options) {
    bugpack *session = NULL;
    pending_report *pending = NULL;
    bp_cli_exit result;
    bugpack_status status = BUGPACK_OK;
    if (bp_cli_check_session_file(options->session_path) != BUGPACK_OK) {
        return BP_CLI_FAILED;
    }
    pending = calloc(1, sizeof *pending);
    if (pending == NULL || pipe(pending->done_pipe) != 0) {
        bp_cli_say("cannot prepare a report: %s", strerror(errno));
        free(pending);
        return BP_CLI_FAILED;
    }
    status = open_session(options, &session);
    if (status == BUGPACK_OK && options->host) {
        status = provide_host(session, pending);
    }
    if (status == BUGPACK_OK) {
        const bp_cli_files files = {options->session_path, &options->logs, options->log_limit_bytes,
                                    &options->attachments, options->attach_limit_bytes};
        status = bp_cli_provide_files(session, "capture", &files);
    }
    if (status == BUGPACK_OK) {
        status = take_report(session, options, pending);
    }
    result =
        status == BUGPACK_OK ? print_result(&pending->result, options) : bp_cli_exit_of(status);
    bugpack_close(session);
    if (status == BUGPACK_ERR_CANCELLED) {
        (void)raise(pending->ended_by); /* whoever started us sees which signal it was */
    }
    (void)close(pending->done_pipe[0]);
    (void)close(pending->done_pipe[1]);
    free(pending);
    return result;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    bp_cli_capture_options options;
    bp_cli_capture_options_init(&options);
    bp_cli_exit result = BP_CLI_USAGE;
    if (bp_cli_capture_options_parse(&options, argument_count, arguments)) {
        result = options.help ? bp_cli_print(bp_cli_capture_help) : capture(&options);
    }
    bp_cli_capture_options_release(&options);
    return result;
}

const bp_cli_command bp_cli_capture_command = {
    "capture", "write a report about a process, or the machine", bp_cli_capture_help, run};
