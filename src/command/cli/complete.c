#include <stdio.h>
#include <string.h>

#include "cli/option.h"
#include "cli/output.h"
#include "model/entry.h"

/* What values are: a kind, which the shell completes by itself and which begins with a colon, or
 * words; by how the help calls the value, or by the option where that says more. */
static const struct {
    const char *name, *words;
} values[] = {{"PID", ":pid"},
              {"FILE", ":file"},
              {"[NAME=]FILE", ":file"},
              {"DIR", ":dir"},
              {"trigger[=TIME]", "trigger trigger=1min"},
              {"--name", ":name"},
              {"--hotkey", "F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 none"},
              {"--when", "cpu rss threads fds state log idle"}};

static void print_words(const char *words) {
    for (size_t length; *words != '\0'; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        (void)printf("%.*s\n", (int)length, words);
    }
}

static void print_value(const bp_cli_option *option) {
    for (const bp_cli_choice *choice = option->choices; choice != NULL && choice->name != NULL;
         choice++) {
        (void)puts(choice->name);
    }
    for (unsigned i = 0; i < BP_ENTRY_COUNT && strcmp(option->name, "without") == 0; i++) {
        if ((bp_entries[i].flags & BP_ENTRY_OPTIONAL) != 0) {
            (void)puts(bp_entries[i].name);
        }
    }
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const char *name = values[i].name;
        if (strcmp(name, option->value) == 0 ||
            (strncmp(name, "--", 2) == 0 && strcmp(name + 2, option->name) == 0)) {
            print_words(values[i].words);
        }
    }
}

/* The option with a value that a word is; NULL for another word. */
static const bp_cli_option *find_option(const bp_cli_command *command, const char *word) {
    for (const bp_cli_option *option = command->options; option->name != NULL; option++) {
        const char letter[] = {'-', option->letter, '\0'};
        bool is_it = (strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0) ||
                     (option->letter != 0 && strcmp(word, letter) == 0);
        if (is_it && option->value != NULL) {
            return option;
        }
    }
    return NULL;
}

static void print_options(const bp_cli_command *command) {
    for (const bp_cli_option *option = command->options; option->name != NULL; option++) {
        (void)printf("--%s\t%.*s\n", option->name, (int)strcspn(option->help, "\n"), option->help);
    }
    (void)puts("--help\tshow this help");
}

bp_cli_exit bp_cli_complete(const bp_cli_command *const *commands, size_t command_count,
                            int word_count, char **words) {
    const char *current = word_count > 0 ? words[word_count - 1] : "";
    const bp_cli_command *command = NULL;
    for (size_t i = 0; i < command_count; i++) {
        bool is_first = word_count < 2 || (word_count == 2 && strcmp(words[0], "help") == 0);
        if (is_first && commands[i]->summary != NULL) {
            (void)printf("%s\t%s\n", commands[i]->name, commands[i]->summary);
        } else if (!is_first && strcmp(commands[i]->name, words[0]) == 0) {
            command = commands[i];
        }
    }
    if (word_count < 2) {
        (void)fputs("help\tshow the help of a command\n--help\tshow the help\n"
                    "--version\tshow the version\n",
                    stdout);
    }
    if (command == NULL || command->options == NULL) {
        return bp_cli_finish_output();
    }
    const bp_cli_option *option = find_option(command, words[word_count - 2]);
    if (option != NULL) {
        print_value(option);
    } else if (current[0] == '-' || command->operand_max == 0) {
        print_options(command);
    } else {
        const char *other = strstr(command->usage, "[PID]") != NULL ? ":pid" : ":file";
        (void)puts(command->operand_max == BP_CLI_OTHER_COMMAND ? ":command" : other);
    }
    return bp_cli_finish_output();
}
