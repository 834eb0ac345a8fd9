/*
 * before_publish: it sees the whole zip, and may refuse it.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/report_reader.h"
#include "unit/quick_session.h"
#include "unit/unit.h"

static temp_dir dir;

/* What a call does, and what it saw. */
typedef struct witness {
    bugpack_status returns;
    const char *sentence;
    unsigned calls;
    bool has_whole_zip;
    size_t names; /* in the directory, during the call */
    bugpack *cancels;
} witness;

static bugpack_status look(const bugpack_unpublished *report, void *context, bugpack_error *error) {
    witness *seen = context;
    struct stat facts;
    char bytes[4] = "";
    seen->calls++;
    seen->names = temp_dir_count(&dir);
    seen->has_whole_zip =
        fstat(report->zip_fd, &facts) == 0 && (uint64_t)facts.st_size == report->zip_bytes &&
        pread(report->zip_fd, bytes, 4, 0) == 4 && memcmp(bytes, "PK\3\4", 4) == 0;
    if (seen->cancels != NULL) {
        (void)bugpack_cancel(seen->cancels, 0);
    }
    if (seen->sentence != NULL) {
        (void)snprintf(error->message, sizeof error->message, "%s", seen->sentence);
    }
    return seen->returns;
}

static void setup(void) {
    cr_assert(temp_dir_make(&dir));
}

static void teardown(void) {
    temp_dir_remove(&dir);
}

TestSuite(publish, .init = setup, .fini = teardown);

static bugpack_options options_with(witness *seen) {
    bugpack_options options = quick_options(&dir);
    options.before_publish = look;
    options.before_publish_context = seen;
    return options;
}

static bugpack_report_result report(bugpack *session, uint32_t timeout_ms) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    request.timeout_ms = timeout_ms;
    (void)bugpack_report(session, &request, &result);
    return result;
}

Test(publish, shows_the_whole_zip_before_it_has_a_name) {
    witness seen = {.returns = BUGPACK_OK};
    bugpack_options options = options_with(&seen);
    bugpack *session = open_session(&options);
    bugpack_report_result result = report(session, 0);
    cr_expect(eq(int, result.status, BUGPACK_OK), "%s", result.error.message);
    cr_expect(seen.calls == 1 && seen.has_whole_zip && seen.names == 0);
    cr_expect(report_entry_contains(result.path, "manifest.json", "\"complete\": true"));
    bugpack_close(session);
}

Test(publish, leaves_nothing_of_a_refused_report) {
    witness seen = {.returns = BUGPACK_ERR_DENIED, .sentence = "not now"};
    bugpack_options options = options_with(&seen);
    bugpack *session = open_session(&options);
    bugpack_report_result result = report(session, 0);
    cr_expect(eq(int, result.status, BUGPACK_ERR_DENIED));
    cr_expect(eq(str, result.error.message, "not now"));
    seen.sentence = NULL;
    result = report(session, 0);
    cr_expect(ne(str, result.error.message, ""));
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
    bugpack_close(session);
}

Test(publish, can_be_cancelled_meanwhile) {
    witness seen = {.returns = BUGPACK_OK};
    bugpack_options options = options_with(&seen);
    bugpack *session = open_session(&options);
    seen.cancels = session;
    bugpack_report_result result = report(session, 0);
    cr_expect(eq(int, result.status, BUGPACK_ERR_CANCELLED));
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
    bugpack_close(session);
}

/* A session of a process that was killed. */
static void leave_dead_session(void) {
    int ready[2];
    char byte;
    bugpack_options options = quick_options(&dir);
    options.recorder_dir = dir.path;
    options.recorder_in_memory = false;
    cr_assert(pipe(ready) == 0);
    pid_t host = fork();
    if (host == 0) {
        bugpack *session = NULL;
        if (bugpack_open(&options, &session, NULL) == BUGPACK_OK) {
            bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "the last words");
            (void)!write(ready[1], "", 1);
        }
        (void)pause();
    }
    cr_assert(read(ready[0], &byte, 1) == 1);
    (void)kill(host, SIGKILL);
    (void)waitpid(host, NULL, 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

Test(publish, keeps_a_dead_session_whose_report_is_refused) {
    char path[BUGPACK_REPORT_PATH_BYTES];
    witness seen = {.returns = BUGPACK_ERR_CANCELLED, .sentence = "no"};
    leave_dead_session();
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    options.recorder_dir = options.report_dir = dir.path;
    options.before_publish = look;
    options.before_publish_context = &seen;
    cr_expect(eq(int, bugpack_recover(&options, NULL), BUGPACK_OK));
    cr_expect(seen.calls == 1 && seen.has_whole_zip);
    cr_expect(not(report_find_only(&dir, path, sizeof path)));
    seen.returns = BUGPACK_OK;
    cr_expect(eq(int, bugpack_recover(&options, NULL), BUGPACK_OK));
    cr_assert(report_find_only(&dir, path, sizeof path));
    cr_expect(report_entry_contains(path, "logs.jsonl", "the last words"));
}
