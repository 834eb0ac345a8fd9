/*
 * A host that hangs while it loads a library gets its report, with the log and the state of its
 * threads: what a report cannot do without is loaded when the program starts. What is loaded for
 * stacks and the heap is missing, and said to be.
 */
#include <bugpack/bugpack.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

static void *load(void *module) {
    (void)dlopen(module, RTLD_NOW);
    return NULL;
}

/* The end of a program waits for the loader, too. */
static void fail(void) {
    _exit(EXIT_FAILURE);
}

int main(void) {
    char module[] = BUGPACK_TEST_MODULE, number[16], byte;
    temp_dir dir;
    int loading[2];
    pthread_t thread;
    CHECK(atexit(fail) == 0);
    CHECK(temp_dir_make(&dir));
    CHECK(pipe(loading) == 0);
    (void)snprintf(number, sizeof number, "%d", loading[1]);
    CHECK(setenv("BUGPACK_TEST_LOADING", number, 1) == 0);
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "loading";
    options.report_dir = dir.path;
    options.sample_window_ms = 1;
    options.limits.provider_timeout_ms = 1000;
    bugpack_session *session = NULL;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    (void)bugpack_log(session, BUGPACK_LEVEL_INFO, "plugin", "about to load it");
    CHECK(pthread_create(&thread, NULL, load, module) == 0);
    CHECK(read(loading[0], &byte, 1) == 1);

    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    CHECK(bugpack_report(session, NULL, &result, NULL) == BUGPACK_OK);
    CHECK(result.missing_count > 0 && strstr(result.missing, "stacks.json: ") != NULL);
    CHECK(report_entry_contains(result.path, "logs.jsonl", "about to load it"));
    CHECK(report_entry_contains(result.path, "threads.json", "\"pause\""));
    temp_dir_remove(&dir);
    _exit(EXIT_SUCCESS);
}
