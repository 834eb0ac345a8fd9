#include <stdio.h>

#include <bugpack/recover.h>

#include "cli/option.h"
#include "cli/output.h"

typedef struct recover_options {
    const char *app;
    const char *output_dir;
} recover_options;

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(recover_options, app, 0, "app", "NAME", "only the sessions of this program",
                 bp_cli_read_text, NULL),
    BP_CLI_VALUE(recover_options, output_dir, 'o', "output-dir", "DIR",
                 "the directory for the zips (default: the one that\neach session used)",
                 bp_cli_read_text, NULL),
    BP_CLI_OPTIONS_END};

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

/* Not an error: it explains why there is no report. */
static void print_running(const bugpack_running_session *session, void *context) {
    (void)context;
    const char *app = session->app_name[0] != '\0' ? session->app_name : session->name;
    if (session->pid > 0) {
        bp_cli_say("%s: still running, as process %lld; left alone", app, (long long)session->pid);
    } else {
        bp_cli_say("%s: still running; left alone", app);
    }
}

static bp_cli_exit run(int argument_count, char **arguments) {
    recover_options given = {NULL, NULL};
    char **operands;
    bp_cli_exit worst = BP_CLI_COMPLETE;
    if (!bp_cli_read_options(&bp_cli_recover_command, argument_count, arguments, &given, &operands,
                             &worst)) {
        return worst;
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    worst = BP_CLI_COMPLETE;
    options.recorder_dir = operands[0];
    options.report_dir = given.output_dir;
    options.app_name = given.app;
    options.on_report = print_report;
    options.on_running = print_running;
    options.context = &worst;
    if (bugpack_recover_with(&options, &error) != BUGPACK_OK) {
        return bp_cli_say_error(&error);
    }
    return bp_cli_finish_output() == BP_CLI_COMPLETE ? worst : BP_CLI_FAILED;
}

const bp_cli_command bp_cli_recover_command = {
    "recover",
    "write crash reports for sessions that died",
    "Usage: bugpack recover [OPTION]... [DIR]\n"
    "\n"
    "Write crash reports from the records of sessions that died, and print their\n"
    "paths. Sessions that are still running are left alone, and named on standard\n"
    "error. DIR is the directory of the sessions; by default\n"
    "$XDG_RUNTIME_DIR/bugpack, on macOS $TMPDIR/bugpack.\n",
    option_rows,
    "Exit status: 0 all recovered, or none there; 1 failed, 2 usage, 3 written but\n"
    "something is missing.\n",
    1,
    run};
