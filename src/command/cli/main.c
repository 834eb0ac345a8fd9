#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/version.h>

#include "cli/command.h"
#include "cli/option.h"
#include "cli/output.h"

static const bp_cli_command *const commands[] = {
    &bp_cli_capture_command,   &bp_cli_diff_command,        &bp_cli_heap_command,
    &bp_cli_html_command,      &bp_cli_index_command,       &bp_cli_logs_command,
    &bp_cli_prune_command,     &bp_cli_recover_command,     &bp_cli_redact_command,
    &bp_cli_run_command,       &bp_cli_sample_command,      &bp_cli_send_command,
    &bp_cli_show_command,      &bp_cli_symbolize_command,   &bp_cli_trigger_command,
    &bp_cli_verify_command,    &bp_cli_watch_command,       &bp_cli_why_command,
    &bp_cli_calibrate_command, &bp_cli_copy_threads_command};
enum { command_count = sizeof commands / sizeof commands[0] };

static const bp_cli_command *find_command(const char *name) {
    char suggestion[BP_CLI_SUGGESTION_BYTES];
    bp_suggestion near = {.word = name};
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
        if (commands[i]->summary != NULL) {
            bp_suggest(&near, commands[i]->name);
        }
    }
    bp_cli_say_usage("unknown command '%s'%s", name, bp_cli_suggest(&near, "", suggestion));
    return NULL;
}

static bp_cli_exit print_help(void) {
    (void)fputs("Usage: bugpack COMMAND [OPTION]...\n"
                "\n"
                "Write one zip that explains what a program did, and read such zips.\n"
                "\n"
                "Commands:\n",
                stdout);
    for (size_t i = 0; i < command_count; i++) {
        if (commands[i]->summary != NULL) {
            (void)printf("  %-10s  %s\n", commands[i]->name, commands[i]->summary);
        }
    }
    (void)fputs("  help        show the help of a command: bugpack help capture\n"
                "\n"
                "Options:\n"
                "  -h, --help     show this help\n"
                "      --version  show the version\n"
                "\n"
                "Exit status: 0 complete, 1 failed, 2 usage, 3 written but something is\n"
                "missing, 4 no such process, 5 timed out.\n",
                stdout);
    return bp_cli_finish_output();
}

static bp_cli_exit run_help(int argument_count, char **arguments) {
    if (argument_count == 1) {
        return print_help();
    }
    if (argument_count > 2) {
        return bp_cli_say_usage("unexpected argument '%s'", arguments[2]);
    }
    const bp_cli_command *command = find_command(arguments[1]);
    return command != NULL ? bp_cli_print_help(command) : BP_CLI_USAGE;
}

static bp_cli_exit print_version(void) {
    (void)printf("bugpack %s\n", bugpack_version());
    (void)fputs("built for " BP_CLI_PLATFORM " with libzip " BP_CLI_LIBZIP_VERSION
                ", zlib " BP_CLI_ZLIB_VERSION BP_CLI_ISAL ", cJSON " BP_CLI_CJSON_VERSION
                ", libpng " BP_CLI_LIBPNG_VERSION "\n",
                stdout);
    return bp_cli_finish_output();
}

static bp_cli_exit run(const bp_cli_command *command, int argument_count, char **arguments) {
    static void *options; /* whatever they hold can be found until the end */
    char **operands;
    bp_cli_exit result;
    bp_cli_current_command = command->name;
    if (command->options == NULL) {
        return command->run(NULL, arguments);
    }
    options = calloc(1, command->options_bytes);
    if (options == NULL && command->options_bytes > 0) {
        (void)bp_cli_say_no_memory();
        return BP_CLI_FAILED;
    }
    if (command->defaults != NULL) {
        memcpy(options, command->defaults, command->options_bytes);
    }
    return bp_cli_read_options(command, argument_count, arguments, options, &operands, &result)
               ? command->run(options, operands)
               : result;
}

static bp_cli_exit dispatch(int argument_count, char **arguments) {
    if (argument_count == 0) {
        return bp_cli_say_usage("a command is missing");
    }
    const char *word = arguments[0];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        return print_help();
    }
    if (strcmp(word, "--version") == 0) {
        return print_version();
    }
    if (strcmp(word, "--complete") == 0) {
        return bp_cli_complete(commands, command_count, argument_count - 1, arguments + 1);
    }
    if (word[0] == '-') {
        return bp_cli_say_usage("unknown option '%s'", word);
    }
    if (strcmp(word, "help") == 0) {
        return run_help(argument_count, arguments);
    }
    const bp_cli_command *command = find_command(word);
    return command != NULL ? run(command, argument_count, arguments) : BP_CLI_USAGE;
}

int main(int argument_count, char **arguments) {
    if (!bp_cli_prepare_output()) {
        bp_cli_say("cannot open /dev/null: %s", strerror(errno));
        return BP_CLI_FAILED;
    }
    /* argc is 0 for a program that was started without even its own name. */
    return (int)dispatch(argument_count > 0 ? argument_count - 1 : 0,
                         argument_count > 0 ? arguments + 1 : arguments);
}
