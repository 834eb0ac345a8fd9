#include "cli/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/caller.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/review.h"
#include "run/through.h"

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

/* A bp_sink. */
static bugpack_status write_to(void *fd, const void *bytes, size_t byte_count) {
    return bp_file_write_all(*(const int *)fd, bytes, byte_count) == 0 ? BUGPACK_OK
                                                                       : BUGPACK_ERR_IO;
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
    if (publish->is_reviewed && !bp_cli_review_is_possible()) {
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
    bugpack_status status =
        publish->is_reviewed
            ? bp_cli_review_ask(report->zip_fd, publish->recipient_count > 0, error)
            : BUGPACK_OK;
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
        bp_cli_give_to_caller(report->output_fd >= 0 ? report->output_fd : report->zip_fd);
    }
    return status;
}

bugpack_before_publish_callback *bp_cli_publish_call(const bp_cli_publish *publish) {
    uid_t uid;
    gid_t gid;
    bool has_work = publish->is_reviewed || publish->recipient_count > 0;
    return has_work || bp_cli_find_caller(&uid, &gid) ? before_publish : NULL;
}

const char *bp_cli_publish_suffix(const bp_cli_publish *publish) {
    return publish->recipient_count > 0 ? find_encryptor(publish)->suffix : NULL;
}
