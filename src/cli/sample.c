#include <stdio.h>
#include <string.h>

#include <bugpack/sample.h>
#include <bugpack/session.h>

#include "cli/follow.h"
#include "cli/option.h"
#include "cli/output.h"

typedef struct sample_options {
    pid_t pid;
    uint32_t window_ms;
    uint32_t count; /* 0: without end */
    bool follows;
    bool as_json;
} sample_options;

static const bp_cli_bounds counts = {"a number", 1, 1000000, 1};

static const bp_cli_option option_rows[] = {
    BP_CLI_PID(sample_options),
    BP_CLI_VALUE(sample_options, window_ms, 0, "window", "TIME",
                 "how long to measure, in milliseconds, or such as 5s\n(default 2s, at most 10min)",
                 bp_cli_read_time, &bp_cli_windows),
    BP_CLI_FLAG(sample_options, follows, 0, "follow",
                "print a line each window, with changes, until it is\nended"),
    BP_CLI_VALUE(sample_options, count, 0, "count", "N", "end after N lines (default: never)",
                 bp_cli_read_number, &counts),
    BP_CLI_FLAG(sample_options, as_json, 0, "json", "with --follow: JSON, an object each line"),
    BP_CLI_OPTIONS_END};

/* The document of a system without a sampler. No text in it can have a newline of its own. */
static bool is_unavailable(const char *json) {
    return strstr(json, "\n  \"available\": false") != NULL;
}

static bp_cli_exit print_sample(const sample_options *options) {
    char *json = NULL;
    size_t json_bytes = 0;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bugpack_sample(options->pid, options->window_ms, &json, &json_bytes, &error) !=
        BUGPACK_OK) {
        return bp_cli_say_error(&error);
    }
    (void)fwrite(json, 1, json_bytes, stdout);
    bool has_metrics = !is_unavailable(json);
    bugpack_free(json);
    bp_cli_exit result = bp_cli_finish_output();
    if (result != BP_CLI_COMPLETE || has_metrics) {
        return result;
    }
    bp_cli_say("this system has no metrics: the \"reason\" is in the JSON");
    return BP_CLI_FAILED;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    sample_options options = {.window_ms = BUGPACK_SAMPLE_WINDOW_DEFAULT_MS};
    bp_cli_exit result;
    if (!bp_cli_read_options(&bp_cli_sample_command, argument_count, arguments, &options, NULL,
                             &result)) {
        return result;
    }
    if (options.pid == 0) {
        return bp_cli_say_usage("option '--pid' is missing");
    }
    if (options.count > 0 && !options.follows) {
        return bp_cli_say_usage("--count needs --follow");
    }
    if (options.follows && options.window_ms == 0) {
        return bp_cli_say_usage("--follow needs a --window over 0");
    }
    const bp_cli_sample_follow follow = {.pid = options.pid,
                                         .window_ms = options.window_ms,
                                         .count = options.count,
                                         .as_json = options.as_json};
    return options.follows ? bp_cli_follow_sample(&follow) : print_sample(&options);
}

const bp_cli_command bp_cli_sample_command = {
    "sample",
    "print what a process and its threads cost, as JSON",
    "Usage: bugpack sample --pid PID [--window TIME]\n"
    "       bugpack sample --pid PID --follow [--window TIME] [--count N] [--json]\n"
    "\n"
    "Print what a process and each of its threads cost over a window, as JSON: the\n"
    "runtime-metrics.json of a report.\n",
    option_rows,
    "Exit status: 0 printed, 1 failed or no metrics on this system, 2 usage,\n"
    "4 no such process.\n",
    0,
    run};
