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

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "inspect/html.h"
#include "inspect/redact_report.h"
#include "probe/stacks.h"
#include "run/through.h"

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

static bool read_path(const bp_cli_option *option, const char *text, void *field,
                      const char *advice) {
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
    if (isatty(STDOUT_FILENO)) {
        *ret_exit = bp_cli_say_usage("--output - writes the zip to standard output, which is a "
                                     "terminal");
        return NULL;
    }
    *ret_exit = BP_CLI_FAILED;
    if (asprintf(&dir, "%s/bugpack-XXXXXX", above != NULL && above[0] == '/' ? above : "/tmp") <
        0) {
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

/* A bp_sink. */
static bugpack_status write_to(void *fd, const void *bytes, size_t byte_count) {
    return bp_file_write_all(*(const int *)fd, bytes, byte_count) == 0 ? BUGPACK_OK
                                                                       : BUGPACK_ERR_IO;
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

static bugpack_status write_page(const page *made, int zip_fd, bugpack_error *error) {
    static const uint64_t page_max_bytes = (uint64_t)256 << 20;
    char zip[32];
    bp_facts *facts = NULL;
    (void)snprintf(zip, sizeof zip, "/dev/fd/%d", zip_fd);
    int fd = open(made->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot write \"%s\"", made->file);
    }
    bugpack_status status =
        bp_facts_open(zip, page_max_bytes, false, bp_frame_finder_new(), &facts, error);
    if (status == BUGPACK_OK) {
        facts->left_bytes = page_max_bytes;
        status = bp_html_write(facts, write_to, &fd, error);
    }
    bp_facts_close(facts);
    give_to_caller(fd);
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
    give_to_caller(fd);
    bp_file_close(fd);
    (void)fprintf(stderr, "to read it all: file://%s (removed with your answer)\n", made->file);
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
 * Prints what is in the report of `zip_fd`, and waits for an answer. Until then there is a page of
 * it, which only the user can read; with `is_secret` on a file system in memory alone, or nowhere.
 * OK is a yes. CANCELLED is everything else: no, an empty line, the end of input, a hang-up, a
 * signal that ends the wait for the report (cli/progress.h). What was typed before the question
 * does not count. In the background it waits until it comes to the foreground.
 */
static bugpack_status ask(int zip_fd, bool is_secret, bugpack_error *error) {
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
    if (made.dir[0] != '\0') {
        (void)unlink(made.file);
        (void)rmdir(made.dir);
    }
    bp_cli_progress_pause(false);
    if (status == BUGPACK_OK && given == ANSWER_NO) {
        status = bp_fail(error, BUGPACK_ERR_CANCELLED, "the report is not written");
    }
    return status;
}

/* It prints as it reads, so the limit does not depend on the size of the report. */
enum { stall_ms = 30000, trial_ms = 10000, argument_max = 16 };

/* The programs, and how they encrypt standard input to standard output. */
typedef struct encryptor {
    const char *suffix;
    const char *arguments[argument_max];
    const char *recipient_option;
} encryptor;

static const encryptor age = {".age", {"age", "--encrypt"}, "--recipient"};

/*
 * No question and no look at the web of trust: the user has named the key. Nothing is written to
 * the directory of the key ring, which --no-options does not create either. A zip does not compress
 * again.
 */
static const encryptor gpg = {".gpg",
                              {"gpg", "--batch", "--no-tty", "--trust-model=always", "--no-options",
                               "--no-auto-check-trustdb", "--no-auto-key-locate",
                               "--no-random-seed-file", "--lock-never", "--no-armor",
                               "--compress-algo=none", "--encrypt"},
                              "--recipient"};

static bool is_of_age(const char *recipient) {
    return strncmp(recipient, "age1", 4) == 0 || strncmp(recipient, "ssh-", 4) == 0;
}

static const encryptor *find_encryptor(const bp_cli_publish *publish) {
    return is_of_age(publish->recipients[0]) ? &age : &gpg;
}

bool bp_cli_read_recipient(const bp_cli_option *option, const char *text, void *field) {
    bp_cli_publish *publish =
        (bp_cli_publish *)(void *)((char *)field - offsetof(bp_cli_publish, recipients));
    if (text[0] == '\0' || text[0] == '-') {
        bp_cli_say_usage("--%s takes a recipient, not '%s'", option->name, text);
        return false;
    }
    if (publish->recipient_count == BP_CLI_RECIPIENT_MAX) {
        bp_cli_say_usage("--%s takes at most %d recipients", option->name, BP_CLI_RECIPIENT_MAX);
        return false;
    }
    if (publish->recipient_count > 0 && is_of_age(text) != is_of_age(publish->recipients[0])) {
        bp_cli_say_usage("--%s takes recipients of age or of gpg, not of both", option->name);
        return false;
    }
    publish->recipients[publish->recipient_count++] = text;
    return true;
}

static bugpack_status pass_through(const bp_cli_publish *publish, int from_fd, int to_fd,
                                   uint64_t deadline_ns, bugpack_error *error) {
    const encryptor *by = find_encryptor(publish);
    const char *arguments[argument_max + 2 * BP_CLI_RECIPIENT_MAX];
    size_t count = 0;
    for (; by->arguments[count] != NULL; count++) {
        arguments[count] = by->arguments[count];
    }
    for (size_t i = 0; i < publish->recipient_count; i++) {
        arguments[count++] = by->recipient_option;
        arguments[count++] = publish->recipients[i];
    }
    arguments[count] = NULL;
    const bp_run_through through = {.arguments = arguments,
                                    .from_fd = from_fd,
                                    .sink = write_to,
                                    .context = &to_fd,
                                    .stall_ms = stall_ms,
                                    .deadline_ns = deadline_ns,
                                    .is_cancelled = bp_cli_progress_is_ended};
    bugpack_error failure = BUGPACK_ERROR_INIT;
    bp_run_program_end end;
    bugpack_status status = bp_run_program(&through, &end, &failure);
    if (status == BUGPACK_OK) {
        status = bp_run_judge(&through, &end, &failure);
    }
    return status == BUGPACK_OK || status == BUGPACK_ERR_CANCELLED
               ? status
               : bp_fail(error, status, "cannot encrypt the report: %s", failure.message);
}

/* So that a name that is wrong costs no report. */
static bugpack_status try_recipients(const bp_cli_publish *publish, bugpack_error *error) {
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot open /dev/null");
    }
    bugpack_status status =
        pass_through(publish, fd, fd, bp_clock_monotonic_ns() + trial_ms * BP_NS_PER_MS, error);
    bp_file_close(fd);
    return status;
}

bool bp_cli_publish_prepare(const bp_cli_publish *publish, bp_cli_exit *ret_exit) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bool can_ask = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
    if (publish->is_reviewed && !can_ask) {
        *ret_exit = bp_cli_say_usage(
            "--review needs a terminal as standard input and standard error, to ask there");
        return false;
    }
    if (publish->recipient_count > 0 && try_recipients(publish, &error) != BUGPACK_OK) {
        *ret_exit = bp_cli_say_error(&error);
        return false;
    }
    return true;
}

static bugpack_status review_and_encrypt(const bugpack_unpublished *report,
                                         const bp_cli_publish *publish, bugpack_error *error) {
    uint64_t began_ns = bp_clock_monotonic_ns();
    bugpack_status status = BUGPACK_OK;
    if (publish->is_reviewed) {
        status = ask(report->zip_fd, publish->recipient_count > 0, error);
    }
    if (status != BUGPACK_OK || publish->recipient_count == 0) {
        return status;
    }
    /* The time limit does not count how long somebody has read. */
    uint64_t deadline_ns =
        publish->deadline_ns == 0 ? 0 : publish->deadline_ns + bp_clock_monotonic_ns() - began_ns;
    return pass_through(publish, report->zip_fd, report->output_fd, deadline_ns, error);
}

/* A bugpack_before_publish_callback. */
static bugpack_status before_publish(const bugpack_unpublished *report, void *publish,
                                     bugpack_error *error) {
    bugpack_status status = review_and_encrypt(report, publish, error);
    if (status == BUGPACK_OK) {
        give_to_caller(report->output_fd >= 0 ? report->output_fd : report->zip_fd);
    }
    return status;
}

bugpack_before_publish_callback *bp_cli_publish_call(const bp_cli_publish *publish) {
    uid_t uid;
    gid_t gid;
    bool has_work = publish->is_reviewed || publish->recipient_count > 0;
    return has_work || find_caller(&uid, &gid) ? before_publish : NULL;
}

const char *bp_cli_publish_suffix(const bp_cli_publish *publish) {
    return publish->recipient_count > 0 ? find_encryptor(publish)->suffix : NULL;
}
