/*
 * A limit on the size of files (RLIMIT_FSIZE): what a public call writes on the host's thread fails
 * with EFBIG. The signal that comes with it neither ends the host nor stays behind.
 */
#include <bugpack/bugpack.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/thread.h"
#include "support/check.h"
#include "support/temp_dir.h"

static temp_dir dir;
static char homes_dir[256];

static bugpack_session *open_session(void) {
    bugpack_session *session = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "limited";
    options.report_dir = dir.path;
    options.recorder.dir = homes_dir;
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    return session;
}

static void limit_to(rlim_t byte_count) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = byte_count;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static bool is_pending(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

static void write_too_much(void) {
    int fd = openat(dir.fd, "too-much", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    CHECK(pwrite(fd, "x", 1, 4096) < 0 && errno == EFBIG);
    (void)close(fd);
}

static void closes_after_a_gap(void) {
    bugpack_session *session = open_session();
    bugpack_gap(session, "net:7");
    limit_to(16);
    bugpack_close(session);
}

static void opens_and_opens_a_channel(void) {
    bugpack_channel *channel = NULL;
    limit_to(100 * 1024);
    bugpack_session *session = open_session();
    CHECK(bugpack_channel_open(session, "net", NULL, &channel, NULL) == BUGPACK_OK);
    limit_to(16);
    CHECK(bugpack_channel_open(session, "audio", NULL, &channel, NULL) == BUGPACK_OK);
    bugpack_close(session);
}

static void expect_failure(const bugpack_report_result *result, void *count) {
    CHECK(result->status != BUGPACK_OK);
    (*(unsigned *)count)++;
}

static void recovers(void) {
    unsigned count = 0;
    pid_t dying = fork();
    if (dying == 0) {
        bugpack_log(open_session(), BUGPACK_LEVEL_INFO, "net", "last words");
        _exit(0);
    }
    CHECK(waitpid(dying, NULL, 0) == dying);
    limit_to(16);
    CHECK(bugpack_recover(&(bugpack_recover_options){.struct_size = sizeof(bugpack_recover_options),
                                                     .recorder_dir = homes_dir,
                                                     .on_report = expect_failure,
                                                     .context = &count},
                          NULL) == BUGPACK_OK);
    CHECK(count == 1);
}

static void keeps_a_signal_of_the_host(void) {
    bp_thread_hold outer, inner;
    limit_to(16);
    bp_thread_hold_begin(&outer);
    write_too_much();
    bp_thread_hold_begin(&inner); /* of which the first is the host */
    write_too_much();
    bp_thread_hold_end(&inner);
    CHECK(is_pending());
    bp_thread_hold_end(&outer);
}

static void expect_no_harm(void (*call)(void)) {
    int status = 0;
    pid_t host = fork();
    CHECK(host >= 0);
    if (host == 0) {
        sigset_t mask;
        call();
        CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGXFSZ) == 0);
        CHECK(!is_pending());
        _exit(0);
    }
    CHECK(waitpid(host, &status, 0) == host);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    CHECK(temp_dir_make(&dir));
    (void)snprintf(homes_dir, sizeof homes_dir, "%.200s/homes", dir.path);
    expect_no_harm(closes_after_a_gap);
    expect_no_harm(opens_and_opens_a_channel);
    expect_no_harm(recovers);
    expect_no_harm(keeps_a_signal_of_the_host);
    temp_dir_remove(&dir);
    return 0;
}
