#include "cli/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "entries/redact_report.h"
#include "run/aside.h"

enum { piece_bytes = 64 * 1024 };

/* /dev/shm holds files. */
static bool is_below_dev(const char *absolute) {
    const char *at = absolute + strspn(absolute, "/");
    bool is_below = strncmp(at, "dev/", 4) == 0 || strcmp(at, "dev") == 0;
    bool is_memory = strncmp(at, "dev/shm", 7) == 0 && (at[7] == '/' || at[7] == '\0');
    return is_below && !is_memory;
}

static bool leads_below_dev(const char *path) {
    char *real = realpath(path, NULL);
    bool is_below = real != NULL && is_below_dev(real);
    free(real);
    return is_below;
}

/* As it is written, where it leads, and where a file would be that is not there yet. */
static bool is_device(const char *path) {
    char *absolute = NULL;
    if (bp_file_absolute_path(path, &absolute, NULL) != BUGPACK_OK) {
        return false;
    }
    bool is_device = is_below_dev(absolute) || leads_below_dev(absolute);
    char *name = strrchr(absolute, '/');
    if (name != NULL) {
        *name = '\0';
        is_device = is_device || leads_below_dev(absolute);
    }
    free(absolute);
    return is_device;
}

static const uint32_t stall_ms = 10000;

/* In a child. */
static void look(const void *path, void *answer, int out_fd) {
    (void)answer;
    (void)out_fd;
    (void)is_device(path);
    bp_file_close(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* A file system that does not answer would keep this program for ever. */
static bool is_stalled(const char *path) {
    bp_child child = {.pid = 0};
    char no_answer;
    const bp_aside aside = {.work = look, .context = path, .stall_ms = stall_ms};
    return bp_run_aside(&aside, NULL, NULL, &no_answer, &child) == BUGPACK_ERR_TIMEOUT;
}

bool bp_cli_check_current_dir(void) {
    if (is_stalled(".")) {
        bp_cli_say("the file system of the current directory does not answer: use --output-dir");
        return false;
    }
    return true;
}

static bool read_path(const bp_cli_option *option, const char *text, void *field,
                      const char *advice) {
    if (is_stalled(text)) {
        bp_cli_say_usage("--%s: the file system of '%s' does not answer", option->name, text);
        return false;
    }
    if (is_device(text)) {
        bp_cli_say_usage("--%s: '%s' is no place for a report%s", option->name, text, advice);
        return false;
    }
    return bp_cli_read_text(option, text, field);
}

bool bp_cli_read_output(const bp_cli_option *option, const char *text, void *field) {
    return read_path(option, text, field, "; - is standard output");
}

bool bp_cli_read_output_dir(const bp_cli_option *option, const char *text, void *field) {
    return read_path(option, text, field, "");
}

bool bp_cli_is_streamed(const char *output_path) {
    return output_path != NULL && strcmp(output_path, "-") == 0;
}

char *bp_cli_streamed_begin(bp_cli_exit *ret_exit) {
    const char *above = getenv("TMPDIR");
    char *dir = NULL;
    above = above != NULL && above[0] == '/' ? above : "/tmp";
    if (isatty(STDOUT_FILENO)) {
        *ret_exit = bp_cli_say_usage("--output - writes the zip to standard output, which is a "
                                     "terminal");
        return NULL;
    }
    *ret_exit = BP_CLI_FAILED;
    if (is_stalled(above)) {
        bp_cli_say("the file system of '%s' does not answer: set TMPDIR", above);
        return NULL;
    }
    if (asprintf(&dir, "%s/bugpack-XXXXXX", above) < 0) {
        bp_cli_say("cannot prepare a report: out of memory");
        return NULL;
    }
    if (mkdtemp(dir) == NULL) {
        bp_cli_say("cannot make a directory \"%s\": %s", dir, strerror(errno));
        free(dir);
        return NULL;
    }
    return dir;
}

static bool copy(int fd) {
    char piece[piece_bytes];
    ssize_t count;
    int failure = 0;
    do {
        count = read(fd, piece, sizeof piece);
        if (count > 0) {
            failure = bp_file_write_all(STDOUT_FILENO, piece, (size_t)count);
        }
    } while (failure == 0 && (count > 0 || (count < 0 && errno == EINTR)));
    if (failure != 0 || count < 0) {
        bp_cli_say("cannot write the report to standard output: %s",
                   strerror(failure != 0 ? failure : errno));
        return false;
    }
    return true;
}

bool bp_cli_streamed_end(char *dir, const char *path) {
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool is_good = path == NULL || fd >= 0;
    if (!is_good) {
        bp_cli_say("cannot read \"%s\": %s", path, strerror(errno));
    }
    if (path != NULL) {
        (void)unlink(path);
    }
    if (dir != NULL) {
        (void)rmdir(dir);
        free(dir);
    }
    is_good = is_good && (fd < 0 || copy(fd));
    bp_file_close(fd);
    return is_good;
}

/* Digits alone. */
static bool read_id(const char *name, uint32_t *ret_id) {
    const char *text = getenv(name);
    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *ret_id = (uint32_t)value;
    return *end == '\0' && errno == 0 && value < UINT32_MAX;
}

/* Who called sudo: what root writes for them is theirs. False where nobody did: only root can give
 * a file away, and nobody else has a reason to. */
static bool find_caller(uid_t *ret_uid, gid_t *ret_gid) {
    return getuid() == 0 && geteuid() == 0 && read_id("SUDO_UID", ret_uid) &&
           read_id("SUDO_GID", ret_gid) && *ret_uid != 0;
}

/* By its descriptor, before it has a name. */
static void give_to_caller(int fd) {
    uid_t uid;
    gid_t gid;
    if (find_caller(&uid, &gid) && fchown(fd, uid, gid) != 0) {
        bp_cli_say("what was written still belongs to root: %s", strerror(errno));
    }
}

enum { look_ms = 100, answer_bytes = 64 };

typedef enum answer { ANSWER_NO, ANSWER_YES, ANSWER_OTHER } answer;

bugpack_status bp_cli_review_list(int fd, const char *path, bool as_json, bp_buffer *out,
                                  bugpack_error *error) {
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
    return bp_redact_list(fd, path, &names, as_json, out, error);
}

static bugpack_status print_list(int zip_fd, bugpack_error *error) {
    bp_buffer text;
    int fd = fcntl(zip_fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot list the report");
    }
    bp_buffer_init(&text, (size_t)64 << 20);
    bugpack_status status = bp_cli_review_list(fd, "the report", false, &text, error);
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

/*
 * Prints what is in the report of `zip_fd`, and waits for an answer. OK is a yes. CANCELLED is
 * everything else: no, an empty line, the end of input, a hang-up, a signal that ends the wait for
 * the report (cli/progress.h). What was typed before the question does not count. In the background
 * it waits until it comes to the foreground.
 */
static bugpack_status ask(int zip_fd, bugpack_error *error) {
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

bool bp_cli_review_prepare(bool is_reviewed, bp_cli_exit *ret_exit) {
    if (is_reviewed && (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)) {
        *ret_exit = bp_cli_say_usage(
            "--review needs a terminal as standard input and standard error, to ask there");
        return false;
    }
    return true;
}

/* Bugpack_before_publish_callbacks. */
static bugpack_status give(const bugpack_unpublished *report, void *context, bugpack_error *error) {
    (void)context;
    (void)error;
    give_to_caller(report->zip_fd);
    return BUGPACK_OK;
}

static bugpack_status review(const bugpack_unpublished *report, void *context,
                             bugpack_error *error) {
    bugpack_status status = ask(report->zip_fd, error);
    return status == BUGPACK_OK ? give(report, context, error) : status;
}

bugpack_before_publish_callback *bp_cli_publish_call(bool is_reviewed) {
    uid_t uid;
    gid_t gid;
    return is_reviewed ? review : find_caller(&uid, &gid) ? give : NULL;
}
