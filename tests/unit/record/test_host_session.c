/*
 * The whole machine as an artefact of a host's session.
 */

#include "session/command.h"
#include "unit/quick_session.h"

static void setup_host(void) {
    setup();
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.is_in_memory = true;
    options.recorder.log_ring_bytes = BUGPACK_OFF;
}

static void take_report(const char *expected_entries) {
    take(NULL);
    cr_expect(eq(u32, taken.missing_count, 0), "%s", taken.missing);
    CLEANUP(free_memory) char *entries = report_list(taken.path);
    cr_expect(eq(str, entries, expected_entries));
    cr_expect(holds("host-threads.json", "\"self\": true"));
}

TestSuite(host_session, .init = setup_host, .fini = teardown);

Test(host_session, holds_the_machine_and_no_process) {
    const bp_machine_plan plan = {.window_ms = 0};
    options.without_process = true;
    open_session();
    cr_assert(eq(int, bp_session_add_machine(session, &plan, NULL), BUGPACK_OK));
    take_report("metadata.json\nsystem.json\nhost-threads.json\nmanifest.json\n");
}

Test(host_session, adds_the_machine_to_what_a_process_cost) {
    const bp_machine_plan plan = {.window_ms = 1000};
    open_session();
    cr_assert(eq(int, bp_session_add_machine(session, &plan, NULL), BUGPACK_OK));
    take_report(
        "metadata.json\nruntime-metrics.json\nprocess.json\nthreads.json\nfiles.json\nsystem.json\n"
        "heap-state.json\nhost-threads.json\nmanifest.json\n");
}

Test(host_session, refuses_a_second_one) {
    const bp_machine_plan plan = {.window_ms = 0};
    options.without_process = true;
    open_session();
    cr_expect(eq(int, bp_session_add_machine(NULL, &plan, NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bp_session_add_machine(session, &plan, NULL), BUGPACK_OK));
    cr_expect(eq(int, bp_session_add_machine(session, &plan, &failure), BUGPACK_ERR_INVALID));
    cr_expect(strstr(failure.message, "host-threads.json") != NULL, "%s", failure.message);
}

Test(host_session, cannot_be_about_a_process_and_without_one) {
    options.target_pid = 1;
    options.without_process = true;
    cr_expect(eq(int, bugpack_open(&options, &session, NULL), BUGPACK_ERR_INVALID));
    cr_expect(session == NULL);
}
