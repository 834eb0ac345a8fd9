/*
 * The heap's state as JSON, as text and as a difference; and in reports.
 */
#include "model/heap_state.h"
#include "unit/model_fixture.h"
#include "unit/quick_session.h"

TestSuite(heap_state, .init = begin_printing, .fini = end_printing);

static bugpack_heap_state full(void) {
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    (void)snprintf(state.allocator, sizeof state.allocator, "jemalloc");
    state.allocated_bytes = 524288;
    state.active_bytes = 1048576;
    state.resident_bytes = 2097152;
    state.mapped_bytes = 4194304;
    state.narenas = 64;
    return state;
}

/* The text or the difference, to be freed. */
static char *text_of(const bugpack_heap_state *state) {
    char *text = NULL;
    cr_assert(eq(int, bugpack_heap_state_text(state, &text, &error), BUGPACK_OK));
    return text;
}

static char *diff_of(const bugpack_heap_state *before, const bugpack_heap_state *after) {
    char *text = NULL;
    cr_assert(eq(int, bugpack_heap_state_diff(before, after, &text, &error), BUGPACK_OK));
    return text;
}

#define EXPECT_TEXT(given, expected)                                                               \
    do {                                                                                           \
        char *text = given;                                                                        \
        cr_expect(eq(str, text, expected));                                                        \
        bugpack_free(text);                                                                        \
    } while (0)

Test(heap_state, json_has_each_key_in_its_order) {
    bugpack_heap_state state = full();
    state.allocated_bytes = UINT64_MAX - 1;
    EXPECT_PRINTED(bp_heap_state_print(&state, &out, &error),
                   "{\"allocated_bytes\":18446744073709551614,\"active_bytes\":1048576,"
                   "\"resident_bytes\":2097152,\"mapped_bytes\":4194304,\"narenas\":64,"
                   "\"allocator\":\"jemalloc\"}");
}

Test(heap_state, json_leaves_out_what_is_not_known_and_keeps_zero) {
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    EXPECT_PRINTED(bp_heap_state_print(&state, &out, &error), "{}");
    bp_buffer_clear(&out);
    state.active_bytes = 0;
    EXPECT_PRINTED(bp_heap_state_print(&state, &out, &error), "{\"active_bytes\":0}");
}

static bugpack_status parse(const char *json, bugpack_heap_state *ret_state) {
    *ret_state = (bugpack_heap_state)BUGPACK_HEAP_STATE_INIT;
    return bp_heap_state_parse(json, strlen(json), ret_state, &error);
}

Test(heap_state, json_that_was_written_reads_back) {
    bugpack_heap_state states[] = {full(), full(), BUGPACK_HEAP_STATE_INIT};
    states[1].allocated_bytes = UINT64_MAX - 1;
    states[1].active_bytes = 0;
    states[1].resident_bytes = BUGPACK_HEAP_UNKNOWN;
    states[1].allocator[0] = '\0';
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        bugpack_heap_state back;
        bp_buffer_clear(&out);
        cr_assert(eq(int, bp_heap_state_print(&states[i], &out, &error), BUGPACK_OK));
        cr_assert(eq(int, parse(bp_buffer_text(&out), &back), BUGPACK_OK), "%s", error.message);
        EXPECT_TEXT(diff_of(&states[i], &back), "");
    }
}

Test(heap_state, reads_what_others_write) {
    static const struct {
        const char *json, *text_of_difference;
    } cases[] = {
        {"{}", ""},
        {"\xEF\xBB\xBF {\n}\n", ""},
        {"{\"later\": [{\"narenas\": 1}], \"active_bytes\": null, \"allocator\": null}", ""},
        {"{\"active_bytes\":1048576,\"allocated_bytes\":524288,\"resident_bytes\":2097152,"
         "\"mapped_bytes\":4194304,\"narenas\":64}",
         "allocated_bytes: (unknown) → 524288\n"
         "active_bytes: (unknown) → 1048576\n"
         "resident_bytes: (unknown) → 2097152\n"
         "mapped_bytes: (unknown) → 4194304\n"
         "narenas: (unknown) → 64\n"},
        {"{\"allocator\": \"a\\nb\\u001b\\u00e9\"}", "allocator: (unknown) → a?b???\n"},
        {"{\"allocator\": \"0123456789012345678901234567890123456789\"}",
         "allocator: (unknown) → 0123456789012345678901234567890\n"}};
    const bugpack_heap_state unknown = BUGPACK_HEAP_STATE_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bugpack_heap_state state;
        cr_assert(eq(int, parse(cases[i].json, &state), BUGPACK_OK), "%s", error.message);
        EXPECT_TEXT(diff_of(&unknown, &state), (char *)cases[i].text_of_difference);
    }
}

Test(heap_state, refuses_what_is_no_state_with_line_and_column) {
    static const char *const cases[][2] = {
        {"", "line 1, column 1: "},
        {"[]", "line 1, column 1: expected an object"},
        {"7", "line 1, column 1: expected an object"},
        {"{\"narenas\": 1,\n \"narenas\": 1}", "line 2, column 2: "},
        {"{\n  \"narenas\": 1\n", "line 3, column 1: "},
        {"{\"narenas\": -1}", "line 1, column 13: \"narenas\""},
        {"\xEF\xBB\xBF{\"narenas\": -1}", "line 1, column 13: \"narenas\""},
        {"{\"é\":\n\n2,\n\"active_bytes\": 1.5}", "line 4, column 17: \"active_bytes\""},
        {"{\"mapped_bytes\": \"1\"}", "line 1, column 18: \"mapped_bytes\""},
        {"{\"mapped_bytes\": {}}", "line 1, column 18: \"mapped_bytes\""},
        {"{\"mapped_bytes\": 18446744073709551615}", "line 1, column 18: \"mapped_bytes\""},
        {"{\"allocator\": 1}", "line 1, column 15: \"allocator\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bugpack_heap_state state = full();
        cr_expect(eq(int, bp_heap_state_parse(cases[i][0], strlen(cases[i][0]), &state, &error),
                     BUGPACK_ERR_CORRUPT),
                  "%s", cases[i][0]);
        cr_expect(eq(int, strncmp(error.message, cases[i][1], strlen(cases[i][1])), 0), "%s",
                  error.message);
        cr_expect(eq(u64, state.narenas, 64), "an output was touched");
    }
}

Test(heap_state, text_has_a_line_for_each_number) {
    bugpack_heap_state state = full();
    EXPECT_TEXT(text_of(&state), "allocated_bytes: 524288\n"
                                 "active_bytes: 1048576\n"
                                 "resident_bytes: 2097152\n"
                                 "mapped_bytes: 4194304\n"
                                 "narenas: 64\n");
}

Test(heap_state, text_says_unknown_of_each_that_is_absent) {
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    EXPECT_TEXT(text_of(&state), "allocated_bytes: (unknown)\n"
                                 "active_bytes: (unknown)\n"
                                 "resident_bytes: (unknown)\n"
                                 "mapped_bytes: (unknown)\n"
                                 "narenas: (unknown)\n");
}

Test(heap_state, equal_states_have_no_difference) {
    bugpack_heap_state state = full();
    bugpack_heap_state nothing = BUGPACK_HEAP_STATE_INIT;
    EXPECT_TEXT(diff_of(&state, &state), "");
    EXPECT_TEXT(diff_of(&nothing, &nothing), "");
}

Test(heap_state, difference_tells_only_what_changed) {
    bugpack_heap_state before = full();
    bugpack_heap_state after = full();
    after.allocated_bytes = 9437184;
    after.narenas = 0;
    EXPECT_TEXT(diff_of(&before, &after), "allocated_bytes: 524288 → 9437184\n"
                                          "narenas: 64 → 0\n");
}

Test(heap_state, difference_tells_what_came_to_be_known_and_what_was_lost) {
    bugpack_heap_state before = full();
    bugpack_heap_state after = BUGPACK_HEAP_STATE_INIT;
    EXPECT_TEXT(diff_of(&before, &after), "allocated_bytes: 524288 → (unknown)\n"
                                          "active_bytes: 1048576 → (unknown)\n"
                                          "resident_bytes: 2097152 → (unknown)\n"
                                          "mapped_bytes: 4194304 → (unknown)\n"
                                          "narenas: 64 → (unknown)\n"
                                          "allocator: jemalloc → (unknown)\n");
    after.active_bytes = 0;
    before = (bugpack_heap_state)BUGPACK_HEAP_STATE_INIT;
    EXPECT_TEXT(diff_of(&before, &after), "active_bytes: (unknown) → 0\n");
}

Test(heap_state, a_state_that_was_not_begun_is_refused_and_output_left_alone) {
    bugpack_heap_state zeros = {0};
    bugpack_heap_state state = full();
    char *text = (char *)&state;
    cr_expect(eq(int, bugpack_heap_state_text(&zeros, &text, &error), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bugpack_heap_state_text(NULL, &text, NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bugpack_heap_state_diff(&state, &zeros, &text, NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bugpack_heap_state_diff(NULL, &state, &text, NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bugpack_heap_state_read(&zeros, NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(ptr, text, (char *)&state));
    cr_expect(eq(u64, zeros.mapped_bytes, 0));
}

Test(heap_state, reading_keeps_to_the_size_that_the_host_knows) {
    struct {
        bugpack_heap_state state;
        char behind[16];
    } host = {.state = BUGPACK_HEAP_STATE_INIT, .behind = "untouched"};
    host.state.struct_size = sizeof host; /* of a later version */
    bugpack_status status = bugpack_heap_state_read(&host.state, &error);
    if (status == BUGPACK_ERR_UNSUPPORTED) { /* as the stub says */
        return;
    }
    cr_assert(eq(int, status, BUGPACK_OK), "%s", error.message);
    cr_expect(eq(sz, host.state.struct_size, sizeof host));
    cr_expect(eq(str, host.behind, "untouched"));
    cr_expect(ne(str, host.state.allocator, ""));
}

/* Takes one report. False where no such session can be had. */
static bool take_report(pid_t target_pid, bool is_off) {
    options.sample_window_ms = 1;
    options.target_pid = target_pid;
    options.recorder.is_in_memory = true;
    options.without_entries = is_off ? "heap-state.json" : NULL;
    bugpack_status status = bugpack_open(&options, &session, &error);
    if (status == BUGPACK_ERR_UNSUPPORTED) {
        return false;
    }
    cr_assert(eq(int, status, BUGPACK_OK), "%s", error.message);
    take(NULL);
    cr_expect(strstr(taken.missing, "heap-state") == NULL, "%s", taken.missing);
    bugpack_close(session);
    return true;
}

SESSION_SUITE(heap_reports);

Test(heap_reports, stands_in_a_report_or_the_manifest_says_why_not) {
    cr_assert(take_report(0, false));
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    if (bugpack_heap_state_read(&state, &error) == BUGPACK_ERR_UNSUPPORTED) {
        cr_expect(holds("manifest.json", error.message));
        cr_expect(holds("manifest.json", "\"name\": \"heap-state.json\",\n"
                                         "      \"status\": \"omitted\",\n"));
        return;
    }
    cr_expect(holds("heap-state.json", "\"allocated_bytes\": "));
    cr_expect(holds("heap-state.json", "\"allocator\": \""));
}

Test(heap_reports, turned_off_it_is_only_in_the_manifest) {
    cr_assert(take_report(0, true));
    char *names = report_list(taken.path);
    cr_expect(strstr(names, "heap-state.json") == NULL);
    free(names);
    cr_expect(holds("manifest.json", "\"name\": \"heap-state.json\",\n"
                                     "      \"status\": \"disabled\",\n"));
    cr_expect(holds("manifest.json", "left out on request"));
}

Test(heap_reports, a_report_about_another_process_has_none_of_ours) {
    if (take_report(getppid(), true)) {
        cr_expect(not(holds("manifest.json", "heap-state")));
    }
}
