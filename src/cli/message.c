#include "cli/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/text.h"

enum { sentence_bytes = 2048 };

bool bp_cli_hold_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) {
            continue;
        }
        /* open gives the lowest free number, which is this one, as all below it are open. */
        int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (open("/dev/null", flags) != fd) {
            return false;
        }
    }
    return true;
}

static void say(const char *format, va_list arguments) BUGPACK_PRINTF(1, 0);

static void say(const char *format, va_list arguments) {
    char sentence[sentence_bytes];
    char escaped[sentence_bytes];
    if (vsnprintf(sentence, sizeof sentence, format, arguments) < 0) {
        return;
    }
    bp_cli_text_escape(sentence, escaped, sizeof escaped);
    (void)fprintf(stderr, "bugpack: %s\n", escaped);
}

void bp_cli_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

bp_cli_exit bp_cli_say_usage(const char *command, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "Try 'bugpack%s%s --help'.\n", command != NULL ? " " : "",
                  command != NULL ? command : "");
    return BP_CLI_USAGE;
}

bool bp_cli_finish_output(void) {
    errno = 0;
    bool failed_before = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed_before) {
        return true;
    }
    bp_cli_say("cannot write to standard output: %s",
               errno != 0 ? strerror(errno) : "an earlier write failed");
    return false;
}

bp_cli_exit bp_cli_print(const char *text) {
    (void)fputs(text, stdout);
    return bp_cli_finish_output() ? BP_CLI_COMPLETE : BP_CLI_FAILED;
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
