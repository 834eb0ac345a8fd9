#include "cli/option.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/session.h>

#include "cli/output.h"
#include "model/fit.h"

/* Help texts begin in this column, or earlier if all options are short. */
enum { help_column_max = 28 };

/* Codes of our options for getopt begin beyond any character. */
enum { option_max = 48, first_code = 256 };

const bp_cli_bounds bp_cli_pids = {"a process id", 1, INT32_MAX, 1};
const bp_cli_bounds bp_cli_windows = {"seconds", 0, BUGPACK_SAMPLE_WINDOW_MAX_MS / 1000, 1000};
const bp_cli_bounds bp_cli_some_text = {NULL, 1, UINT32_MAX, 0};
const bp_cli_bounds bp_cli_app_names = {NULL, 1, 64, 0};
const bp_cli_bounds bp_cli_descriptions = {NULL, 1, 64 * 1024, 0};

const bp_cli_choice bp_cli_stacks[] = {{"blocked", BUGPACK_STACKS_BLOCKED},
                                       {"all", BUGPACK_STACKS_ALL},
                                       {"none", BUGPACK_STACKS_NONE},
                                       {NULL, 0}};

bool bp_cli_say_no_memory(void) {
    bp_cli_say("cannot read the command line: out of memory");
    errno = ENOMEM;
    return false;
}

/* Reads digits up to the first other byte, to which `*ret_end` then points. */
static bool read_digits(const char *text, uint64_t *ret_value, char **ret_end) {
    errno = 0;
    *ret_value = strtoull(text, ret_end, 10);
    return text[0] >= '0' && text[0] <= '9' && errno == 0; /* no sign, no space */
}

bool bp_cli_parse_number(const char *text, uint64_t largest, uint64_t *ret_value) {
    char *end;
    return read_digits(text, ret_value, &end) && *end == '\0' && *ret_value <= largest;
}

bool bp_cli_read_number(const bp_cli_option *option, const char *text, void *field) {
    const bp_cli_bounds *bounds = option->bounds;
    uint64_t value;
    if (!bp_cli_parse_number(text, bounds->largest, &value) || value < bounds->smallest) {
        bp_cli_say_usage("--%s takes %s from %" PRIu32 " to %" PRIu32 ", not '%s'", option->name,
                         bounds->unit, bounds->smallest, bounds->largest, text);
        return false;
    }
    *(uint32_t *)field = (uint32_t)value * bounds->scale;
    return true;
}

bool bp_cli_parse_time(const char *text, uint64_t *ret_ms) {
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"", 1e3},    {"s", 1e3},  {"ms", 1},   {"m", 6e4},
                 {"min", 6e4}, {"h", 36e5}, {"d", 864e5}};
    static const double ms_max = 1e15;
    char *end;
    double value = strtod(text, &end);
    /* strtod also takes signs, spaces, exponents and names. */
    if (end == text || end != text + strspn(text, "0123456789.")) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        double ms = value * units[i].ms;
        if (strcmp(end, units[i].name) == 0 && ms <= ms_max) {
            *ret_ms = ms > 0 && ms < 1 ? 1 : (uint64_t)(ms + 0.5);
            return true;
        }
    }
    return false;
}

bool bp_cli_read_time(const bp_cli_option *option, const char *text, void *field) {
    const bp_cli_bounds *bounds = option->bounds;
    uint64_t ms;
    if (!bp_cli_parse_time(text, &ms) || ms < (uint64_t)bounds->smallest * bounds->scale ||
        ms > (uint64_t)bounds->largest * bounds->scale) {
        bp_cli_say_usage("--%s takes %s from %" PRIu32 " to %" PRIu32
                         ", or a time such as 500ms or 2s, not '%s'",
                         option->name, bounds->unit, bounds->smallest, bounds->largest, text);
        return false;
    }
    *(uint32_t *)field = (uint32_t)ms;
    return true;
}

const char *bp_cli_suggest(const bp_suggestion *near, const char *before,
                           char out[BP_CLI_SUGGESTION_BYTES]) {
    out[0] = '\0';
    if (near->name != NULL) {
        (void)snprintf(out, BP_CLI_SUGGESTION_BYTES, "; did you mean '%s%s'?", before, near->name);
    }
    return out;
}

bool bp_cli_read_choice(const bp_cli_option *option, const char *text, void *field) {
    const bp_cli_choice *choices = option->choices;
    char list[256], suggestion[BP_CLI_SUGGESTION_BYTES];
    bp_suggestion near = {.word = text};
    size_t used = 0;
    for (size_t i = 0; choices[i].name != NULL; i++) {
        if (strcmp(text, choices[i].name) == 0) {
            *(int *)field = choices[i].value;
            return true;
        }
        bp_suggest(&near, choices[i].name);
        const char *between = i == 0 ? "" : choices[i + 1].name == NULL ? " or " : ", ";
        int length = snprintf(list + used, sizeof list - used, "%s%s", between, choices[i].name);
        used += length > 0 && (size_t)length < sizeof list - used ? (size_t)length : 0;
    }
    bp_cli_say_usage("--%s takes %s, not '%s'%s", option->name, list, text,
                     bp_cli_suggest(&near, "", suggestion));
    return false;
}

bool bp_cli_read_size(const bp_cli_option *option, const char *text, void *field) {
    static const char suffixes[] = "KMG";
    uint64_t value;
    char *end;
    bool is_good = read_digits(text, &value, &end);
    unsigned shift = 0;
    if (is_good && *end != '\0') {
        const char *suffix = strchr(suffixes, *end);
        is_good = suffix != NULL && end[1] == '\0';
        shift = is_good ? 10u * (unsigned)(suffix - suffixes + 1) : 0;
    }
    if (!is_good || value == 0 || value > UINT64_MAX >> shift) {
        bp_cli_say_usage("--%s takes bytes from 1, optionally followed by K, M or G, not '%s'",
                         option->name, text);
        return false;
    }
    *(uint64_t *)field = value << shift;
    return true;
}

bool bp_cli_read_report_size(const bp_cli_option *option, const char *text, void *field) {
    uint64_t value;
    if (!bp_cli_read_size(option, text, &value)) {
        return false;
    }
    if (!bp_fit_is_limit(value)) {
        bp_cli_say_usage("--%s takes at least 64K, not '%s'", option->name, text);
        return false;
    }
    *(uint64_t *)field = value;
    return true;
}

bool bp_cli_read_text(const bp_cli_option *option, const char *text, void *field) {
    const bp_cli_bounds *bounds = option->bounds;
    size_t length = strlen(text);
    if (bounds != NULL && length < bounds->smallest) {
        bp_cli_say_usage("--%s takes a value that is not empty", option->name);
        return false;
    }
    if (bounds != NULL && length > bounds->largest) {
        bp_cli_say_usage("--%s takes at most %" PRIu32 " bytes", option->name, bounds->largest);
        return false;
    }
    *(const char **)field = text;
    return true;
}

/* Returns the width. */
static int format_option(const bp_cli_option *option, char *out, size_t out_bytes) {
    const char short_form[] = {'-', option->letter, ',', '\0'};
    return snprintf(out, out_bytes, "  %3s --%s%s%s", option->letter != 0 ? short_form : "",
                    option->name, option->value != NULL ? " " : "",
                    option->value != NULL ? option->value : "");
}

static void print_option(const bp_cli_option *option, int column) {
    char text[80];
    int width = format_option(option, text, sizeof text);
    (void)fputs(text, stdout);
    if (width >= column) {
        (void)fputc('\n', stdout);
        width = 0;
    }
    for (const char *line = option->help; line != NULL;) {
        const char *end = strchr(line, '\n');
        (void)printf("%*s%.*s\n", column - width, "",
                     end != NULL ? (int)(end - line) : (int)strlen(line), line);
        line = end != NULL ? end + 1 : NULL;
        width = 0;
    }
}

/* The last row of every table. */
static const bp_cli_option help_option = {'h', "help", NULL, "show this help", NULL, 0, NULL, NULL};

bp_cli_exit bp_cli_print_help(const bp_cli_command *command) {
    (void)fputs(command->usage, stdout);
    if (command->options == NULL) {
        return bp_cli_finish_output();
    }
    char text[80];
    int column = format_option(&help_option, text, sizeof text) + 2;
    for (const bp_cli_option *option = command->options; option->name != NULL; option++) {
        int width = format_option(option, text, sizeof text) + 2;
        column = width > column ? width : column;
    }
    column = column < help_column_max ? column : help_column_max;
    (void)fputs("\nOptions:\n", stdout);
    for (const bp_cli_option *option = command->options; option->name != NULL; option++) {
        print_option(option, column);
    }
    print_option(&help_option, column);
    (void)printf("\n%s", command->notes);
    return bp_cli_finish_output();
}

/* The tables of getopt_long for a command; the code of an option is its row plus first_code. */
typedef struct getopt_tables {
    struct option long_options[option_max + 2];
    char short_options[2 * option_max + 4];
} getopt_tables;

static void make_tables(const bp_cli_command *command, getopt_tables *tables) {
    size_t count = 0;
    char *at = tables->short_options;
    if (command->operand_max == BP_CLI_OTHER_COMMAND) {
        *at++ = '+'; /* stop at the first operand */
    }
    *at++ = ':'; /* distinguish a missing value from an unknown option */
    for (const bp_cli_option *option = command->options; option->name != NULL; option++) {
        assert(count < option_max);
        tables->long_options[count] =
            (struct option){option->name, option->value != NULL ? required_argument : no_argument,
                            NULL, first_code + (int)count};
        count++;
        if (option->letter != 0) {
            *at++ = option->letter;
            if (option->value != NULL) {
                *at++ = ':';
            }
        }
    }
    *at++ = 'h';
    *at = '\0';
    tables->long_options[count++] = (struct option){"help", no_argument, NULL, 'h'};
    tables->long_options[count] = (struct option){NULL, 0, NULL, 0};
}

/* Names the option as the user wrote it, without its value: optind is after it. */
static bp_cli_exit say_bad_option(char **arguments, bool lacks_value,
                                  const struct option *long_options) {
    const char *written = arguments[optind - 1];
    if (strncmp(written, "--", 2) != 0) {
        return bp_cli_say_usage(lacks_value ? "option '-%c' needs a value" : "unknown option '-%c'",
                                optopt);
    }
    int length = (int)strcspn(written, "=");
    if (lacks_value) {
        return bp_cli_say_usage("option '%.*s' needs a value", length, written);
    }
    if (optopt != 0) {
        return bp_cli_say_usage("option '%.*s' takes no value", length, written);
    }
    char word[64], suggestion[BP_CLI_SUGGESTION_BYTES];
    bp_suggestion near = {.word = word};
    size_t alike = 0; /* it may have been shortened so far that several begin with it */
    (void)snprintf(word, sizeof word, "%.*s", length - 2, written + 2);
    for (const struct option *option = long_options; option->name != NULL; option++) {
        alike += length > 2 && strncmp(option->name, written + 2, (size_t)length - 2) == 0;
        bp_suggest(&near, option->name);
    }
    if (alike > 1) {
        return bp_cli_say_usage("option '%.*s' is ambiguous", length, written);
    }
    return bp_cli_say_usage("unknown option '%.*s'%s", length, written,
                            bp_cli_suggest(&near, "--", suggestion));
}

/* A command that takes --name was perhaps meant to look at a process of that name. */
static bp_cli_exit say_unexpected(const bp_cli_command *command, const char *argument) {
    const bp_cli_option *option = command->options;
    while (option->name != NULL && strcmp(option->name, "name") != 0) {
        option++;
    }
    return option->name == NULL
               ? bp_cli_say_usage("unexpected argument '%s'", argument)
               : bp_cli_say_usage("unexpected argument '%s': a process is named by --name or --pid",
                                  argument);
}

bool bp_cli_read_options(const bp_cli_command *command, int argument_count, char **arguments,
                         void *options, char ***ret_operands, bp_cli_exit *ret_exit) {
    getopt_tables tables;
    make_tables(command, &tables);
    *ret_exit = BP_CLI_USAGE;
    int code;
    while ((code = getopt_long(argument_count, arguments, tables.short_options, tables.long_options,
                               NULL)) != -1) {
        if (code == '?' || code == ':') {
            *ret_exit = say_bad_option(arguments, code == ':', tables.long_options);
            return false;
        }
        if (code == 'h') {
            *ret_exit = bp_cli_print_help(command);
            return false;
        }
        const bp_cli_option *option = command->options;
        if (code >= first_code) {
            option += code - first_code;
        } else {
            while (option->letter != (char)code) {
                option++;
            }
        }
        errno = 0;
        void *field = (char *)options + option->offset;
        if (option->read == NULL) {
            *(bool *)field = true;
        } else if (!option->read(option, optarg, field)) {
            *ret_exit = errno == ENOMEM ? BP_CLI_FAILED : BP_CLI_USAGE;
            return false;
        }
    }
    if (argument_count - optind > command->operand_max) {
        *ret_exit = say_unexpected(command, arguments[optind + command->operand_max]);
        return false;
    }
    if (argument_count == optind && command->needed != NULL) {
        *ret_exit = bp_cli_say_usage("%s is missing", command->needed);
        return false;
    }
    *ret_operands = arguments + optind;
    return true;
}
