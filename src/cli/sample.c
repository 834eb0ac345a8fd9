#include <stddef.h>
#include <stdio.h>

#include <bugpack/sample.h>
#include <bugpack/session.h>

#include "cli/command.h"
#include "cli/message.h"
#include "cli/option.h"

static const char help[] =
    "Usage: bugpack sample --pid PID [--window MS]\n"
    "\n"
    "Print what a process and each of its threads cost over a window, as JSON: the\n"
    "runtime-metrics.json of a report.\n"
    "\n"
    "Options:\n"
    "      --pid PID    the process to look at\n"
    "      --window MS  how long, in milliseconds (default 2000, at most 600000)\n"
    "  -h, --help       show this help\n"
    "\n"
    "Exit status: 0 printed, 1 failed, 2 usage, 4 no such process.\n";

enum { option_pid = BP_CLI_OPTION_LONG_BASE, option_window };

static const struct option long_options[] = {{"pid", required_argument, NULL, option_pid},
                                             {"window", required_argument, NULL, option_window},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static bp_cli_exit print_sample(pid_t pid, uint32_t window_ms) {
    char *json = NULL;
    size_t json_bytes = 0;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_sample(pid, window_ms, &json, &json_bytes, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return bp_cli_exit_of(status);
    }
    (void)fwrite(json, 1, json_bytes, stdout);
    bugpack_free(json);
    return bp_cli_finish_output() ? BP_CLI_COMPLETE : BP_CLI_FAILED;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    const char *name = bp_cli_sample_command.name;
    bugpack_options defaults = BUGPACK_OPTIONS_INIT;
    uint32_t window_ms = defaults.sample_window_ms;
    pid_t pid = 0;
    for (;;) {
        switch (bp_cli_option_next(name, argument_count, arguments, ":h", long_options)) {
        case option_pid:
            if (!bp_cli_option_pid(name, optarg, &pid)) {
                return BP_CLI_USAGE;
            }
            break;
        case option_window:
            if (!bp_cli_option_window(name, optarg, &window_ms)) {
                return BP_CLI_USAGE;
            }
            break;
        case 'h':
            return bp_cli_print(help);
        case BP_CLI_OPTION_END:
            return pid != 0 ? print_sample(pid, window_ms)
                            : bp_cli_say_usage(name, "option '--pid' is missing");
        default:
            return BP_CLI_USAGE;
        }
    }
}

const bp_cli_command bp_cli_sample_command = {
    "sample", "print what a process and its threads cost, as JSON", help, run};
