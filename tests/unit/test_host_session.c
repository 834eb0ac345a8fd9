/*
 * The whole machine as an artefact of a host's session.
 */
#include <bugpack/bugpack.h>
#include <stdatomic.h>

#include "session/command.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

static void open_session(const temp_dir *dir, bool without_process, bugpack **ret_session) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    options.app_name = "viewer";
    options.report_dir = dir->path;
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder_in_memory = true;
    options.history_interval_ms = BUGPACK_OFF;
    options.log_ring_bytes = BUGPACK_OFF64;
    options.without_process = without_process;
    options.stacks = BUGPACK_STACKS_NONE;
    cr_assert(eq(int, bugpack_open(&options, ret_session, &error), BUGPACK_OK), "%s",
              error.message);
}

static void on_progress(uint64_t done, uint64_t total, void *context) {
    atomic_uint *calls = context;
    cr_expect(le(u64, done, total));
    (void)atomic_fetch_add(calls, 1);
}

static void take_report(bugpack *session, const char *expected_entries) {
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    cr_assert(eq(int, bugpack_report(session, NULL, &result), BUGPACK_OK), "%s",
              result.error.message);
    cr_expect(eq(u32, result.missing_count, 0), "%s", result.missing);
    char *entries = report_list(result.path);
    cr_expect(eq(str, entries, expected_entries));
    cr_expect(report_entry_contains(result.path, "host-threads.json", "\"self\": true"));
    free(entries);
}

Test(host_session, holds_the_machine_and_no_process) {
    temp_dir dir;
    bugpack *session = NULL;
    atomic_uint calls = 0;
    const bp_machine_plan plan = {.on_progress = on_progress, .context = &calls};
    cr_assert(temp_dir_make(&dir));
    open_session(&dir, true, &session);
    cr_assert(eq(int, bp_session_add_machine(session, &plan, NULL), BUGPACK_OK));
    take_report(session, "metadata.json\nsystem.json\nhost-threads.json\nmanifest.json\n");
    cr_expect(gt(u32, atomic_load(&calls), 0));
    bugpack_close(session);
    temp_dir_remove(&dir);
}

Test(host_session, adds_the_machine_to_what_a_process_cost) {
    temp_dir dir;
    const bp_machine_plan plan = {.window_ms = 1000};
    bugpack *session = NULL;
    cr_assert(temp_dir_make(&dir));
    open_session(&dir, false, &session);
    cr_assert(eq(int, bp_session_add_machine(session, &plan, NULL), BUGPACK_OK));
    take_report(
        session,
        "metadata.json\nruntime-metrics.json\nprocess.json\nthreads.json\nfiles.json\nsystem.json\n"
        "heap-state.json\nhost-threads.json\nmanifest.json\n");
    bugpack_close(session);
    temp_dir_remove(&dir);
}

Test(host_session, refuses_a_second_one) {
    temp_dir dir;
    bugpack *session = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    const bp_machine_plan plan = {.window_ms = 0};
    cr_assert(temp_dir_make(&dir));
    open_session(&dir, true, &session);
    cr_expect(eq(int, bp_session_add_machine(NULL, &plan, NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bp_session_add_machine(session, &plan, NULL), BUGPACK_OK));
    cr_expect(eq(int, bp_session_add_machine(session, &plan, &error), BUGPACK_ERR_INVALID));
    cr_expect(strstr(error.message, "host-threads.json") != NULL, "%s", error.message);
    bugpack_close(session);
    temp_dir_remove(&dir);
}

Test(host_session, cannot_be_about_a_process_and_without_one) {
    temp_dir dir;
    bugpack *session = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    cr_assert(temp_dir_make(&dir));
    options.report_dir = dir.path;
    options.app_name = "viewer";
    options.target_pid = 1;
    options.without_process = true;
    cr_expect(eq(int, bugpack_open(&options, &session, NULL), BUGPACK_ERR_INVALID));
    cr_expect(session == NULL);
    temp_dir_remove(&dir);
}

Test(host_session, asks_for_no_package_without_another_process) {
    temp_dir dir;
    bugpack *session = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    cr_assert(temp_dir_make(&dir));
    options.report_dir = dir.path;
    options.app_name = "viewer";
    options.system_flags = BUGPACK_SYSTEM_PACKAGE;
    cr_expect(eq(int, bugpack_open(&options, &session, NULL), BUGPACK_ERR_INVALID));
    options.system_flags = UINT64_C(4);
    options.target_pid = 1;
    cr_expect(eq(int, bugpack_open(&options, &session, NULL), BUGPACK_ERR_INVALID));
    cr_expect(session == NULL);
    temp_dir_remove(&dir);
}
