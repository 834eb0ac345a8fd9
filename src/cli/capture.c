#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <bugpack/provide.h>
#include <bugpack/report.h>
#include <bugpack/session.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "cli/files.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/publish.h"
#include "probe/process_list.h"
#include "session/command.h"

/*
 * The processes that a command is about: --pid, --name, --unit, --cgroup and --children.
 */

/* How they are selected but by their ids, and how it is said that there are none. */
enum { BY_NAME, BY_UNIT, BY_CGROUP, TEXT_COUNT };
static const struct {
    bp_process_query_kind kind;
    const char *absence;
} text_kinds[TEXT_COUNT] = {[BY_NAME] = {BP_PROCESS_BY_NAME, "no process is called"},
                            [BY_UNIT] = {BP_PROCESS_BY_UNIT, "no process runs in the unit"},
                            [BY_CGROUP] = {BP_PROCESS_BY_CGROUP, "no process runs in the cgroup"}};

typedef struct pid_list {
    pid_t *items; /* owned */
    size_t count;
} pid_list;

typedef struct cli_selector {
    pid_list pids;
    const char *texts[TEXT_COUNT]; /* borrowed; NULL: not given */
    bool with_children;
} cli_selector;

/* What was selected, the first at the top of the report. */
typedef struct cli_targets {
    const pid_list *given; /* the ids, unless it is a search */
    bool is_search;        /* what was found may have ended */
    bp_process_list list;  /* of which `choice` is */
    bp_process_choice choice;
    size_t count;
} cli_targets;

/* As many as the library takes, each with its descriptors. */
enum { target_max = 256, descriptors_each = 8, title_bytes = 256 };

static bool read_pids(const bp_cli_option *option, const char *text, void *field) {
    pid_list *list = field;
    pid_t pid;
    if (!bp_cli_read_number(option, text, &pid)) {
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i] == pid) {
            return true;
        }
    }
    pid_t *items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (items == NULL) {
        return bp_cli_say_no_memory();
    }
    list->items = items;
    items[list->count++] = pid;
    return true;
}

static bool read_cgroup(const bp_cli_option *option, const char *text, void *field) {
    static const char mounted[] = "/sys/fs/cgroup/";
    bool is_mounted = strncmp(text, mounted, sizeof mounted - 1) == 0;
    if (text[0] != '/') {
        bp_cli_say_usage("--%s takes a path such as /system.slice, not '%s'", option->name, text);
        return false;
    }
    return bp_cli_read_text(option, is_mounted ? text + sizeof mounted - 2 : text, field);
}

/* Which text was given; TEXT_COUNT: none. */
static size_t find_text(const cli_selector *selector) {
    size_t at = 0;
    while (at < TEXT_COUNT && selector->texts[at] == NULL) {
        at++;
    }
    return at;
}

static int count_kinds(const cli_selector *selector) {
    int count = selector->pids.count > 0;
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        count += selector->texts[i] != NULL;
    }
    return count;
}

static bp_cli_exit say_none(const cli_selector *selector) {
    size_t at = find_text(selector);
    if (at < TEXT_COUNT) {
        bp_cli_say("%s '%s'", text_kinds[at].absence, selector->texts[at]);
    } else {
        bp_cli_say("no process %d", (int)selector->pids.items[0]);
    }
    return BP_CLI_NO_PROCESS;
}

/* The roots of all that was meant, so that one can be named. */
static bp_cli_exit say_choices(const cli_selector *selector, const bp_process_choice *choice) {
    const char *unit = selector->texts[BY_UNIT];
    char title[title_bytes];
    if (unit != NULL) {
        bp_cli_say("the unit '%s' runs in several cgroups: choose one with --cgroup", unit);
        (void)fprintf(stderr, "%10s  %s\n", "PID", "CGROUP");
    } else {
        bp_cli_say("'%s' is the name of %zu processes that are not one tree: choose one with --pid",
                   selector->texts[BY_NAME], choice->count);
        (void)fprintf(stderr, "%10s  %9s  %s\n", "PID", "PROCESSES", "COMMAND");
    }
    for (size_t i = 0; i < choice->count; i++) {
        const bp_listed_process *process = choice->items[i];
        if (unit != NULL) {
            bp_cli_escape(process->cgroup, title, sizeof title);
            (void)fprintf(stderr, "%10d  %s\n", (int)process->pid, title);
            continue;
        }
        bp_cli_escape(process->title != NULL ? process->title : process->name, title, sizeof title);
        (void)fprintf(stderr, "%10d  %9zu  %s\n", (int)process->pid, choice->member_counts[i],
                      title);
    }
    return BP_CLI_USAGE;
}

/* Many processes take many descriptors. Best effort: the library says where it has none left. */
static void reserve_descriptors(size_t process_count) {
    struct rlimit limit;
    rlim_t wanted = target_max + (rlim_t)process_count * descriptors_each;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur =
            limit.rlim_max == RLIM_INFINITY || wanted < limit.rlim_max ? wanted : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool search(const cli_selector *selector, cli_targets *targets, bp_cli_exit *ret_exit) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    size_t at = find_text(selector);
    const bp_process_query query = {.kind =
                                        at < TEXT_COUNT ? text_kinds[at].kind : BP_PROCESS_BY_PIDS,
                                    .text = at < TEXT_COUNT ? selector->texts[at] : NULL,
                                    .pids = selector->pids.items,
                                    .pid_count = selector->pids.count,
                                    .with_children = selector->with_children,
                                    .own_pid = getpid()};
    bugpack_status status =
        bp_process_list_read(-1, at == BY_UNIT || at == BY_CGROUP, &targets->list, &error);
    if (status == BUGPACK_OK) {
        status = bp_process_choose(&targets->list, &query, &targets->choice, &error);
    }
    targets->count = targets->choice.count;
    if (status != BUGPACK_OK) {
        *ret_exit = bp_cli_say_error(&error);
    } else if (targets->count == 0) {
        *ret_exit = say_none(selector);
    } else if (targets->choice.is_ambiguous) {
        *ret_exit = say_choices(selector, &targets->choice);
    } else {
        return true;
    }
    return false;
}

/* False after a failure that was reported, with the program's exit status. */
static bool fill(const cli_selector *selector, cli_targets *targets, bp_cli_exit *ret_exit) {
    if (targets->is_search && !search(selector, targets, ret_exit)) {
        return false;
    }
    if (targets->count > target_max) {
        *ret_exit = bp_cli_say_usage("%zu processes are meant, and a report has at most %d",
                                     targets->count, target_max);
        return false;
    }
    reserve_descriptors(targets->count);
    return true;
}

static void targets_release(cli_targets *targets) {
    bp_process_choice_release(&targets->choice);
    bp_process_list_release(&targets->list);
}

/* Whether the session is about the process that was found, and not about a later one of its id. */
static bool is_meant(const cli_targets *targets, size_t i) {
    return !targets->is_search || bp_process_list_is_there(targets->choice.items[i]);
}

static pid_t pid_of(const cli_targets *targets, size_t i) {
    return targets->is_search ? targets->choice.items[i]->pid : targets->given->items[i];
}

/*
 * Adds the targets to a session that is about the first. One that has ended since it was found is
 * left out. NO_PROCESS where a process is another now than when it was chosen, or one whose id was
 * given is not there. Reports a failure, but that only if `says_all`.
 */
static bugpack_status select_add(const cli_targets *targets, bugpack *session, bool says_all) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = is_meant(targets, 0) ? BUGPACK_OK : BUGPACK_ERR_NO_PROCESS;
    for (size_t i = 1; i < targets->count && status == BUGPACK_OK; i++) {
        status = bp_session_add_process(session, pid_of(targets, i), &error);
        if (status == BUGPACK_OK) {
            status = is_meant(targets, i) ? BUGPACK_OK : BUGPACK_ERR_NO_PROCESS;
        } else if (status == BUGPACK_ERR_NO_PROCESS && targets->is_search) {
            status = BUGPACK_OK;
        }
    }
    if (status == BUGPACK_ERR_NO_PROCESS && says_all && error.message[0] == '\0') {
        bp_cli_say("a process that was selected has ended");
    } else if (status != BUGPACK_OK && (status != BUGPACK_ERR_NO_PROCESS || says_all)) {
        bp_cli_say("%s", error.message);
    }
    return status;
}

/* Strings are borrowed from the command line; NULL: not given. */
typedef struct capture_options {
    cli_selector selector;
    bool host;           /* the whole machine */
    uint32_t window_ms;  /* no_window: the default */
    uint32_t timeout_ms; /* 0: none */
    bugpack_stacks stacks;
    bp_cli_files files;
    bool without_hostname; /* of --host */
    bp_cli_publish publish;
    const char *app_name;
    const char *description;
    const char *output_dir;
    const char *output_path;
    char *streamed_dir; /* of a zip for standard output; NULL: it is not for that */
    bool quiet;
    bool json;
} capture_options;

static bool read_stacks_choice(const bp_cli_option *option, const char *text, void *field) {
    static const char *const names[] = {"blocked", "all", "none", NULL};
    static const bugpack_stacks values[] = {BUGPACK_STACKS_BLOCKED, BUGPACK_STACKS_ALL,
                                            BUGPACK_STACKS_NONE};
    size_t index;
    if (!bp_cli_find_choice(option, text, names, &index)) {
        return false;
    }
    *(bugpack_stacks *)field = values[index];
    return true;
}

static const uint32_t no_window = UINT32_MAX;
static const uint32_t host_window_ms = 1000;

static const uint32_t input_timeout_ms = 10000;

/* How often what is selected is searched for, while processes come and go. */
enum { select_tries = 3 };

static const bp_cli_bounds timeouts = {"seconds", 0, UINT32_MAX / 1000u, 1000};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(capture_options, selector.pids, 0, "pid", "PID",
                 "the process to examine; repeatable, the first at the\ntop of the report",
                 read_pids, &bp_cli_pids),
    BP_CLI_VALUE(capture_options, selector.texts[BY_NAME], 0, "name", "NAME",
                 "the process of this name, with its workers", bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_VALUE(capture_options, selector.texts[BY_UNIT], 0, "unit", "UNIT",
                 "the processes of a systemd unit", bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_VALUE(capture_options, selector.texts[BY_CGROUP], 0, "cgroup", "PATH",
                 "the processes of a cgroup", read_cgroup, &bp_cli_some_text),
    BP_CLI_FLAG(capture_options, selector.with_children, 0, "children",
                "and all their descendants"),
    BP_CLI_FLAG(capture_options, host, 0, "host", "capture the whole machine instead"),
    BP_CLI_VALUE(capture_options, window_ms, 0, "window", "TIME",
                 "how long to measure, in milliseconds, or such as 5s\n(default 2s, of --host 1s, "
                 "at most 10min)",
                 bp_cli_read_time, &bp_cli_windows),
    BP_CLI_VALUE(capture_options, stacks, 0, "stacks", "WHICH",
                 "stacks of threads: blocked (default), all or none", read_stacks_choice, NULL),
    BP_CLI_FILE_OPTIONS(capture_options, files),
    BP_CLI_FLAG(capture_options, without_hostname, 0, "no-hostname",
                "do not name the machine, as --host does"),
    BP_CLI_STREAM_OPTIONS(capture_options, files),
    BP_CLI_REVIEW_OPTION(capture_options, publish),
    BP_CLI_ENCRYPT_OPTION(capture_options, publish),
    BP_CLI_VALUE(capture_options, app_name, 0, "app", "NAME",
                 "name the report after NAME, not after the process", bp_cli_read_text,
                 &bp_cli_app_names),
    BP_CLI_VALUE(capture_options, description, 0, "description", "TEXT", "what you saw",
                 bp_cli_read_text, &bp_cli_descriptions),
    BP_CLI_VALUE(capture_options, output_dir, 'o', "output-dir", "DIR",
                 "where to write the zip (default: current directory)", bp_cli_read_output_dir,
                 &bp_cli_some_text),
    BP_CLI_VALUE(capture_options, output_path, 0, "output", "FILE",
                 "write this file; if it exists, -2, -3, ... is added;\n- is standard output",
                 bp_cli_read_output, &bp_cli_some_text),
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
    int ended_by;       /* the signal that cancelled it; 0: none */
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

/* Triggers the report and waits until it is written or has failed. Reports a failure. */
static bugpack_status request_report(bugpack *session, capture_options *options,
                                     pending_report *pending) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.description = options->description;
    request.output_path = options->streamed_dir == NULL ? options->output_path : NULL;
    request.timeout_ms = options->timeout_ms;
    if (options->timeout_ms > 0) {
        options->publish.deadline_ns = bp_clock_monotonic_ns() + options->timeout_ms * BP_NS_PER_MS;
    }
    bugpack_status status = bugpack_report_async(session, &request, on_done, pending);
    if (status != BUGPACK_OK) {
        bp_cli_say("cannot take a report: %s", bugpack_status_name(status));
        return status;
    }
    bool show = !options->quiet && !options->json && bp_cli_is_terminal(STDERR_FILENO);
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
        (void)fputs("{\n  \"path\": ", stdout);
        bp_cli_print_json(result->path);
        (void)printf(",\n  \"complete\": %s,\n  \"missing\": %" PRIu32 ",\n  \"bytes\": %" PRIu64
                     "\n}\n",
                     complete ? "true" : "false", result->missing_count, result->zip_bytes);
    } else {
        (void)printf("%s\n", result->path);
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
static bugpack_status open_session(capture_options *options, pid_t pid, bool says_all,
                                   bugpack **ret_session) {
    char *report_dir = report_dir_new(options);
    if (report_dir == NULL) {
        bp_cli_say("cannot open a session: out of memory");
        return BUGPACK_ERR_NO_MEMORY;
    }
    bugpack_options session_options = BUGPACK_OPTIONS_INIT;
    session_options.app_name =
        options->host && options->app_name == NULL ? "host" : options->app_name;
    session_options.without_process = options->host;
    session_options.target_pid = pid;
    session_options.sample_window_ms = options->window_ms == 0 ? BUGPACK_OFF : options->window_ms;
    session_options.report_dir = report_dir;
    session_options.artefact_limit_bytes =
        BP_BUFFER_LIMIT_MAX; /* --log-limit and --attach-limit count */
    /* One report, and no history. */
    session_options.log_ring_bytes = BUGPACK_OFF64;
    session_options.traffic_budget_bytes = BUGPACK_OFF64;
    session_options.history_interval_ms = BUGPACK_OFF;
    session_options.recorder_in_memory = true;
    /* A person asked for this report: refuse nothing and remove nothing. */
    session_options.min_free_bytes = BUGPACK_OFF64;
    session_options.report_dir_max_count = BUGPACK_OFF;
    session_options.report_dir_max_bytes = BUGPACK_OFF64;
    session_options.stacks = options->stacks;
    session_options.system_flags = options->host ? 0 : BUGPACK_SYSTEM_RPM;
    session_options.before_publish = bp_cli_publish_call(&options->publish);
    session_options.before_publish_context = &options->publish;
    session_options.publish_suffix = bp_cli_publish_suffix(&options->publish);
    bp_cli_files_apply(&options->files, &session_options);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_open(&session_options, ret_session, &error);
    if (status != BUGPACK_OK && (says_all || status != BUGPACK_ERR_NO_PROCESS)) {
        bp_cli_say("%s", error.message);
    }
    free(report_dir);
    return status;
}

/* Opens a session about what was selected, and searches again where a process has ended in between.
 * Reports a failure. */
static bugpack_status open_selected(capture_options *options, bugpack **ret_session,
                                    bp_cli_exit *ret_exit) {
    const cli_selector *selector = &options->selector;
    bugpack_status status = BUGPACK_ERR_NO_PROCESS;
    bool is_search = selector->pids.count == 0 || selector->with_children;
    int tries = is_search ? select_tries : 1;
    while (status == BUGPACK_ERR_NO_PROCESS && tries-- > 0) {
        cli_targets targets = {
            .given = &selector->pids, .is_search = is_search, .count = selector->pids.count};
        if (!fill(selector, &targets, ret_exit)) {
            targets_release(&targets);
            return BUGPACK_ERR_INVALID;
        }
        status = open_session(options, pid_of(&targets, 0), tries == 0, ret_session);
        if (status == BUGPACK_OK) {
            status = select_add(&targets, *ret_session, tries == 0);
            if (status != BUGPACK_OK) {
                bugpack_close(*ret_session);
                *ret_session = NULL;
            }
        }
        targets_release(&targets);
    }
    *ret_exit = bp_cli_exit_of(status);
    return status;
}

static bp_cli_exit capture(capture_options *options) {
    bugpack *session = NULL;
    bp_cli_exit result;
    if (!bp_cli_files_check(&options->files, &result)) {
        return result;
    }
    if (bp_cli_is_streamed(options->output_path) &&
        (options->streamed_dir = bp_cli_streamed_begin(&result)) == NULL) {
        return result;
    }
    pending_report pending = {.ended_by = 0};
    if (pipe(pending.done_pipe) != 0) {
        bp_cli_say("cannot prepare a report: %s", strerror(errno));
        return BP_CLI_FAILED;
    }
    bugpack_status status = options->host ? open_session(options, 0, true, &session)
                                          : open_selected(options, &session, &result);
    if (status == BUGPACK_OK && options->host) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        const bp_machine_plan plan = {.on_progress = on_host_progress,
                                      .context = &pending.steps,
                                      .window_ms = options->window_ms};
        status = bp_session_add_machine(session, &plan, &error);
        if (status != BUGPACK_OK) {
            bp_cli_say("%s", error.message);
        }
    }
    if (status == BUGPACK_OK) {
        status = bp_cli_files_provide(&options->files, session);
    }
    if (status == BUGPACK_OK) {
        status = request_report(session, options, &pending);
    }
    if (session != NULL) {
        result =
            status == BUGPACK_OK ? print_result(&pending.result, options) : bp_cli_exit_of(status);
    }
    bugpack_close(session);
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
    int selected = count_kinds(&options->selector);
    if (selected > 1) {
        return "--pid, --name, --unit and --cgroup exclude each other";
    }
    if (options->selector.with_children && selected == 0) {
        return "--children needs --pid, --name, --unit or --cgroup";
    }
    if (options->host && selected > 0) {
        return "--host and --pid exclude each other";
    }
    if (!options->host && selected == 0) {
        return "option '--pid' is missing";
    }
    if (options->files.with_hostname && options->without_hostname) {
        return "--hostname and --no-hostname exclude each other";
    }
    if (options->output_dir != NULL && options->output_path != NULL) {
        return "--output-dir and --output exclude each other";
    }
    if (options->json && bp_cli_is_streamed(options->output_path)) {
        return "--json and --output - exclude each other";
    }
    return NULL;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    capture_options options = {.window_ms = no_window, .files = BP_CLI_FILES_INIT};
    options.files.input_timeout_ms = input_timeout_ms;
    bp_cli_exit result;
    if (bp_cli_read_options(&bp_cli_capture_command, argument_count, arguments, &options, NULL,
                            &result)) {
        const char *conflict = find_conflict(&options);
        options.files.with_hostname =
            options.files.with_hostname || (options.host && !options.without_hostname);
        if (options.window_ms == no_window) {
            options.window_ms = options.host ? host_window_ms : BUGPACK_SAMPLE_WINDOW_DEFAULT_MS;
        }
        if (conflict != NULL) {
            result = bp_cli_say_usage("%s", conflict);
        } else if (bp_cli_redaction_prepare(&options.files.redaction, &result) &&
                   bp_cli_publish_prepare(&options.publish, &result)) {
            result = capture(&options);
        }
    }
    bp_cli_files_release(&options.files);
    free(options.selector.pids.items);
    return result;
}

const bp_cli_command bp_cli_capture_command = {
    "capture",
    "write a report about a process, or the machine",
    "Usage: bugpack capture --pid PID [OPTION]...\n"
    "       bugpack capture --name NAME | --unit UNIT | --cgroup PATH [OPTION]...\n"
    "       bugpack capture --host [OPTION]...\n"
    "\n"
    "Write a report about running processes: what each and each of its threads cost\n"
    "over a window, what the system knows about them, and the files you name; or\n"
    "about every thread of every process on the machine. The path of the zip is\n"
    "printed.\n",
    option_rows,
    "BYTES may end in K, M or G.\n"
    "\n"
    "Exit status: 0 complete, 1 failed, 2 usage, 3 written but something is missing,\n"
    "4 no such process, 5 timed out.\n",
    0,
    run};
