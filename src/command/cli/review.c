#include "cli/review.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "entries/redact_list.h"

enum { look_ms = 100, answer_bytes = 64 };

typedef enum answer { ANSWER_NO, ANSWER_YES, ANSWER_OTHER } answer;

bugpack_status bp_cli_review_print(FILE *out, int fd, const char *path, bool as_json,
                                   bugpack_error *error) {
    static const char *const variables[] = {"USER", "LOGNAME", "SUDO_USER"};
    enum { variable_count = sizeof variables / sizeof variables[0] };
    char machine[256] = "";
    bp_person_names names = {.count = 0};
    bp_buffer text;
    for (size_t i = 0; i < variable_count; i++) {
        const char *name = getenv(variables[i]);
        if (name != NULL && strcmp(name, "root") != 0) {
            names.users[names.count++] = name;
        }
    }
    if (gethostname(machine, sizeof machine - 1) == 0) {
        names.machine = machine;
    }
    bp_buffer_init(&text, (size_t)64 << 20);
    bugpack_status status = bp_redact_list(fd, path, &names, as_json, &text, error);
    if (status == BUGPACK_OK) {
        (void)fwrite(bp_buffer_text(&text), 1, text.size, out);
    }
    bp_buffer_release(&text);
    return status;
}

/* False when a signal has come. A terminal can be read in the foreground alone. */
static bool wait_for_line(void) {
    while (!bp_cli_interrupt_came()) {
        struct pollfd typed = {STDIN_FILENO, POLLIN, 0};
        pid_t foreground = tcgetpgrp(STDIN_FILENO);
        bool is_ours = foreground < 0 || foreground == getpgrp();
        int ready = poll(is_ours ? &typed : NULL, is_ours ? 1 : 0, look_ms);
        if (ready > 0) {
            return true;
        }
    }
    return false;
}

static answer read_answer(void) {
    char line[answer_bytes];
    ssize_t count;
    do {
        count = wait_for_line() ? read(STDIN_FILENO, line, sizeof line - 1) : 0;
    } while (count < 0 && errno == EINTR);
    if (count <= 0) {
        (void)fputc('\n', stderr);
        return ANSWER_NO;
    }
    line[count] = '\0';
    char *word = line + strspn(line, " \t");
    word[strcspn(word, " \t\r\n")] = '\0';
    if (strcasecmp(word, "y") == 0 || strcasecmp(word, "yes") == 0) {
        return ANSWER_YES;
    }
    return word[0] == '\0' || strcasecmp(word, "n") == 0 || strcasecmp(word, "no") == 0
               ? ANSWER_NO
               : ANSWER_OTHER;
}

bugpack_status bp_cli_review_ask(int zip_fd, const char *question, const char *done,
                                 bugpack_error *error) {
    answer given = ANSWER_OTHER;
    int fd = fcntl(zip_fd, F_DUPFD_CLOEXEC, 0);
    bugpack_status status = fd < 0 ? bp_fail_errno(error, errno, "cannot list the report")
                                   : bp_cli_review_print(stderr, fd, "the report", false, error);
    (void)tcflush(STDIN_FILENO, TCIFLUSH);
    while (status == BUGPACK_OK && given == ANSWER_OTHER) {
        (void)fprintf(stderr, "%s? [y/N] ", question);
        given = read_answer();
    }
    if (status == BUGPACK_OK && given == ANSWER_NO) {
        status = bp_fail(error, BUGPACK_ERR_CANCELLED, "the report is not %s", done);
    }
    return status;
}

bool bp_cli_review_can_ask(void) {
    return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

bool bp_cli_review_prepare(bool is_reviewed, bp_cli_exit *ret_exit) {
    if (is_reviewed && !bp_cli_review_can_ask()) {
        *ret_exit = bp_cli_say_usage(
            "--review needs a terminal as standard input and standard error, to ask there");
        return false;
    }
    return true;
}
