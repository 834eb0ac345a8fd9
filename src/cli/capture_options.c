#include "cli/capture_options.h"

#include <bugpack/session.h>

#include "cli/message.h"
#include "cli/option.h"
#include "cli/option_text.h"

static const char command[] = "capture";

const char bp_cli_capture_help[] =
    "Usage: bugpack capture --pid PID [OPTION]...\n"
    "       bugpack capture --host [OPTION]...\n"
    "\n"
    "Write a report about a running process: what it and each of its threads cost\n"
    "over a window, what the system knows of it, and the files you name; or about\n"
    "every thread of every process on the machine. The path of the zip is printed.\n"
    "\n"
    "Options:\n"
    "      --pid PID             the process to look at\n"
    "      --host                look at the whole machine instead\n"
    "      --window MS           how long to look, in milliseconds (default 2000, at\n"
    "                            most 600000)\n"
    "      --log FILE            take the end of a log file, as logs/NAME; repeatable\n"
    "      --log-limit BYTES     how much of each log file (default 4M)\n"
    "      --session FILE        a JSON file with what the program says of itself\n"
    "      --attach [NAME=]FILE  take a whole file, as NAME; repeatable\n"
    "      --attach-limit BYTES  leave out a larger attachment (default 256M)\n"
    "      --app NAME            name the report after NAME, not after the process\n"
    "      --description TEXT    what you saw\n"
    "  -o, --output-dir DIR      where the zip goes (default: the current directory)\n"
    "      --output FILE         write this file; a taken name gets -2, -3, ...\n"
    "      --timeout SECS        give up after so long (default 0: never)\n"
    "  -q, --quiet               no progress and no warnings\n"
    "      --json                print a JSON object instead of the path\n"
    "  -h, --help                show this help\n"
    "\n"
    "BYTES may end in K, M or G.\n"
    "\n"
    "Exit status: 0 complete, 1 failed, 2 usage, 3 written but something is missing,\n"
    "4 no such process, 5 timed out.\n";

enum {
    option_pid = BP_CLI_OPTION_LONG_BASE,
    option_host,
    option_window,
    option_log,
    option_log_limit,
    option_session,
    option_attach,
    option_attach_limit,
    option_app,
    option_description,
    option_output,
    option_timeout,
    option_json
};

static const char short_options[] = ":o:qh";
static const struct option long_options[] = {
    {"pid", required_argument, NULL, option_pid},
    {"host", no_argument, NULL, option_host},
    {"window", required_argument, NULL, option_window},
    {"log", required_argument, NULL, option_log},
    {"log-limit", required_argument, NULL, option_log_limit},
    {"session", required_argument, NULL, option_session},
    {"attach", required_argument, NULL, option_attach},
    {"attach-limit", required_argument, NULL, option_attach_limit},
    {"app", required_argument, NULL, option_app},
    {"description", required_argument, NULL, option_description},
    {"output-dir", required_argument, NULL, 'o'},
    {"output", required_argument, NULL, option_output},
    {"timeout", required_argument, NULL, option_timeout},
    {"quiet", no_argument, NULL, 'q'},
    {"json", no_argument, NULL, option_json},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

void bp_cli_capture_options_init(bp_cli_capture_options *options) {
    bugpack_options defaults = BUGPACK_OPTIONS_INIT;
    *options = (bp_cli_capture_options){.window_ms = defaults.sample_window_ms,
                                        .log_limit_bytes = (uint64_t)4 << 20,
                                        .attach_limit_bytes = (uint64_t)256 << 20};
}

void bp_cli_capture_options_release(bp_cli_capture_options *options) {
    bp_cli_inputs_release(&options->logs);
    bp_cli_inputs_release(&options->attachments);
}

static bool read_timeout(const char *text, uint32_t *ret_timeout_ms) {
    uint64_t secs;
    if (!bp_cli_option_number(text, 0, UINT32_MAX / 1000u, &secs)) {
        bp_cli_say_usage(command, "--timeout takes seconds from 0 to %u, not '%s'",
                         UINT32_MAX / 1000u, text);
        return false;
    }
    *ret_timeout_ms = (uint32_t)secs * 1000u;
    return true;
}

/* Takes one option that bp_cli_option_next has found. */
static bool take_option(bp_cli_capture_options *options, int code, const char *value) {
    switch (code) {
    case option_pid:
        return bp_cli_option_pid(command, value, &options->pid);
    case option_host:
        options->host = true;
        return true;
    case option_window:
        options->has_window = true;
        return bp_cli_option_window(command, value, &options->window_ms);
    case option_log:
        return bp_cli_option_log(command, value, &options->logs);
    case option_log_limit:
        return bp_cli_option_limit(command, "--log-limit", value, &options->log_limit_bytes);
    case option_session:
        return bp_cli_option_text(command, "--session", value, &options->session_path);
    case option_attach:
        return bp_cli_option_attachment(command, value, &options->attachments);
    case option_attach_limit:
        return bp_cli_option_limit(command, "--attach-limit", value, &options->attach_limit_bytes);
    case option_app:
        return bp_cli_option_app(command, value, &options->app_name);
    case option_description:
        return bp_cli_option_description(command, value, &options->description);
    case 'o':
        return bp_cli_option_text(command, "--output-dir", value, &options->output_dir);
    case option_output:
        return bp_cli_option_text(command, "--output", value, &options->output_path);
    case option_timeout:
        return read_timeout(value, &options->timeout_ms);
    case 'q':
        options->quiet = true;
        return true;
    case option_json:
        options->json = true;
        return true;
    default:
        return false;
    }
}

/* What every option alone allows, and several together do not. */
static bool check_together(const bp_cli_capture_options *options) {
    const char *mistake = NULL;
    if (options->host && options->pid != 0) {
        mistake = "--host and --pid exclude each other";
    } else if (options->host && options->has_window) {
        mistake = "--host and --window exclude each other: the machine is looked at once";
    } else if (!options->host && options->pid == 0) {
        mistake = "option '--pid' is missing";
    } else if (options->output_dir != NULL && options->output_path != NULL) {
        mistake = "--output-dir and --output exclude each other";
    }
    if (mistake != NULL) {
        bp_cli_say_usage(command, "%s", mistake);
    }
    return mistake == NULL;
}

bool bp_cli_capture_options_parse(bp_cli_capture_options *options, int argument_count,
                                  char **arguments) {
    int code;
    while ((code = bp_cli_option_next(command, argument_count, arguments, short_options,
                                      long_options)) != BP_CLI_OPTION_END) {
        if (code == 'h') {
            options->help = true;
            return true;
        }
        if (!take_option(options, code, optarg)) {
            return false;
        }
    }
    return check_together(options);
}
