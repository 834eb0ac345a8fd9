#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include <bugpack/report.h>
#include <bugpack/session.h>

#include "base/buffer.h"
#include "base/status.h"
#include "cli/capture.h"
#include "cli/core.h"
#include "cli/destination.h"
#include "cli/files.h"
#include "cli/hand_over.h"
#include "cli/interrupt.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/publish.h"
#include "cli/review.h"
#include "cli/select.h"
#include "run/aside.h"
#include "session/command.h"

/* Strings are borrowed from the command line; NULL: not given. */
typedef struct capture_options {
    bp_cli_select select;
    bp_cli_core core;
    bool host;           /* the whole machine */
    bool may_stop;       /* with `host`: threads, for the counters of a jemalloc */
    uint32_t window_ms;  /* no_window: the default */
    uint32_t timeout_ms; /* 0: none */
    bugpack_stacks stacks;
    bp_cli_files files;
    bool without_hostname; /* of --host */
    bool is_reviewed;
    const char *app_name;
    const char *description;
    const char *output_dir;
    const char *send_to; /* a destination of the configuration */
    const char *output_path;
    char *streamed_dir; /* of a zip for standard output; NULL: it is not for that */
    bool quiet;
    bool json;
    bool is_read; /* by the command that asked for it; no path is printed */
    bool is_kept; /* with `is_read`: the zip gets its name, too */
    int read_fd;  /* with `is_read`: the zip; -1: there is none yet */
} capture_options;

#define no_window UINT32_MAX
static const uint32_t host_window_ms = 1000;

static const bp_cli_bounds timeouts = {"seconds", 0, UINT32_MAX / 1000u, 1000};

static const bp_cli_option option_rows[] = {
    BP_CLI_SELECT_OPTIONS(capture_options, select),
    BP_CLI_FLAG(capture_options, host, 0, "host", "capture the whole machine instead"),
    BP_CLI_CORE_OPTIONS(capture_options, core),
    BP_CLI_FLAG(capture_options, may_stop, 0, "stop-threads",
                "with --host: stop a thread for an instant if only\nthat shows what it allocates"),
    BP_CLI_VALUE(capture_options, window_ms, 0, "window", "TIME",
                 "how long to measure, in seconds, or such as 500ms\n(default 2s, with --host "
                 "1s; at most 10min)",
                 bp_cli_read_time, &bp_cli_windows),
    BP_CLI_CHOICE(capture_options, stacks, "stacks", "WHICH",
                  "stacks of threads: blocked (default), all or none", bp_cli_stacks),
    BP_CLI_FILE_OPTIONS(capture_options, files),
    BP_CLI_FLAG(capture_options, without_hostname, 0, "no-hostname",
                "do not name the machine; --host does by default"),
    BP_CLI_STREAM_OPTIONS(capture_options, files),
    BP_CLI_REVIEW_OPTION(capture_options, is_reviewed),
    BP_CLI_SEND_OPTION(capture_options, send_to),
    BP_CLI_VALUE(capture_options, app_name, 0, "app", "NAME",
                 "name the report after NAME, not after the process", bp_cli_read_text,
                 &bp_cli_app_names),
    BP_CLI_VALUE(capture_options, description, 0, "description", "TEXT", "what you saw",
                 bp_cli_read_text, &bp_cli_descriptions),
    BP_CLI_VALUE(capture_options, output_dir, 'o', "output-dir", "DIR",
                 "where to write the zip (default: current directory)", bp_cli_read_output_dir,
                 &bp_cli_some_text),
    BP_CLI_OUTPUT_OPTION(capture_options, output_path, 0),
    BP_CLI_VALUE(capture_options, timeout_ms, 0, "timeout", "TIME",
                 "give up after this time, in seconds, or such as\n500ms (default 0: never)",
                 bp_cli_read_time, &timeouts),
    BP_CLI_FLAG(capture_options, quiet, 'q', "quiet", "no progress and no warnings"),
    BP_CLI_FLAG(capture_options, json, 0, "json", "print a JSON object instead of the path"),
    BP_CLI_OPTIONS_END};

/* A report being written: the worker fills the result, then writes one byte to the pipe. */
typedef struct pending_report {
    bugpack_report_result result;
    int done_pipe[2];
    int ended_by; /* the signal that cancelled it; 0: none */
} pending_report;

static void on_done(const bugpack_report_result *result, void *context) {
    pending_report *pending = context;
    pending->result = *result;
    ssize_t written;
    do {
        written = write(pending->done_pipe[1], "", 1);
    } while (written < 0 && errno == EINTR);
}

/* A bugpack_before_publish_callback: gives the zip to the command that asked for it. A zip that is
 * not kept gets no name. */
static bugpack_status give_zip(const bugpack_unpublished *report, void *context,
                               bugpack_error *error) {
    capture_options *options = context;
    bugpack_before_publish_callback *publish = bp_cli_publish_call(false);
    options->read_fd = fcntl(report->zip_fd, F_DUPFD_CLOEXEC, 0);
    if (options->read_fd < 0) {
        return bp_fail_errno(error, errno, "cannot read the report");
    }
    if (!options->is_kept) {
        return BUGPACK_ERR_CANCELLED;
    }
    return publish != NULL ? publish(report, NULL, error) : BUGPACK_OK;
}

/* Triggers the report and waits until it is written or has failed. Reports a failure. */
static bugpack_status request_report(bugpack_session *session, capture_options *options,
                                     pending_report *pending) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = options->description;
    request.output_path = options->streamed_dir == NULL ? options->output_path : NULL;
    request.timeout_ms = options->timeout_ms;
    bool is_of_core = bp_cli_core_is_given(&options->core);
    bp_target_end end = {.crash = NULL};
    if (is_of_core) {
        end = bp_cli_core_end(&options->core);
    }
    bugpack_status status =
        bp_session_report(session, &request, is_of_core ? &end : NULL, on_done, pending, NULL);
    if (status != BUGPACK_OK) {
        bp_cli_say("cannot take a report: %s", bugpack_status_name(status));
        return status;
    }
    if (!options->quiet && !options->json && !is_of_core && isatty(STDERR_FILENO) == 1) {
        bp_cli_say("measuring for %.1f s", options->window_ms / 1000.0);
    }
    pending->ended_by = bp_cli_interrupt_wait(pending->done_pipe);
    if (pending->ended_by != 0) {
        (void)bugpack_cancel(session, 0, NULL); /* INVALID when it has just ended */
        char byte;
        do { /* two signals may have come */
            while (read(pending->done_pipe[0], &byte, 1) < 0 && errno == EINTR) {}
        } while (byte == BP_CLI_SIGNAL_BYTE);
    }
    bool is_cancelled = pending->result.status == BUGPACK_ERR_CANCELLED;
    if (is_cancelled && pending->ended_by == 0 && options->is_read && options->read_fd >= 0) {
        return BUGPACK_OK; /* give_zip has refused its publication */
    }
    if (pending->result.status != BUGPACK_OK && !(is_cancelled && pending->ended_by != 0)) {
        bp_cli_say("%s", pending->result.error.message);
    }
    return pending->result.status;
}

/* `missing` has a line per missing artefact, as many whole lines as fit. */
static void warn_of_missing(const bugpack_report_result *result) {
    uint32_t shown = 0;
    for (const char *line = result->missing; *line != '\0'; shown++) {
        size_t length = strcspn(line, "\n");
        bp_cli_say("the report is incomplete: %.*s", (int)length, line);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    if (shown < result->missing_count) {
        bp_cli_say("the report is incomplete: manifest.json names %" PRIu32 " more",
                   result->missing_count - shown);
    }
}

/* Prints the path, or a JSON object with it. */
static bp_cli_exit print_result(const bugpack_report_result *result,
                                const capture_options *options) {
    bool complete = result->missing_count == 0;
    if (options->is_read) {
        if (options->is_kept) {
            bp_cli_say("the report is written: %s", result->path);
        }
        return BP_CLI_COMPLETE;
    }
    if (!complete && !options->quiet) {
        warn_of_missing(result);
    }
    if (!options->quiet) {
        bp_cli_say_unsearched(result);
    }
    if (options->streamed_dir != NULL) {
        return complete ? BP_CLI_COMPLETE : BP_CLI_INCOMPLETE;
    }
    if (options->json) {
        bp_buffer text;
        bp_json json;
        bp_buffer_init(&text, BP_CLI_JSON_BYTES);
        bp_json_begin(&json, &text);
        bp_json_add_text(&json, "path", result->path);
        bp_json_add_bool(&json, "complete", complete);
        bp_json_add_uint(&json, "missing", result->missing_count);
        bp_json_add_uint(&json, "bytes", result->zip_bytes);
        bp_cli_print_json(stdout, &json);
    } else {
        (void)printf("%s\n", result->path);
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_cli_hand_over(options->send_to, result->path, &error) != BUGPACK_OK) {
        bp_cli_say("the report is written, but not sent: %s", error.message);
        return BP_CLI_FAILED;
    }
    return bp_cli_finish_report(result->path, result->missing_count);
}

/*
 * The directory that the session opens: with --output its directory, so that the report does not
 * depend on the current one. Owned; NULL without memory.
 */
static char *report_dir_new(const capture_options *options) {
    if (options->streamed_dir != NULL) {
        return strdup(options->streamed_dir);
    }
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

/* Reports a failure, but that there is no process only if `says_all`. */
static bugpack_status open_session(void *context, pid_t pid, bool says_all,
                                   bugpack_session **ret_session) {
    capture_options *options = context;
    char *report_dir = report_dir_new(options);
    if (report_dir == NULL) {
        bp_cli_say("cannot open a session: out of memory");
        return BUGPACK_ERR_NO_MEMORY;
    }
    bugpack_options session_options = BUGPACK_OPTIONS_INIT;
    bool is_of_core = bp_cli_core_is_given(&options->core);
    session_options.app_name = options->app_name;
    if (options->app_name == NULL && is_of_core) {
        const char *name = options->core.file.name;
        session_options.app_name = name[0] != '\0' ? name : "process";
    } else if (options->app_name == NULL && options->host) {
        session_options.app_name = "host";
    }
    session_options.without_process = options->host || is_of_core;
    session_options.target_pid = pid;
    session_options.sample_window_ms = options->window_ms == 0 ? BUGPACK_OFF : options->window_ms;
    session_options.report_dir = report_dir;
    session_options.limits.artefact_bytes =
        BP_BUFFER_LIMIT_MAX; /* --log-limit and --attach-limit count */
    /* One report, and no history. */
    session_options.recorder.log_ring_bytes = BUGPACK_OFF;
    session_options.recorder.traffic_budget_bytes = BUGPACK_OFF;
    session_options.recorder.history_interval_ms = BUGPACK_OFF;
    session_options.recorder.is_in_memory = true;
    /* A person asked for this report: refuse nothing and remove nothing. */
    session_options.limits.min_free_bytes = BUGPACK_OFF;
    session_options.limits.report_dir_max_count = BUGPACK_OFF;
    session_options.limits.report_dir_max_bytes = BUGPACK_OFF;
    session_options.stacks = options->stacks;
    session_options.before_publish =
        options->is_read ? give_zip : bp_cli_publish_call(options->is_reviewed);
    session_options.before_publish_context = options;
    bp_cli_files_apply(&options->files, &session_options);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_open(&session_options, ret_session, &error);
    if (status != BUGPACK_OK && (says_all || status != BUGPACK_ERR_NO_PROCESS)) {
        bp_cli_say("%s", error.message);
    }
    free(report_dir);
    return status;
}

static bp_cli_exit capture(capture_options *options) {
    bugpack_session *session = NULL;
    bp_cli_exit result;
    if (!bp_cli_files_check(&options->files, &result)) {
        return result;
    }
    if (options->output_dir == NULL && options->output_path == NULL &&
        !bp_cli_check_current_dir()) {
        return BP_CLI_FAILED;
    }
    if (bp_cli_is_streamed(options->output_path) &&
        (options->streamed_dir = bp_cli_streamed_begin(&result)) == NULL) {
        return result;
    }
    pending_report pending = {.ended_by = 0};
    if (pipe(pending.done_pipe) != 0) {
        bp_cli_say("cannot prepare a report: %s", strerror(errno));
        (void)bp_cli_streamed_end(options->streamed_dir, NULL);
        return BP_CLI_FAILED;
    }
    bool is_of_core = bp_cli_core_is_given(&options->core);
    bugpack_status status = is_of_core ? bp_cli_core_read(&options->core) : BUGPACK_OK;
    if (status != BUGPACK_OK) {
        result = BP_CLI_FAILED;
    } else if (options->host || is_of_core) {
        status = open_session(options, 0, true, &session);
    } else {
        status =
            bp_cli_select_open(&options->select, false, open_session, options, &session, &result);
    }
    if (status == BUGPACK_OK && options->host) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        const bp_machine_plan plan = {.may_stop = options->may_stop,
                                      .window_ms = options->window_ms};
        status = bp_session_add_machine(session, &plan, &error);
        if (status != BUGPACK_OK) {
            bp_cli_say("%s", error.message);
        }
    }
    if (status == BUGPACK_OK && is_of_core) {
        status = bp_cli_core_provide(&options->core, session);
    }
    if (status == BUGPACK_OK) {
        status = bp_cli_files_provide(&options->files, session);
    }
    if (status == BUGPACK_OK) {
        bp_session_unwind_aside(session, bp_run_aside);
        status = request_report(session, options, &pending);
    }
    if (session != NULL) {
        result =
            status == BUGPACK_OK ? print_result(&pending.result, options) : bp_cli_exit_of(status);
    }
    bugpack_close(session);
    bp_core_file_release(&options->core.file);
    if (!bp_cli_streamed_end(
            options->streamed_dir,
            status == BUGPACK_OK && options->streamed_dir != NULL ? pending.result.path : NULL)) {
        result = BP_CLI_FAILED;
    }
    if (status == BUGPACK_ERR_CANCELLED && pending.ended_by != 0) {
        bp_cli_say("interrupted; nothing was written");
        (void)raise(pending.ended_by); /* our parent sees which signal it was */
    }
    (void)close(pending.done_pipe[0]);
    (void)close(pending.done_pipe[1]);
    return result;
}

/* Options that exclude each other. NULL: none do. */
static const char *find_conflict(const capture_options *options) {
    int selected = bp_cli_select_kinds(&options->select);
    const char *conflict = bp_cli_select_conflict(&options->select);
    if (conflict != NULL) {
        return conflict;
    }
    if ((options->core.path != NULL) + (options->core.match != NULL) + options->host +
            (selected > 0) >
        1) {
        return "--pid, --name, --unit, --cgroup, --core, --coredump and --host exclude each other";
    }
    if (options->core.exe != NULL && !bp_cli_core_is_given(&options->core)) {
        return "--exe needs --core or --coredump";
    }
    if (options->may_stop && !options->host) {
        return "--stop-threads needs --host";
    }
    if (!options->host && selected == 0 && !bp_cli_core_is_given(&options->core)) {
        return "a target is missing: --pid, --name, --unit, --cgroup, --core or --host";
    }
    if (options->files.with_hostname && options->without_hostname) {
        return "--hostname and --no-hostname exclude each other";
    }
    if (options->output_dir != NULL && options->output_path != NULL) {
        return "--output-dir and --output exclude each other";
    }
    if (options->send_to != NULL && bp_cli_is_streamed(options->output_path)) {
        return "--send and --output - exclude each other";
    }
    if (options->json && bp_cli_is_streamed(options->output_path)) {
        return "--json and --output - exclude each other";
    }
    return NULL;
}

static const capture_options defaults = {.window_ms = no_window, .files = BP_CLI_FILES_INIT(10000)};

/* A directory in memory, where there is one. */
static const char *memory_dir(void) {
    static const char shared_memory[] = "/dev/shm";
    const char *temporary = getenv("TMPDIR");
    if (access(shared_memory, W_OK | X_OK) == 0) {
        return shared_memory;
    }
    return temporary != NULL && temporary[0] == '/' ? temporary : "/tmp";
}

int bp_cli_capture_zip(const bp_cli_zip_request *request, bp_cli_exit *ret_exit) {
    capture_options options = defaults;
    options.select = request->select;
    options.window_ms = request->window_ms;
    options.is_read = true;
    options.is_kept = request->is_kept;
    options.output_dir = request->is_kept ? request->output_dir : memory_dir();
    options.read_fd = -1;
    *ret_exit = capture(&options);
    return options.read_fd;
}

static bp_cli_exit run(void *context, char **none) {
    capture_options *options = context;
    const char *conflict = find_conflict(options);
    bp_cli_exit result;
    (void)none;
    if (conflict != NULL) {
        return bp_cli_say_usage("%s", conflict);
    }
    options->files.with_hostname =
        options->files.with_hostname || (options->host && !options->without_hostname);
    if (options->window_ms == no_window) {
        options->window_ms = options->host ? host_window_ms : BUGPACK_SAMPLE_WINDOW_DEFAULT_MS;
    }
    return bp_cli_redaction_prepare(&options->files.redaction, &result) &&
                   bp_cli_review_prepare(options->is_reviewed, &result) &&
                   bp_cli_hand_over_prepare(options->send_to, &result)
               ? capture(options)
               : result;
}

const bp_cli_command bp_cli_capture_command = {
    "capture",
    "write a report about a process, or the machine",
    "Usage: bugpack capture --pid PID [OPTION]...\n"
    "       bugpack capture --name NAME | --unit UNIT | --cgroup PATH [OPTION]...\n"
    "       bugpack capture --core FILE | --coredump MATCH [--exe FILE] [OPTION]...\n"
    "       bugpack capture --host [OPTION]...\n"
    "\n"
    "Write a report about running processes: what they and their threads cost over a\n"
    "window, what the system knows about them, and the files you name; or about every\n"
    "thread of every process on the machine; or about how a process died, from its\n"
    "core. The path of the zip is printed.\n",
    option_rows,
    "BYTES may end in K, M or G.\n"
    "\n"
    "Exit status: 0 complete, 1 failed, 2 usage, 3 written but something is missing,\n"
    "4 no such process, 5 timed out.\n",
    0,
    .run = run,
    .options_bytes = sizeof(capture_options),
    .defaults = &defaults};
