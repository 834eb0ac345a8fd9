/*
 * What a session knows of a target that has ended.
 */
#include <bugpack/bugpack.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/report_reader.h"
#include "support/temp_dir.h"

static bugpack_options quick_options(const temp_dir *dir) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "viewer";
    options.report_dir = dir->path;
    options.sample_window_ms = 20;
    /* No thread that allocates when a test forks: the sanitizer's allocator does not survive that.
     */
    options.history_interval_ms = BUGPACK_OFF;
    return options;
}

static bugpack *open_session(const bugpack_options *options) {
    bugpack *session = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(zero(int, (int)bugpack_open(options, &session, &error)), "%s", error.message);
    return session;
}

Test(session_target, keeps_what_a_refresh_read_of_a_target_that_then_ends) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    pid_t child = fork();
    if (child == 0) {
        for (;;) {
            pause();
        }
    }
    bugpack_options options = quick_options(&dir);
    options.target_pid = child;
    bugpack *session = open_session(&options);
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(zero(int, (int)bugpack_refresh_target(session, &error)), "%s", error.message);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    cr_assert(eq(int, (int)bugpack_refresh_target(session, &error), (int)BUGPACK_ERR_NO_PROCESS));
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    cr_assert(zero(int, (int)bugpack_report(session, NULL, &result)), "%s", result.error.message);
    char expected[32];
    (void)snprintf(expected, sizeof expected, "\"pid\": %ld", (long)child);
    cr_assert(report_entry_contains(result.path, "process.json", expected));
    cr_assert(report_entry_contains(result.path, "manifest.json", "this is how it was at"));
    bugpack_close(session);
    temp_dir_remove(&dir);
}

Test(session_target, has_nothing_to_refresh_of_its_own_process) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack_options options = quick_options(&dir);
    bugpack *session = open_session(&options);
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(eq(int, (int)bugpack_refresh_target(session, &error), (int)BUGPACK_ERR_INVALID));
    cr_assert(eq(int, (int)bugpack_refresh_target(NULL, NULL), (int)BUGPACK_ERR_INVALID));
    bugpack_close(session);
    temp_dir_remove(&dir);
}
