#include <stdio.h>
#include <string.h>

#include <bugpack/sample.h>
#include <bugpack/session.h>

#include "cli/option.h"
#include "cli/output.h"

typedef struct sample_options {
    pid_t pid;
    uint32_t window_ms;
} sample_options;

/* CPU time is counted in ticks of 10 ms: a shorter window would show what one tick is of it. */
enum { least_window_ms = 100 };

static const bp_cli_option option_rows[] = {
    BP_CLI_PID(sample_options),
    BP_CLI_VALUE(sample_options, window_ms, 0, "window", "TIME",
                 "how long to measure, in seconds, or such as 500ms\n(default 2s, at most 10min)",
                 bp_cli_read_time, &bp_cli_windows),
    BP_CLI_OPTIONS_END};

static bp_cli_exit print_sample(const sample_options *options) {
    char *json = NULL;
    size_t json_bytes = 0;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bugpack_sample(options->pid, options->window_ms, &json, &json_bytes, &error) !=
        BUGPACK_OK) {
        return bp_cli_say_error(&error);
    }
    (void)fwrite(json, 1, json_bytes, stdout);
    /* False on a system without a sampler. No text in it can have a newline of its own. */
    bool has_metrics = strstr(json, "\n  \"available\": false") == NULL;
    bugpack_free(json);
    bp_cli_exit result = bp_cli_finish_output();
    if (result != BP_CLI_COMPLETE || has_metrics) {
        return result;
    }
    bp_cli_say("this system has no metrics: the \"reason\" is in the JSON");
    return BP_CLI_FAILED;
}

static const sample_options defaults = {.window_ms = BUGPACK_SAMPLE_WINDOW_DEFAULT_MS};

static bp_cli_exit run(void *context, char **none) {
    const sample_options *options = context;
    (void)none;
    if (options->pid == 0) {
        return bp_cli_say_usage("option '--pid' is missing");
    }
    if (options->window_ms > 0 && options->window_ms < least_window_ms) {
        return bp_cli_say_usage("--window takes 0, or at least %u milliseconds", least_window_ms);
    }
    return print_sample(options);
}

const bp_cli_command bp_cli_sample_command = {
    "sample",
    "print what a process and its threads cost, as JSON",
    "Usage: bugpack sample --pid PID [--window TIME]\n"
    "\n"
    "Print what a process and each of its threads cost over a window, as JSON: the\n"
    "runtime-metrics.json of a report.\n",
    option_rows,
    "Exit status: 0 printed, 1 failed or no metrics on this system, 2 usage,\n"
    "4 no such process.\n",
    0,
    .run = run,
    .options_bytes = sizeof(sample_options),
    .defaults = &defaults};
