/*
 * A provider that never returns costs its own artefact: not this report, not the next one, not the
 * close, and at most one thread.
 */
#include <bugpack/bugpack.h>

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/sanitizer.h"
#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

static atomic_uint call_count;
static atomic_bool may_return, has_returned;
static atomic_int late_status;

static int hang(bugpack_writer *writer, void *context) {
    (void)context;
    atomic_fetch_add(&call_count, 1);
    while (!atomic_load(&may_return)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    /* The writer outlives the report, the session and the registry, until here. */
    atomic_store(&late_status, bugpack_write(writer, "late", 4));
    atomic_store(&has_returned, true);
    return 0;
}

static int answer(bugpack_writer *writer, void *context) {
    (void)context;
    return bugpack_printf(writer, "here");
}

/* 0 where they are not listed. */
static unsigned count_threads(void) {
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/task");
    while (directory != NULL && readdir(directory) != NULL) {
        count++;
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    return count > 2 ? count - 2 : 0; /* "." and ".." */
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "hang";
    options.report_dir = dir.path;
    options.sample_window_ms = 1;
    options.limits.provider_timeout_ms =
        3000; /* also for the one that answers, on a busy machine */
    bugpack_session *session = NULL;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_provide(session, "hang.txt", BUGPACK_PROVIDE_TEXT, hang, NULL, NULL) ==
          BUGPACK_OK);
    CHECK(bugpack_provide(session, "after.txt", BUGPACK_PROVIDE_TEXT, answer, NULL, NULL) ==
          BUGPACK_OK);

    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    for (unsigned i = 0; i < 3; i++) {
        CHECK(bugpack_report(session, NULL, &result, NULL) == BUGPACK_OK);
        CHECK(result.missing_count == 1);
        CHECK(strstr(result.missing, "hang.txt: ") == result.missing);
        CHECK(report_entry_contains(result.path, "after.txt", "here"));
        CHECK(report_entry_contains(result.path, "manifest.json", "\"status\": \"timed_out\""));
        CHECK(atomic_load(&call_count) == 1);
    }
    CHECK(!bugpack_unprovide(session, "hang.txt"));
    bugpack_close(session);
    CHECK(!atomic_load(&has_returned));

    /* Now let it return: what it touches must still be there, and it is told that it is too late.
     */
    atomic_store(&may_return, true);
    for (unsigned i = 0; i < 5000 && !atomic_load(&has_returned); i++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    CHECK(atomic_load(&has_returned));
    CHECK(atomic_load(&late_status) == BUGPACK_ERR_TIMEOUT);
    while (count_threads() > 1 + BP_THREAD_SANITIZER) { /* its thread ends; a sanitizer has one */
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    printf("three reports, one call, one thread left behind and gone\n");
    temp_dir_remove(&dir);
    return 0;
}
