#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

enum { message_bytes = 2048 };

const char *bp_cli_current_command;
bool bp_cli_pipe_was_ignored;

static void do_nothing(int number) {
    (void)number;
}

bool bp_cli_prepare_output(void) {
    /* A handler, because a command that is started must not inherit an ignored signal. */
    const struct sigaction survive = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    struct sigaction before;
    if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
        (void)sigaction(SIGXFSZ, &survive, NULL);
    }
    bp_cli_pipe_was_ignored = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) {
            continue;
        }
        /* open returns the lowest free number, which is this one: all below it are open. */
        int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (open("/dev/null", flags) != fd) {
            return false;
        }
    }
    return true;
}

/* At most 4 bytes are looked at, and none after the NUL. */
size_t bp_cli_next_character(const char *text, bool *ret_is_safe) {
    const unsigned char *bytes = (const unsigned char *)text;
    size_t available = strnlen(text, 4);
    uint32_t code;
    size_t length = bp_utf8_sequence_length(bytes, available);
    *ret_is_safe = length > 0 && bp_utf8_control(bytes, available, &code) == 0;
    return length > 0 ? length : 1;
}

void bp_cli_escape(const char *text, char *out, size_t out_bytes) {
    size_t used = 0;
    while (*text != '\0') {
        bool is_safe;
        size_t length = bp_cli_next_character(text, &is_safe);
        if (used + (is_safe ? length : 4 * length) >= out_bytes) {
            break;
        }
        for (size_t i = 0; i < length; i++) {
            used += (size_t)snprintf(out + used, out_bytes - used, is_safe ? "%c" : "\\x%02x",
                                     (unsigned char)text[i]);
        }
        text += length;
    }
    out[used] = '\0';
}

void bp_cli_print_escaped(FILE *out, const char *text) {
    while (*text != '\0') {
        bool is_safe;
        size_t length = bp_cli_next_character(text, &is_safe);
        for (size_t i = 0; i < length; i++) {
            (void)fprintf(out, is_safe ? "%c" : "\\x%02x", (unsigned char)text[i]);
        }
        text += length;
    }
}

void bp_cli_print_json(FILE *out, bp_json *json) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_json_finish(json, &error) == BUGPACK_OK) {
        (void)fwrite(json->out->data, 1, json->out->size, out);
    } else {
        bp_cli_say("%s", error.message);
    }
    bp_buffer_release(json->out);
}

BUGPACK_PRINTF(1, 0)
static void say(const char *format, va_list arguments) {
    char message[message_bytes];
    char escaped[message_bytes];
    if (vsnprintf(message, sizeof message, format, arguments) >= 0) {
        bp_cli_escape(message, escaped, sizeof escaped);
        (void)fprintf(stderr, "bugpack: %s\n", escaped); /* one write */
    }
}

void bp_cli_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void bp_cli_say_unsearched(const bugpack_report_result *result) {
    if (result->not_searched[0] != '\0') {
        bp_cli_say("not searched for secrets: %s", result->not_searched);
    }
}

bp_cli_exit bp_cli_say_usage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "Try 'bugpack%s%s --help'.\n", bp_cli_current_command != NULL ? " " : "",
                  bp_cli_current_command != NULL ? bp_cli_current_command : "");
    return BP_CLI_USAGE;
}

bp_cli_exit bp_cli_exit_of(bugpack_status status) {
    switch (status) {
    case BUGPACK_OK:
        return BP_CLI_COMPLETE;
    case BUGPACK_ERR_INVALID:
        return BP_CLI_USAGE;
    case BUGPACK_ERR_NO_PROCESS:
        return BP_CLI_NO_PROCESS;
    case BUGPACK_ERR_TIMEOUT:
        return BP_CLI_TIMED_OUT;
    default:
        return BP_CLI_FAILED;
    }
}

bp_cli_exit bp_cli_say_error(const bugpack_error *error) {
    bp_cli_say("%s", error->message);
    return bp_cli_exit_of(error->status);
}

bp_cli_exit bp_cli_say_failed(const bugpack_error *error) {
    bp_cli_say("%s", error->message);
    return BP_CLI_FAILED;
}

bp_cli_exit bp_cli_finish_output(void) {
    errno = 0;
    bool failed_before = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed_before) {
        return BP_CLI_COMPLETE;
    }
    bp_cli_say("cannot write to standard output: %s",
               errno != 0 ? strerror(errno) : "an earlier write failed");
    return BP_CLI_FAILED;
}

bp_cli_exit bp_cli_finish_report(const char *path, uint32_t missing_count) {
    if (bp_cli_finish_output() != BP_CLI_COMPLETE) {
        bp_cli_say("the report is written: %s", path);
        return BP_CLI_FAILED;
    }
    return missing_count == 0 ? BP_CLI_COMPLETE : BP_CLI_INCOMPLETE;
}

bool bp_cli_is_terminal(int fd) {
    const char *terminal = getenv("TERM");
    return isatty(fd) == 1 && terminal != NULL && terminal[0] != '\0' &&
           strcmp(terminal, "dumb") != 0;
}

bool bp_cli_wants_colour(void) {
    const char *no_color = getenv("NO_COLOR");
    return no_color == NULL || no_color[0] == '\0';
}
