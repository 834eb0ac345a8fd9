#include "cli/run_options.h"

#include <string.h>
#include <unistd.h>

#include <bugpack/session.h>

#include "cli/message.h"
#include "cli/option.h"
#include "cli/option_text.h"

static const char command[] = "run";

const char bp_cli_run_help[] =
    "Usage: bugpack run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "\n"
    "Run a command under a recorder. It works as it would without; what it prints is\n"
    "kept in memory, and what it costs as history. A report is written when you press\n"
    "F12, on SIGUSR1, and when the command dies by a signal.\n"
    "\n"
    "Options:\n"
    "      --hotkey KEY          F1 to F12, Ctrl-LETTER, or none (default F12)\n"
    "      --gap-pattern REGEX   a line that matches is a gap: one report for each\n"
    "                            distinct first group, or match; repeatable; implies\n"
    "                            --pedantic\n"
    "      --pedantic            report gaps; without a pattern, lines that tell of\n"
    "                            something unsupported, unimplemented or unknown\n"
    "      --pedantic-dir DIR    where reports of gaps go\n"
    "      --auto-snapshot-interval SECS\n"
    "                            a report every so often (default 0: never)\n"
    "      --auto-snapshot-cap N keep so many of these (default 20)\n"
    "      --log FILE            take the end of a log file, as logs/NAME; repeatable\n"
    "      --log-limit BYTES     how much of each log file (default 4M)\n"
    "      --session FILE        a JSON file with what the program says of itself\n"
    "      --attach [NAME=]FILE  take a whole file, as NAME; repeatable\n"
    "      --attach-limit BYTES  leave out a larger attachment (default 256M)\n"
    "      --app NAME            name the reports after NAME, not after the command\n"
    "      --description TEXT    what you are looking for\n"
    "  -o, --output-dir DIR      where the zips go (default: the current directory)\n"
    "  -q, --quiet               do not tell of reports\n"
    "  -h, --help                show this help\n"
    "\n"
    "BYTES may end in K, M or G.\n"
    "\n"
    "Exit status: that of the command; a signal that ended it ends bugpack as well.\n"
    "126 the command cannot be executed, 127 there is none, 1 failed before it,\n"
    "2 usage.\n";

/* What programs say of what they do not handle. The group is the rest of the sentence from there.
 */
static const char default_pattern[] =
    "((unimplemented|not implemented|not yet implemented|unsupported|not supported|unhandled|"
    "unknown|unrecognized)[ :=]+[[:alnum:]_./-]+)";

static const char default_hotkey[] = "F12";

enum {
    option_hotkey = BP_CLI_OPTION_LONG_BASE,
    option_gap_pattern,
    option_pedantic,
    option_pedantic_dir,
    option_auto_interval,
    option_auto_cap,
    option_log,
    option_log_limit,
    option_session,
    option_attach,
    option_attach_limit,
    option_app,
    option_description
};

/* '+': what follows the command is the command's. */
static const char short_options[] = "+:o:qh";
static const struct option long_options[] = {
    {"hotkey", required_argument, NULL, option_hotkey},
    {"gap-pattern", required_argument, NULL, option_gap_pattern},
    {"pedantic", no_argument, NULL, option_pedantic},
    {"pedantic-dir", required_argument, NULL, option_pedantic_dir},
    {"auto-snapshot-interval", required_argument, NULL, option_auto_interval},
    {"auto-snapshot-cap", required_argument, NULL, option_auto_cap},
    {"log", required_argument, NULL, option_log},
    {"log-limit", required_argument, NULL, option_log_limit},
    {"session", required_argument, NULL, option_session},
    {"attach", required_argument, NULL, option_attach},
    {"attach-limit", required_argument, NULL, option_attach_limit},
    {"app", required_argument, NULL, option_app},
    {"description", required_argument, NULL, option_description},
    {"output-dir", required_argument, NULL, 'o'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

bool bp_cli_run_options_init(bp_cli_run_options *options) {
    const bugpack_options defaults = BUGPACK_OPTIONS_INIT;
    *options = (bp_cli_run_options){.patterns = bp_run_patterns_new(),
                                    .auto_snapshot_cap = defaults.auto_snapshot_max_count,
                                    .log_limit_bytes = (uint64_t)4 << 20,
                                    .attach_limit_bytes = (uint64_t)256 << 20};
    (void)bp_hotkey_parse(default_hotkey, &options->hotkey);
    return options->patterns != NULL;
}

void bp_cli_run_options_release(bp_cli_run_options *options) {
    bp_run_patterns_free(options->patterns);
    bp_cli_inputs_release(&options->logs);
    bp_cli_inputs_release(&options->attachments);
}

static bool read_hotkey(const char *text, bp_hotkey *hotkey) {
    if (!bp_hotkey_parse(text, hotkey)) {
        bp_cli_say_usage(command,
                         "--hotkey takes F1 to F12, Ctrl- and a letter but I, J and M, or none, "
                         "not '%s'",
                         text);
        return false;
    }
    return true;
}

static bool read_pattern(bp_cli_run_options *options, const char *text) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    options->is_pedantic = true;
    if (bp_run_patterns_add(options->patterns, text, &error) != BUGPACK_OK) {
        bp_cli_say_usage(command, "%s", error.message);
        return false;
    }
    return true;
}

static bool read_interval(const char *text, uint32_t *ret_interval_ms) {
    uint64_t secs;
    if (!bp_cli_option_number(text, 0, UINT32_MAX / 1000u, &secs)) {
        bp_cli_say_usage(command, "--auto-snapshot-interval takes seconds from 0 to %u, not '%s'",
                         UINT32_MAX / 1000u, text);
        return false;
    }
    *ret_interval_ms = (uint32_t)secs * 1000u;
    return true;
}

static bool read_cap(const char *text, uint32_t *ret_cap) {
    uint64_t cap;
    if (!bp_cli_option_number(text, 1, 1000000, &cap)) {
        bp_cli_say_usage(command, "--auto-snapshot-cap takes a number from 1 to 1000000, not '%s'",
                         text);
        return false;
    }
    *ret_cap = (uint32_t)cap;
    return true;
}

/* Takes one option that has been found. */
static bool take_option(bp_cli_run_options *options, int code, const char *value) {
    switch (code) {
    case option_hotkey:
        return read_hotkey(value, &options->hotkey);
    case option_gap_pattern:
        return read_pattern(options, value);
    case option_pedantic:
        options->is_pedantic = true;
        return true;
    case option_pedantic_dir:
        return bp_cli_option_text(command, "--pedantic-dir", value, &options->pedantic_dir);
    case option_auto_interval:
        return read_interval(value, &options->auto_snapshot_interval_ms);
    case option_auto_cap:
        return read_cap(value, &options->auto_snapshot_cap);
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
    case 'q':
        options->quiet = true;
        return true;
    default:
        return false;
    }
}

bool bp_cli_run_options_parse(bp_cli_run_options *options, int argument_count, char **arguments) {
    int code;
    while ((code = bp_cli_option_next_or_command(command, argument_count, arguments, short_options,
                                                 long_options, &options->arguments)) !=
           BP_CLI_OPTION_END) {
        if (code == 'h') {
            options->help = true;
            return true;
        }
        if (!take_option(options, code, optarg)) {
            return false;
        }
    }
    if (options->arguments == NULL) {
        bp_cli_say_usage(command, "a command is missing");
        return false;
    }
    if (options->is_pedantic && bp_run_patterns_count(options->patterns) == 0) {
        return read_pattern(options, default_pattern);
    }
    return true;
}
