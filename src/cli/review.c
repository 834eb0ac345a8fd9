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

#include "base/file.h"
#include "base/status.h"
#include "cli/caller.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "inspect/html.h"
#include "inspect/redact_list.h"
#include "probe/stacks.h"

enum { look_ms = 100, answer_bytes = 64 };

typedef enum answer { ANSWER_NO, ANSWER_YES, ANSWER_OTHER } answer;

bool bp_cli_review_is_possible(void) {
    return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

bugpack_status bp_cli_review_list(int fd, const char *path, bp_buffer *out, bugpack_error *error) {
    static const char *const variables[] = {"USER", "LOGNAME", "SUDO_USER"};
    enum { variable_count = sizeof variables / sizeof variables[0] };
    char machine[256] = "";
    bp_person_names names = {.count = 0};
    for (size_t i = 0; i < variable_count; i++) {
        const char *name = getenv(variables[i]);
        if (name != NULL && strcmp(name, "root") != 0) {
            names.users[names.count++] = name;
        }
    }
    if (gethostname(machine, sizeof machine - 1) == 0) {
        names.machine = machine;
    }
    return bp_redact_list(fd, path, &names, out, error);
}

static bugpack_status print_list(int zip_fd, bugpack_error *error) {
    bp_buffer text;
    int fd = fcntl(zip_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot list the report");
    }
    bp_buffer_init(&text, (size_t)64 << 20);
    bugpack_status status = bp_cli_review_list(fd, "the report", &text, error);
    if (status == BUGPACK_OK) {
        (void)fprintf(stderr, "\r\033[K%s", bp_buffer_text(&text));
    }
    bp_buffer_release(&text);
    return status;
}

/* The page of a report, while its user reads it. */
typedef struct page {
    char dir[256], file[256 + sizeof "/report.html"];
} page;

static bool make_dir(page *made, const char *above) {
    int length = above == NULL || above[0] != '/'
                     ? -1
                     : snprintf(made->dir, sizeof made->dir, "%s/bugpack-review-XXXXXX", above);
    bool is_made = length > 0 && (size_t)length < sizeof made->dir && mkdtemp(made->dir) != NULL;
    if (is_made) {
        (void)snprintf(made->file, sizeof made->file, "%s/report.html", made->dir);
    } else {
        made->dir[0] = '\0';
    }
    return is_made;
}

/* A bp_sink: the context is a descriptor. */
static bugpack_status write_fd(void *fd, const void *bytes, size_t byte_count) {
    return bp_file_write_all(*(int *)fd, bytes, byte_count) == 0 ? BUGPACK_OK : BUGPACK_ERR_IO;
}

static bugpack_status write_page(const page *made, int zip_fd, bugpack_error *error) {
    static const uint64_t page_max_bytes = (uint64_t)256 << 20;
    char zip[32];
    bp_summary *summary = NULL;
    (void)snprintf(zip, sizeof zip, "/dev/fd/%d", zip_fd);
    int fd = open(made->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot write \"%s\"", made->file);
    }
    bugpack_status status =
        bp_summary_open(zip, page_max_bytes, false, bp_frame_finder_new(), &summary, error);
    if (status == BUGPACK_OK) {
        summary->left_bytes = page_max_bytes;
        status = bp_html_write(summary, write_fd, &fd, error);
    }
    bp_summary_close(summary);
    bp_cli_give_to_caller(fd);
    bp_file_close(fd);
    return status;
}

/* Whoever called sudo looks at it, too. */
static void open_page(page *made, int zip_fd, bool is_secret) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    *made = (page){.dir = ""};
    bool is_made = make_dir(made, getenv("XDG_RUNTIME_DIR")) || make_dir(made, "/dev/shm") ||
                   (!is_secret && (make_dir(made, getenv("TMPDIR")) || make_dir(made, "/tmp")));
    if (!is_made) {
        return;
    }
    if (write_page(made, zip_fd, &error) != BUGPACK_OK) {
        bp_cli_say("no page of the report: %s", error.message);
        return;
    }
    int fd = open(made->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bp_cli_give_to_caller(fd);
    bp_file_close(fd);
    (void)fprintf(stderr, "to read it all: file://%s (removed with your answer)\n", made->file);
}

static void remove_page(const page *made) {
    if (made->dir[0] != '\0') {
        (void)unlink(made->file);
        (void)rmdir(made->dir);
    }
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

bugpack_status bp_cli_review_ask(int zip_fd, bool is_secret, bugpack_error *error) {
    answer given = ANSWER_OTHER;
    page made = {.dir = ""};
    bp_cli_progress_pause(true);
    bugpack_status status = print_list(zip_fd, error);
    if (status == BUGPACK_OK) {
        open_page(&made, zip_fd, is_secret);
    }
    (void)tcflush(STDIN_FILENO, TCIFLUSH);
    while (status == BUGPACK_OK && given == ANSWER_OTHER) {
        (void)fputs("Write this report? [y/N] ", stderr);
        given = read_answer();
    }
    remove_page(&made);
    bp_cli_progress_pause(false);
    if (status == BUGPACK_OK && given == ANSWER_NO) {
        status = bp_fail(error, BUGPACK_ERR_CANCELLED, "the report is not written");
    }
    return status;
}
