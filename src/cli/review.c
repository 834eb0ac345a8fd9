#include "cli/review.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/progress.h"
#include "inspect/redact_list.h"

enum { look_ms = 100, answer_bytes = 64 };

typedef enum answer { ANSWER_NO, ANSWER_YES, ANSWER_OTHER } answer;

bool bp_cli_review_is_possible(void) {
    return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

static bugpack_status print_list(int zip_fd, bugpack_error *error) {
    bp_buffer text;
    int fd = fcntl(zip_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot list the report");
    }
    bp_buffer_init(&text, (size_t)64 << 20);
    bugpack_status status = bp_redact_list(fd, "the report", &text, error);
    if (status == BUGPACK_OK) {
        (void)fprintf(stderr, "\r\033[K%s", bp_buffer_text(&text));
    }
    bp_buffer_release(&text);
    return status;
}

/* False when a signal has come. A terminal can be read in the foreground alone. */
static bool wait_for_line(void) {
    while (!bp_cli_progress_is_ended()) {
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

bugpack_status bp_cli_review_ask(int zip_fd, bugpack_error *error) {
    answer given = ANSWER_OTHER;
    bp_cli_progress_pause(true);
    bugpack_status status = print_list(zip_fd, error);
    (void)tcflush(STDIN_FILENO, TCIFLUSH);
    while (status == BUGPACK_OK && given == ANSWER_OTHER) {
        (void)fputs("Write this report? [y/N] ", stderr);
        given = read_answer();
    }
    bp_cli_progress_pause(false);
    if (status == BUGPACK_OK && given == ANSWER_NO) {
        status = bp_fail(error, BUGPACK_ERR_CANCELLED, "the report is not written");
    }
    return status;
}
