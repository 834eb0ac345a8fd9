/*
 * A host that forks while its other threads log and take reports: the child's session is inert, and
 * no call on it can hang on a lock that a thread of the parent held.
 */
#include <bugpack/bugpack.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp_dir.h"

enum { fork_count = 60, child_limit_secs = 20 };

static bugpack_session *session;
static atomic_bool must_stop;

static void *keep_busy(void *argument) {
    bool takes_reports = argument != NULL;
    while (!atomic_load(&must_stop)) {
        if (takes_reports) {
            (void)bugpack_report(session, NULL, NULL, NULL);
        } else {
            bugpack_log(session, BUGPACK_LEVEL_INFO, "fork", "busy");
        }
    }
    return NULL;
}

static int answer(bugpack_writer *writer, void *context) {
    (void)context;
    return bugpack_printf(writer, "here");
}

static void use_session_in_child(void) {
    (void)alarm(child_limit_secs); /* a deadlock ends the child by SIGALRM */
    bugpack_log(session, BUGPACK_LEVEL_INFO, "child", "not recorded");
    bool is_inert = bugpack_report(session, NULL, NULL, NULL) == BUGPACK_ERR_INERT &&
                    bugpack_report_async(session, NULL, NULL, NULL, NULL) == BUGPACK_ERR_INERT &&
                    bugpack_provide(session, "child.txt", BUGPACK_PROVIDE_TEXT, answer, NULL,
                                    NULL) == BUGPACK_ERR_INERT &&
                    bugpack_provide_file(session, "child.log", "/dev/null", BUGPACK_FILE_WHOLE, 0,
                                         NULL) == BUGPACK_ERR_INERT &&
                    !bugpack_unprovide(session, "x.txt");
    bugpack_close(session);
    _exit(is_inert ? 0 : 1);
}

static void expect_inert_in_child(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        use_session_in_child();
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "fork";
    options.report_dir = dir.path;
    options.sample_window_ms = BUGPACK_OFF;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) {
        CHECK(pthread_create(&threads[i], NULL, keep_busy, (void *)(i % 2)) == 0);
    }
    for (unsigned i = 0; i < fork_count; i++) {
        expect_inert_in_child();
    }
    atomic_store(&must_stop, true);
    for (unsigned i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(bugpack_report(session, NULL, NULL, NULL) == BUGPACK_OK); /* the parent's is as it was */
    bugpack_close(session);
    expect_inert_in_child(); /* closed here before, it is still none of the child's */
    printf("%d forks under load, 0 hung\n", fork_count);
    temp_dir_remove(&dir);
    return 0;
}
