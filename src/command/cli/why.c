#include <stddef.h>
#include <stdio.h>

#include "base/file.h"
#include "cli/capture.h"
#include "cli/destination.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/select.h"
#include "cli/show.h"

typedef struct why_options {
    bp_cli_zip_request request;
    bp_cli_screen screen;
} why_options;

static const bp_cli_option option_rows[] = {
    BP_CLI_SELECT_OPTIONS(why_options, request.select),
    BP_CLI_VALUE(why_options, request.window_ms, 0, "window", "TIME",
                 "how long to measure, in seconds, or such as 500ms\n(default 1.5s, at most 10min)",
                 bp_cli_read_time, &bp_cli_windows),
    BP_CLI_FLAG(why_options, request.is_kept, 0, "keep", "also write the zip, as capture does"),
    BP_CLI_VALUE(why_options, request.output_dir, 'o', "output-dir", "DIR",
                 "write it into DIR, not into the current directory;\nimplies --keep",
                 bp_cli_read_output_dir, &bp_cli_some_text),
    BP_CLI_SCREEN_OPTIONS(why_options, screen),
    BP_CLI_OPTIONS_END};

static bp_cli_exit run(void *context, char **none) {
    why_options *options = context;
    bp_cli_zip_request *request = &options->request;
    const char *conflict = bp_cli_select_conflict(&request->select);
    char path[64];
    bp_cli_exit result;
    (void)none;
    if (conflict == NULL && bp_cli_select_kinds(&request->select) == 0) {
        conflict = "a target is missing: --pid, --name, --unit or --cgroup";
    }
    if (conflict != NULL) {
        return bp_cli_say_usage("%s", conflict);
    }
    request->is_kept = request->is_kept || request->output_dir != NULL;
    int fd = bp_cli_capture_zip(request, &result);
    if (result == BP_CLI_COMPLETE) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        result = bp_cli_show_report(path, &options->screen);
    }
    bp_file_close(fd);
    return result;
}

/* With the time that the rest takes, the answer is there after two seconds. */
static const why_options defaults = {.request.window_ms = 1500};

const bp_cli_command bp_cli_why_command = {
    "why",
    "say what is wrong with a running process",
    "Usage: bugpack why --name NAME [OPTION]...\n"
    "       bugpack why --pid PID | --unit UNIT | --cgroup PATH [OPTION]...\n"
    "\n"
    "Look at running processes for a moment, and show what 'bugpack show' shows of a\n"
    "report: what is wrong first, then CPU, memory, threads and what they wait for.\n"
    "No file is written.\n",
    option_rows,
    "Exit status: 0 shown, 1 failed, 2 usage, 4 no such process.\n",
    0,
    .run = run,
    .options_bytes = sizeof(why_options),
    .defaults = &defaults};
