#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/condition.h>
#include <bugpack/events.h>
#include <bugpack/log.h>
#include <bugpack/session.h>

#include "base/clock.h"
#include "cli/destination.h"
#include "cli/event.h"
#include "cli/files.h"
#include "cli/hand_over.h"
#include "cli/interrupt.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/publish.h"
#include "cli/select.h"
#include "model/condition.h"
#include "run/descriptor.h"
#include "run/follow.h"
#include "session/command.h"

enum { follow_max = 16 };
static const uint32_t history_interval_ms = 5000;

/* Strings are borrowed from the command line; NULL: not given. */
typedef struct watch_options {
    bp_cli_select select;
    struct watch_conditions {
        const char *texts[BUGPACK_CONDITIONS_MAX];
        size_t count;
        bool need_log;   /* for a condition, if there is one */
        bool search_log; /* there has to be one */
    } conditions;
    uint32_t report_max_count;
    uint32_t cooldown_ms;
    bugpack_stacks stacks;
    bp_cli_files files;
    const char *app_name;
    const char *output_dir;
    const char *send_to; /* a destination of the configuration */
    bool quiet;
    bool json;
} watch_options;

/* The monitor's news: a condition is true, or the process has ended. */
typedef struct notice {
    bool has_ended;
    bool has_report;
    uint64_t wall_ns;
    bp_condition_truth truth;
} notice;

typedef struct watch {
    watch_options *options;
    bugpack_session *session; /* NULL: there is no process now */
    bp_metadata_target target;
    int end_fd;
    int notice_pipe[2];
    bp_follow *follows[follow_max];
    size_t follow_count;
    bool has_conditions;    /* the session has them */
    bool has_searched;      /* and not found, or found one that has ended */
    bool has_ended;         /* the process */
    bool is_interrupted;    /* by a signal */
    uint64_t cool_until_ns; /* of reports about an earlier process of the name */
    uint32_t report_count, incomplete_count, failure_count;
} watch;

/* --- what is printed -------------------------------------------------------------------------- */

static void say_target(const watch *it) {
    if (it->options->json) {
        BP_CLI_PRINT_EVENT(stdout, it->has_ended ? "target-ended" : "target-found", 0,
                           {"pid", BP_CLI_NUMBER, NULL, (uint64_t)it->target.pid},
                           {"name", BP_CLI_TEXT, it->target.name, 0});
    } else if (!it->options->quiet) {
        bp_cli_say("%sprocess %d (%s)%s", it->has_ended ? "" : "watching ", (int)it->target.pid,
                   it->target.name, it->has_ended ? " has ended" : "");
    }
}

static void say_truth(const watch *it, const notice *found) {
    char value[BP_CONDITION_VALUE_BYTES];
    bp_condition_print_value(&found->truth, value);
    if (it->options->json) {
        BP_CLI_PRINT_EVENT(
            stdout, "true", found->wall_ns, {"condition", BP_CLI_TEXT, found->truth.text, 0},
            {"found", BP_CLI_TEXT, value, 0}, {"reported", BP_CLI_TRUTH, NULL, found->has_report});
    } else if (!it->options->quiet) {
        bp_cli_say("%s: %s%s", found->truth.text, value,
                   found->has_report ? "" : "; no report within the cool-down");
    }
}

static void say_report(watch *it, const bugpack_event *event) {
    bool is_written = event->kind == BUGPACK_EVENT_WRITTEN;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (it->options->json && is_written) {
        bp_cli_print_written(stdout, event->path, event->missing_count, NULL);
    } else if (it->options->json) {
        bp_cli_print_failed(stdout, "report-failed", NULL, event->error.message);
    } else if (is_written) {
        (void)printf("%s\n", event->path);
        (void)fflush(stdout);
    }
    if (!is_written) {
        bp_cli_say("no report: %s", event->error.message);
    } else if (bp_cli_hand_over(it->options->send_to, event->path, &error) != BUGPACK_OK) {
        bp_cli_say("%s: not sent: %s", event->path, error.message);
    }
}

/* --- what happens ----------------------------------------------------------------------------- */

/* A bp_condition_callback; NULL: the process has ended. Never waits: what does not fit into the
 * pipe is not said. */
static void on_truth(const bp_condition_truth *truth, bool has_report, void *context) {
    const watch *it = context;
    notice found = {
        .has_ended = truth == NULL, .has_report = has_report, .wall_ns = bp_clock_wall_ns()};
    if (truth != NULL) {
        found.truth = *truth;
    }
    ssize_t ignored = write(it->notice_pipe[1], &found, sizeof found);
    (void)ignored;
}

static void take_notices(watch *it) {
    notice found;
    while (read(it->notice_pipe[0], &found, sizeof found) == (ssize_t)sizeof found) {
        if (found.has_ended) {
            it->has_ended = true;
        } else {
            say_truth(it, &found);
        }
    }
}

static void take_events(watch *it) {
    bugpack_event event = BUGPACK_EVENT_INIT;
    while (it->session != NULL && bugpack_next_event(it->session, &event)) {
        bool is_written = event.kind == BUGPACK_EVENT_WRITTEN;
        if (is_written || (event.kind == BUGPACK_EVENT_FAILED && !it->is_interrupted)) {
            say_report(it, &event);
            it->report_count += is_written;
            it->incomplete_count += is_written && event.missing_count > 0;
            it->failure_count += !is_written;
            it->cool_until_ns =
                is_written ? bp_clock_monotonic_ns() + it->options->cooldown_ms * BP_NS_PER_MS
                           : it->cool_until_ns;
        }
    }
}

/* A bp_line_taker. */
static void take_line(void *context, const char *line, size_t line_bytes, unsigned part) {
    const watch *it = context;
    if (it->session != NULL) {
        bugpack_log_part(it->session, BUGPACK_LEVEL_INFO, "log", line, line_bytes, part);
    }
}

static void look_at_logs(watch *it) {
    for (size_t i = 0; i < it->follow_count; i++) {
        if (!bp_follow_look(it->follows[i])) {
            bp_cli_say("journalctl has ended: its lines are not seen any more");
            bp_follow_close(it->follows[i]);
            it->follows[i--] = it->follows[--it->follow_count];
        }
    }
}

/* Sleeps until something happens, or `until_ns`. */
static void wait_for_something(watch *it, uint64_t until_ns) {
    enum { look_ms = 250, fixed_count = 3 };
    struct pollfd waited[fixed_count + follow_max] = {
        {it->end_fd, POLLIN, 0},
        {it->notice_pipe[0], POLLIN, 0},
        {it->session != NULL ? bugpack_events_fd(it->session, NULL) : -1, POLLIN, 0}};
    for (size_t i = 0; i < it->follow_count; i++) {
        waited[fixed_count + i] = (struct pollfd){bp_follow_fd(it->follows[i]), POLLIN, 0};
        if (waited[fixed_count + i].fd < 0) {
            uint64_t look_ns = bp_clock_monotonic_ns() + look_ms * BP_NS_PER_MS;
            until_ns = look_ns < until_ns ? look_ns : until_ns;
        }
    }
    int ready = poll(waited, (nfds_t)(fixed_count + it->follow_count),
                     until_ns == UINT64_MAX ? -1 : bp_clock_poll_ms(until_ns));
    it->is_interrupted = it->is_interrupted || (ready > 0 && waited[0].revents != 0);
    look_at_logs(it);
    take_notices(it);
    take_events(it);
}

/* --- the session ------------------------------------------------------------------------------ */

static bool follow_one(watch *it, const char *path, const char *const *program) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_follow **follow = &it->follows[it->follow_count];
    if (it->follow_count == follow_max) {
        bp_cli_say_usage("more than %d logs cannot be followed", follow_max);
        return false;
    }
    bugpack_status status = path != NULL
                                ? bp_follow_file(path, take_line, it, follow, &error)
                                : bp_follow_program(program, take_line, it, follow, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return false;
    }
    it->follow_count++;
    return true;
}

/* The logs of --log and --journal; without any the journal of the unit. */
static bool follow_logs(watch *it) {
    const bp_cli_inputs *logs = &it->options->files.logs;
    const char *unit = it->options->select.texts[BP_CLI_BY_UNIT];
    const char *program[] = {"journalctl", "--follow", "--lines=0", "--output=cat",
                             "--unit",     NULL,       NULL};
    bool is_good = true;
    for (size_t i = 0; is_good && it->options->conditions.need_log && i < logs->count; i++) {
        program[5] = logs->items[i].source;
        is_good = follow_one(it, logs->items[i].is_journal ? NULL : logs->items[i].source, program);
    }
    if (is_good && it->options->conditions.need_log && logs->count == 0 && unit != NULL) {
        program[5] = unit;
        is_good = follow_one(it, NULL, program);
    }
    return is_good;
}

static bool add_conditions(watch *it) {
    const struct watch_conditions *conditions = &it->options->conditions;
    bugpack_error error = BUGPACK_ERROR_INIT;
    for (size_t i = 0; i < conditions->count; i++) {
        if (bugpack_condition_add(it->session, conditions->texts[i], &error) != BUGPACK_OK) {
            bp_cli_say("%s", error.message);
            return false;
        }
    }
    it->has_conditions = true;
    return true;
}

/* A bp_cli_opener. What a name, a unit or a cgroup means has workers, which count as one. */
static bugpack_status open_session(void *context, pid_t pid, bool says_all,
                                   bugpack_session **ret_session) {
    watch *it = context;
    const watch_options *given = it->options;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = given->app_name;
    options.report_dir = given->output_dir != NULL ? given->output_dir : ".";
    options.target_pid = pid;
    options.target_with_descendants = given->select.with_children || given->select.pids.count == 0;
    /* Else conditions do not need it, and a look at each thread is what a watch costs. */
    options.recorder.history_interval_ms =
        options.target_with_descendants ? 0 : history_interval_ms;
    options.recorder.traffic_budget_bytes = BUGPACK_OFF;
    options.recorder.log_ring_bytes = it->follow_count > 0 ? 0 : BUGPACK_OFF;
    options.recorder.is_in_memory = true;
    options.stacks = given->stacks;
    options.limits.condition_cap = given->report_max_count - it->report_count;
    options.limits.condition_cooldown_ms =
        given->cooldown_ms == 0 ? BUGPACK_OFF : given->cooldown_ms;
    options.limits.per_signature = BUGPACK_OFF; /* a person has asked for so many */
    options.before_publish = bp_cli_publish_call(false);
    bp_cli_files_apply(&given->files, &options);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_open(&options, ret_session, &error);
    if (status != BUGPACK_OK && (says_all || status != BUGPACK_ERR_NO_PROCESS)) {
        bp_cli_say("%s", error.message);
    }
    return status;
}

static bool may_wait_for_target(const watch *it) {
    return it->options->select.pids.count == 0;
}

/*
 * False: the watch is over, as `ret_exit` says. Without a session afterwards, there is no process
 * yet, or the next one of a name is there before the last one has gone.
 */
static bool find_target(watch *it, bp_cli_exit *ret_exit) {
    bool is_again = it->has_searched;
    it->has_searched = may_wait_for_target(it);
    bugpack_status status = bp_cli_select_open(&it->options->select, is_again, open_session, it,
                                               &it->session, ret_exit);
    bool is_absent = *ret_exit == BP_CLI_NO_PROCESS || (is_again && *ret_exit == BP_CLI_USAGE);
    if (status != BUGPACK_OK) {
        return is_absent && may_wait_for_target(it);
    }
    it->target = *bp_session_target(it->session);
    it->has_ended = it->has_conditions = false;
    (void)bugpack_events_fd(it->session, NULL); /* events wait from now on */
    bp_session_tell_conditions(it->session, on_truth, it);
    *ret_exit = BP_CLI_FAILED;
    if (bp_cli_files_provide(&it->options->files, it->session) != BUGPACK_OK) {
        return false;
    }
    say_target(it);
    return true;
}

/* The reports under way are written, unless somebody ends us. */
static void leave_target(watch *it) {
    if (it->session != NULL) {
        if (it->is_interrupted) {
            (void)bugpack_cancel(it->session, 0, NULL);
        }
        (void)bugpack_flush(it->session, UINT32_MAX, NULL);
        take_notices(it);
        take_events(it);
        bugpack_close(it->session);
        it->session = NULL;
    }
}

/* Also where nobody hears any more what is printed. */
static bool is_over(const watch *it) {
    return it->is_interrupted || it->report_count >= it->options->report_max_count ||
           ferror(stdout) != 0;
}

/* False: the watch is over, as `ret_exit` says. */
static bool watch_target(watch *it, bp_cli_exit *ret_exit) {
    uint64_t left_ns = 0;
    while (!is_over(it)) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (!it->has_conditions && now_ns >= it->cool_until_ns && !add_conditions(it)) {
            *ret_exit = BP_CLI_FAILED;
            return false;
        }
        /* The last lines of its log come a little later, and the monitor looks once a second. */
        if (it->has_ended && left_ns == 0) {
            left_ns = it->follow_count > 0 ? now_ns + 1500 * BP_NS_PER_MS : now_ns;
        }
        if (it->has_ended && now_ns >= left_ns) {
            return true;
        }
        uint64_t next_ns = it->has_conditions ? UINT64_MAX : it->cool_until_ns;
        wait_for_something(it, it->has_ended ? left_ns : next_ns);
    }
    return true;
}

static bp_cli_exit exit_of(const watch *it) {
    if (it->report_count == 0 && it->failure_count > 0) {
        return BP_CLI_FAILED;
    }
    if (it->report_count == 0 && it->has_ended) {
        return BP_CLI_NO_PROCESS;
    }
    return it->incomplete_count > 0 ? BP_CLI_INCOMPLETE : BP_CLI_COMPLETE;
}

static bp_cli_exit run_watch(watch *it) {
    bp_cli_exit result = BP_CLI_COMPLETE;
    bool goes_on = follow_logs(it);
    if (!goes_on) {
        return BP_CLI_FAILED;
    }
    if (it->options->json) {
        BP_CLI_PRINT_EVENT(stdout, "watching", 0,
                           {"conditions", BP_CLI_TEXTS, it->options->conditions.texts,
                            it->options->conditions.count});
    }
    while (goes_on && !is_over(it)) {
        goes_on = find_target(it, &result);
        if (goes_on && it->session == NULL) {
            wait_for_something(it, bp_clock_monotonic_ns() + BP_NS_PER_SEC);
            continue;
        }
        goes_on = goes_on && watch_target(it, &result);
        leave_target(it);
        if (goes_on && it->has_ended) {
            say_target(it);
            goes_on = may_wait_for_target(it);
            result = BP_CLI_COMPLETE;
            if (!goes_on) {
                result = exit_of(it);
                break;
            }
        }
    }
    if (goes_on) {
        it->has_ended = false; /* it was not the end of the watch */
        result = exit_of(it);
    }
    if (it->options->json) {
        BP_CLI_PRINT_EVENT(stdout, "done", 0, {"reports", BP_CLI_NUMBER, NULL, it->report_count});
    }
    bp_cli_exit output = bp_cli_finish_output();
    return output == BP_CLI_COMPLETE ? result : output;
}

static bp_cli_exit start(watch_options *options) {
    watch it = {.options = options, .end_fd = -1, .notice_pipe = {-1, -1}};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_cli_exit result;
    if (!bp_cli_files_check(&options->files, &result)) {
        return result;
    }
    if (options->output_dir == NULL && !bp_cli_check_current_dir()) {
        return BP_CLI_FAILED;
    }
    bugpack_status status = bp_cli_interrupt_catch(&it.end_fd, &error);
    if (status == BUGPACK_OK) {
        status = bp_descriptor_pipe(it.notice_pipe, &error);
    }
    if (status != BUGPACK_OK || !bp_descriptor_stop_blocking(it.notice_pipe[0]) ||
        !bp_descriptor_stop_blocking(it.notice_pipe[1])) {
        bp_cli_say("%s", status != BUGPACK_OK ? error.message : strerror(errno));
        return BP_CLI_FAILED;
    }
    result = run_watch(&it);
    for (size_t i = 0; i < it.follow_count; i++) {
        bp_follow_close(it.follows[i]);
    }
    bp_descriptor_close(&it.notice_pipe[0]);
    bp_descriptor_close(&it.notice_pipe[1]);
    return result;
}

/* --- the command line ------------------------------------------------------------------------- */

static bool read_condition(const bp_cli_option *option, const char *text, void *field) {
    struct watch_conditions *conditions = field;
    bp_condition *condition = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_condition_new(text, &condition, &error);
    if (status == BUGPACK_ERR_NO_MEMORY) {
        return bp_cli_say_no_memory();
    }
    if (status != BUGPACK_OK) {
        bp_cli_say_usage("--%s: %s", option->name, error.message);
        return false;
    }
    unsigned needs = bp_condition_needs(condition);
    conditions->need_log = conditions->need_log || (needs & BP_CONDITION_NEEDS_LOG) != 0;
    conditions->search_log = conditions->search_log || needs == BP_CONDITION_NEEDS_LOG;
    bp_condition_free(condition);
    if (conditions->count == BUGPACK_CONDITIONS_MAX) {
        bp_cli_say_usage("--%s can be given %d times", option->name, BUGPACK_CONDITIONS_MAX);
        return false;
    }
    conditions->texts[conditions->count++] = text;
    return true;
}

static const bp_cli_bounds counts = {"a number", 1, 1000000, 1};
static const bp_cli_bounds times = {"seconds", 0, UINT32_MAX / 1000u, 1000};

static const bp_cli_option option_rows[] = {
    BP_CLI_SELECT_OPTIONS(watch_options, select),
    BP_CLI_VALUE(watch_options, conditions, 0, "when", "CONDITION",
                 "what leads to a report, such as 'cpu > 90 for 10s';\nrepeatable", read_condition,
                 NULL),
    BP_CLI_VALUE(watch_options, report_max_count, 0, "max", "N",
                 "end after so many reports (default 3)", bp_cli_read_number, &counts),
    BP_CLI_VALUE(watch_options, cooldown_ms, 0, "cooldown", "TIME",
                 "no further report for so long, in seconds, or such\nas 1h (default 5min)",
                 bp_cli_read_time, &times),
    BP_CLI_CHOICE(watch_options, stacks, "stacks", "WHICH",
                  "stacks of threads: blocked (default), all or none", bp_cli_stacks),
    BP_CLI_FILE_OPTIONS(watch_options, files),
    BP_CLI_STREAM_OPTIONS(watch_options, files),
    BP_CLI_VALUE(watch_options, app_name, 0, "app", "NAME",
                 "name the reports after NAME, not after the process", bp_cli_read_text,
                 &bp_cli_app_names),
    BP_CLI_VALUE(watch_options, output_dir, 'o', "output-dir", "DIR",
                 "where to write the zips (default: current directory)", bp_cli_read_output_dir,
                 &bp_cli_some_text),
    BP_CLI_SEND_OPTION(watch_options, send_to),
    BP_CLI_FLAG(watch_options, quiet, 'q', "quiet", "print only errors and the paths of reports"),
    BP_CLI_FLAG(watch_options, json, 0, "json", "print each event as a JSON object in a line"),
    BP_CLI_OPTIONS_END};

/* The conflict between options. NULL: none. */
static const char *find_conflict(const watch_options *options) {
    const char *conflict = bp_cli_select_conflict(&options->select);
    bool has_log = options->files.logs.count > 0 || options->select.texts[BP_CLI_BY_UNIT] != NULL;
    if (conflict != NULL) {
        return conflict;
    }
    if (bp_cli_select_kinds(&options->select) == 0) {
        return "a target is missing: --pid, --name, --unit or --cgroup";
    }
    if (options->conditions.count == 0) {
        return "option '--when' is missing";
    }
    return options->conditions.search_log && !has_log
               ? "a condition about the log needs --log FILE, --journal UNIT or --unit"
               : NULL;
}

static const watch_options defaults = {
    .report_max_count = 3, .cooldown_ms = 5 * 60 * 1000, .files = BP_CLI_FILES_INIT(10000)};

static bp_cli_exit run(void *context, char **none) {
    watch_options *options = context;
    const char *conflict = find_conflict(options);
    bp_cli_exit result;
    (void)none;
    if (conflict != NULL) {
        return bp_cli_say_usage("%s", conflict);
    }
    bool is_ready = bp_cli_redaction_prepare(&options->files.redaction, &result) &&
                    bp_cli_hand_over_prepare(options->send_to, &result);
    return is_ready ? start(options) : result;
}

const bp_cli_command bp_cli_watch_command = {
    "watch",
    "wait for a condition of a process, then capture",
    "Usage: bugpack watch --pid PID --when CONDITION [OPTION]...\n"
    "       bugpack watch --name NAME | --unit UNIT | --cgroup PATH --when CONDITION\n"
    "                     [OPTION]...\n"
    "\n"
    "Write a report about a running process when a condition becomes true, with what\n"
    "it cost in the minutes before. The paths of the zips are printed. A process that\n"
    "is selected by name, unit or cgroup is waited for, also after it has ended.\n"
    "\n"
    "Conditions: 'cpu > 90 for 10s' (per cent of one CPU), 'rss > 2G',\n"
    "'rss grows 100M in 1min', 'threads > 500', 'fds > 900', 'state = D for 30s',\n"
    "'idle for 1min', 'log /PATTERN/'; bugpack-watch(1) describes them.\n",
    option_rows,
    "BYTES may end in K, M or G.\n"
    "\n"
    "Exit status: 0 complete, 1 failed, 2 usage, 3 written but something is missing,\n"
    "4 no such process, or it ended before a condition was true.\n",
    0,
    .run = run,
    .options_bytes = sizeof(watch_options),
    .defaults = &defaults};
