#include "cli/option.h"

#include <inttypes.h>
#include <string.h>

#include <bugpack/session.h>

#include "cli/message.h"

/* Whether a long option was shortened so far that several begin with it. */
static bool is_ambiguous(const char *written, size_t length, const struct option *long_options) {
    size_t count = 0;
    for (const struct option *option = long_options; option->name != NULL; option++) {
        count += length > 2 && strncmp(option->name, written + 2, length - 2) == 0;
    }
    return count > 1;
}

/* The option as the user wrote it, without its value: getopt leaves optind behind it. */
static void say_bad_option(const char *command, char **arguments, bool lacks_value,
                           const struct option *long_options) {
    const char *written = arguments[optind - 1];
    if (strncmp(written, "--", 2) != 0) {
        bp_cli_say_usage(
            command, lacks_value ? "option '-%c' needs a value" : "unknown option '-%c'", optopt);
        return;
    }
    int length = (int)strcspn(written, "=");
    if (lacks_value) {
        bp_cli_say_usage(command, "option '%.*s' needs a value", length, written);
    } else if (optopt != 0) {
        bp_cli_say_usage(command, "option '%.*s' takes no value", length, written);
    } else if (is_ambiguous(written, (size_t)length, long_options)) {
        bp_cli_say_usage(command, "option '%.*s' is ambiguous", length, written);
    } else {
        bp_cli_say_usage(command, "unknown option '%.*s'", length, written);
    }
}

/* The next option, with at most `operand_max` arguments that are none. */
static int next_option(const char *command, int argument_count, char **arguments,
                       const char *short_options, const struct option *long_options,
                       int operand_max) {
    int code = getopt_long(argument_count, arguments, short_options, long_options, NULL);
    if (code == '?' || code == ':') {
        say_bad_option(command, arguments, code == ':', long_options);
        return BP_CLI_OPTION_BAD;
    }
    if (code == -1 && argument_count - optind > operand_max) {
        bp_cli_say_usage(command, "unexpected argument '%s'", arguments[optind + operand_max]);
        return BP_CLI_OPTION_BAD;
    }
    return code == -1 ? BP_CLI_OPTION_END : code;
}

int bp_cli_option_next(const char *command, int argument_count, char **arguments,
                       const char *short_options, const struct option *long_options) {
    return next_option(command, argument_count, arguments, short_options, long_options, 0);
}

int bp_cli_option_next_or_operand(const char *command, int argument_count, char **arguments,
                                  const char *short_options, const struct option *long_options,
                                  const char **ret_operand) {
    int code = next_option(command, argument_count, arguments, short_options, long_options, 1);
    if (code == BP_CLI_OPTION_END && optind < argument_count) {
        *ret_operand = arguments[optind];
    }
    return code;
}

int bp_cli_option_next_or_operands(const char *command, int argument_count, char **arguments,
                                   const char *short_options, const struct option *long_options,
                                   int operand_max, const char **ret_operands) {
    int code =
        next_option(command, argument_count, arguments, short_options, long_options, operand_max);
    for (int i = 0; code == BP_CLI_OPTION_END && i < operand_max; i++) {
        ret_operands[i] = optind + i < argument_count ? arguments[optind + i] : NULL;
    }
    return code;
}

int bp_cli_option_next_or_command(const char *command, int argument_count, char **arguments,
                                  const char *short_options, const struct option *long_options,
                                  char ***ret_command) {
    int code = next_option(command, argument_count, arguments, short_options, long_options,
                           argument_count);
    if (code == BP_CLI_OPTION_END && optind < argument_count) {
        *ret_command = arguments + optind;
    }
    return code;
}

/* Reads digits up to the first other byte, which is where `*ret_end` then points. */
static bool read_digits(const char *text, uint64_t *ret_value, const char **ret_end) {
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (at == text) {
        return false;
    }
    *ret_value = value;
    *ret_end = at;
    return true;
}

bool bp_cli_option_number(const char *text, uint64_t smallest, uint64_t largest,
                          uint64_t *ret_value) {
    uint64_t value;
    const char *end;
    if (!read_digits(text, &value, &end) || *end != '\0' || value < smallest || value > largest) {
        return false;
    }
    *ret_value = value;
    return true;
}

bool bp_cli_option_size(const char *text, uint64_t *ret_bytes) {
    static const char suffixes[] = "KMG";
    uint64_t value;
    const char *end;
    unsigned shift = 0;
    if (!read_digits(text, &value, &end)) {
        return false;
    }
    if (*end != '\0') {
        const char *suffix = strchr(suffixes, *end);
        if (suffix == NULL || end[1] != '\0') {
            return false;
        }
        shift = 10u * (unsigned)(suffix - suffixes + 1);
    }
    if (value == 0 || value > UINT64_MAX >> shift) {
        return false;
    }
    *ret_bytes = value << shift;
    return true;
}

bool bp_cli_option_pid(const char *command, const char *text, pid_t *ret_pid) {
    uint64_t value;
    if (!bp_cli_option_number(text, 1, INT32_MAX, &value)) {
        bp_cli_say_usage(command, "--pid takes a process id from 1 to %" PRId32 ", not '%s'",
                         INT32_MAX, text);
        return false;
    }
    *ret_pid = (pid_t)value;
    return true;
}

bool bp_cli_option_window(const char *command, const char *text, uint32_t *ret_window_ms) {
    uint64_t value;
    if (!bp_cli_option_number(text, 0, BUGPACK_SAMPLE_WINDOW_MAX_MS, &value)) {
        bp_cli_say_usage(command, "--window takes milliseconds from 0 to %u, not '%s'",
                         BUGPACK_SAMPLE_WINDOW_MAX_MS, text);
        return false;
    }
    *ret_window_ms = (uint32_t)value;
    return true;
}
