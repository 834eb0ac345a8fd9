#include <stdio.h>

#include <bugpack/heap_state.h>

#include "base/file.h"
#include "base/status.h"
#include "cli/interrupt.h"
#include "cli/option.h"
#include "cli/output.h"
#include "entries/report_file.h"
#include "heap/thread_heap.h"
#include "model/heap_state.h"

typedef struct heap_options {
    pid_t pid;
    uint32_t snapshot_count;
    uint32_t interval_ms;
    bool as_json;
    bool of_state;
} heap_options;

static const bp_cli_bounds snapshots = {"a number", 1, 100000, 1};
static const bp_cli_bounds intervals = {"seconds", 0, 600, 1000};

static const size_t counters_limit_bytes = (size_t)256 << 20;

static const bp_cli_option option_rows[] = {
    BP_CLI_PID(heap_options),
    BP_CLI_VALUE(heap_options, snapshot_count, 0, "snapshots", "N",
                 "how many snapshots (default 1, at most 100000); SIGINT\n"
                 "ends earlier, with what was read so far",
                 bp_cli_read_number, &snapshots),
    BP_CLI_VALUE(
        heap_options, interval_ms, 0, "interval", "TIME",
        "time between snapshots, in seconds, or such as 500ms\n(default 1s, at most 10min)",
        bp_cli_read_time, &intervals),
    BP_CLI_FLAG(heap_options, of_state, 0, "state",
                "print the heap-state.json of a file or a report"),
    BP_CLI_FLAG(heap_options, as_json, 0, "json",
                "JSON instead of text: the thread-heap.json of a\n"
                "report, with --state its heap-state.json"),
    BP_CLI_OPTIONS_END};

static bp_cli_exit judge(const bp_thread_heap_reading *reading) {
    size_t unread_count = bp_thread_heap_unread_count(reading);
    if (reading->failure != BP_HEAP_FAILURE_NONE) {
        bool is_absence = bp_heap_failure_is_absence(reading->failure, reading->system_errno);
        bp_cli_say("no counters: %s: %s", bp_heap_failure_name(reading->failure), reading->reason);
        return is_absence ? BP_CLI_COMPLETE : BP_CLI_FAILED;
    }
    if (unread_count > 0) {
        bp_cli_say("%zu thread%s could not be read", unread_count, unread_count == 1 ? "" : "s");
        return BP_CLI_INCOMPLETE;
    }
    return BP_CLI_COMPLETE;
}

static bugpack_status read_heap(const heap_options *given, bp_thread_heap_reading *ret_reading,
                                bugpack_error *error) {
    bp_heap_prober *prober = NULL;
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_plan plan = {given->snapshot_count, given->interval_ms, -1};
    options.calibrator_path = BP_CLI_OWN_PATH;
    bugpack_status status = bp_cli_interrupt_catch(&plan.stop_fd, error);
    if (status == BUGPACK_OK) {
        status = bp_heap_prober_new(&options, &prober, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_heap_probe(prober, given->pid, &plan, ret_reading, error);
    }
    bp_heap_prober_free(prober);
    if (status == BUGPACK_OK && ret_reading->failure == BP_HEAP_FAILURE_PID_MISSING) {
        status = bp_fail(error, BUGPACK_ERR_NO_PROCESS, "%s", ret_reading->reason);
    }
    return status;
}

static bp_cli_exit print_heap(const heap_options *given) {
    bp_buffer text;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_thread_heap_reading reading = {.pid = 0};
    bp_cli_exit result;
    bp_buffer_init(&text, counters_limit_bytes);
    bugpack_status status = read_heap(given, &reading, &error);
    if (status == BUGPACK_OK) {
        status = given->as_json ? bp_thread_heap_print(&reading, 1, &text, &error)
                                : bp_thread_heap_print_text(&reading, &text, &error);
    }
    if (status != BUGPACK_OK) {
        result = bp_cli_say_error(&error);
    } else {
        (void)fwrite(bp_buffer_text(&text), 1, text.size, stdout);
        result = bp_cli_finish_output() == BP_CLI_COMPLETE ? judge(&reading) : BP_CLI_FAILED;
    }
    bp_buffer_release(&text);
    bp_thread_heap_reading_release(&reading);
    return result;
}

/* The heap-state.json of a report, or one by itself. */
static bugpack_status read_state(const char *path, bugpack_heap_state *ret_state,
                                 bugpack_error *error) {
    static const char name[] = "heap-state.json";
    bp_report_file *report = NULL;
    bp_buffer text;
    int fd;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_report_file_open_or_plain(path, &report, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_buffer_init(&text, (size_t)1 << 20);
    if (report == NULL) {
        status = bp_file_read_fd(fd, path, &text, error);
    } else if (bp_report_file_has(report, name, NULL)) {
        status = bp_report_file_read(report, name, &text, error);
    } else {
        const bp_json_tree *line = bp_report_file_line(report, name);
        const char *why = bp_json_tree_text_or(line, "status", "");
        const char *reason = bp_json_tree_text_or(line, "reason", "");
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "no %s in \"%s\"%s%s%s%s", name, path,
                         why[0] != '\0' ? ": " : "", why, reason[0] != '\0' ? ": " : "", reason);
    }
    if (status == BUGPACK_OK) {
        status = bp_heap_state_parse(bp_buffer_text(&text), text.size, ret_state, &detail);
        status = status == BUGPACK_OK
                     ? status
                     : bp_fail(error, status, "%s of \"%s\": %s", name, path, detail.message);
    }
    bp_buffer_release(&text);
    if (report == NULL) {
        bp_file_close(fd);
    }
    bp_report_file_close(report);
    return status;
}

static bp_cli_exit print_state(const char *path, bool as_json) {
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer text;
    bp_buffer_init(&text, SIZE_MAX / 4);
    bugpack_status status = read_state(path, &state, &error);
    if (status == BUGPACK_OK && as_json && state.allocator[0] == '\0') {
        status = bp_fail(&error, BUGPACK_ERR_CORRUPT,
                         "\"%s\" names no allocator, which its JSON needs", path);
    } else if (status == BUGPACK_OK && as_json) {
        status = bp_heap_state_print(&state, &text, &error);
    } else if (status == BUGPACK_OK && bp_heap_state_text(&state, &text) != BUGPACK_OK) {
        status = bp_fail_memory(&error, "print the state of the heap");
    }
    (void)fputs(bp_buffer_text(&text), stdout);
    bp_buffer_release(&text);
    return status == BUGPACK_OK ? bp_cli_finish_output() : bp_cli_say_failed(&error);
}

static const heap_options defaults = {.snapshot_count = 1, .interval_ms = 1000};

static bp_cli_exit run(void *context, char **operands) {
    const heap_options *options = context;
    if (options->of_state) {
        if (options->pid != 0) {
            return bp_cli_say_usage("--state and --pid exclude each other");
        }
        return print_state(operands[0] != NULL ? operands[0] : "-", options->as_json);
    }
    if (operands[0] != NULL) {
        return bp_cli_say_usage("unexpected argument '%s'", operands[0]);
    }
    if (options->pid == 0) {
        return bp_cli_say_usage("option '--pid' is missing");
    }
    return print_heap(options);
}

const bp_cli_command bp_cli_heap_command = {
    "heap",
    "print what the threads of a jemalloc process allocated",
    "Usage: bugpack heap --pid PID [--snapshots N] [--interval TIME] [--json]\n"
    "       bugpack heap --state [--json] [FILE|ZIP]\n"
    "\n"
    "Print how many bytes each thread of a running jemalloc process has allocated\n"
    "and freed since it began. The process is not changed and, as a rule, not\n"
    "stopped.\n"
    "\n"
    "With --state, print the totals of a heap: heap-state.json, by itself or in a\n"
    "report; without a file, or with -, from standard input.\n",
    option_rows,
    "Exit status: 0 printed (also when the process has no jemalloc), 1 failed,\n"
    "2 usage, 3 some threads could not be read, 4 no such process.\n",
    1,
    .run = run,
    .options_bytes = sizeof(heap_options),
    .defaults = &defaults};
