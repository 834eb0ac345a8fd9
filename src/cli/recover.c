#include <stdio.h>

#include <bugpack/recover.h>

#include "cli/command.h"
#include "cli/message.h"
#include "cli/option.h"

static const char help[] =
    "Usage: bugpack recover [OPTION]... [DIR]\n"
    "\n"
    "Turn what sessions that died left behind into crash reports, and print their\n"
    "paths. Sessions that are still running are left alone, and named on standard\n"
    "error. DIR is where sessions lie; by default $XDG_RUNTIME_DIR/bugpack, on macOS\n"
    "$TMPDIR/bugpack.\n"
    "\n"
    "Options:\n"
    "      --app NAME        only the sessions of this program\n"
    "  -o, --output-dir DIR  where the zips go (default: where each session put its\n"
    "                        own)\n"
    "  -h, --help            show this help\n"
    "\n"
    "Exit status: 0 all recovered, or none there; 1 failed, 2 usage, 3 written but\n"
    "something is missing.\n";

enum { option_app = BP_CLI_OPTION_LONG_BASE };

static const struct option long_options[] = {{"app", required_argument, NULL, option_app},
                                             {"output-dir", required_argument, NULL, 'o'},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static void print_report(const bugpack_report_result *result, void *context) {
    bp_cli_exit *worst = context;
    if (result->status != BUGPACK_OK) {
        bp_cli_say("%s", result->error.message);
        *worst = BP_CLI_FAILED;
        return;
    }
    (void)printf("%s\n", result->path);
    if (result->missing_count > 0 && *worst == BP_CLI_COMPLETE) {
        bp_cli_say("%s: something is missing; its manifest.json says what", result->path);
        *worst = BP_CLI_INCOMPLETE;
    }
}

/* Not an error: it says why there is no report. */
static void print_running(const bugpack_running_session *session, void *context) {
    (void)context;
    const char *app = session->app_name[0] != '\0' ? session->app_name : session->name;
    if (session->pid > 0) {
        bp_cli_say("%s: still running, as process %lld; left alone", app, (long long)session->pid);
    } else {
        bp_cli_say("%s: still running; left alone", app);
    }
}

static bp_cli_exit recover(const char *dir, const char *output_dir, const char *app) {
    bp_cli_exit worst = BP_CLI_COMPLETE;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    options.recorder_dir = dir;
    options.report_dir = output_dir;
    options.app_name = app;
    options.on_report = print_report;
    options.on_running = print_running;
    options.context = &worst;
    bugpack_status status = bugpack_recover_with(&options, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return bp_cli_exit_of(status);
    }
    return bp_cli_finish_output() ? worst : BP_CLI_FAILED;
}

static bp_cli_exit run(int argument_count, char **arguments) {
    const char *name = bp_cli_recover_command.name;
    const char *dir = NULL;
    const char *output_dir = NULL;
    const char *app = NULL;
    for (;;) {
        switch (bp_cli_option_next_or_operand(name, argument_count, arguments, ":o:h", long_options,
                                              &dir)) {
        case option_app:
            app = optarg;
            break;
        case 'o':
            output_dir = optarg;
            break;
        case 'h':
            return bp_cli_print(help);
        case BP_CLI_OPTION_END:
            return recover(dir, output_dir, app);
        default:
            return BP_CLI_USAGE;
        }
    }
}

const bp_cli_command bp_cli_recover_command = {
    "recover", "turn what dead sessions left behind into crash reports", help, run};
