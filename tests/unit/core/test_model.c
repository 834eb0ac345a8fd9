/*
 * The artefacts as they are printed: the order of their keys, what is left out, and hostile bytes.
 */
#include <bugpack/version.h>

#include "unit/model_fixture.h"

TestSuite(model, .init = begin_printing, .fini = end_printing);

Test(model, metadata_has_every_key_in_order) {
    EXPECT_PRINTED(
        bp_metadata_print(&sample_metadata_full, &out, &error),
        "{\"schema\":2,\"report_id\":\"00112233445566778899aabbccddeeff\","
        "\"session_id\":\"ffeeddccbbaa99887766554433221100\",\"sequence\":3,\"app\":{"
        "\"name\":\"viewer\",\"version\":\"1.2 \\\"beta\\\"\","
        "\"build_id\":\"4f\xee\xbf\xbf\"},\"bugpack_version\":\"" BUGPACK_VERSION "\","
        "\"platform\":{\"os\":\"linux\",\"arch\":\"x86_64\",\"kernel\":\"6.1.0\"},"
        "\"machine\":\"desk-17\xee\xbf\xbf\",\"pid\":4712,"
        "\"process_name\":\"worker)\\n\xee\xbf\xbf\","
        "\"started_at\":\"2026-11-21T00:34:51.123456Z\",\"report_type\":\"pedantic\","
        "\"gap_key\":\"display:unimpl:draw_rop3\",\"channel\":\"display\","
        "\"description\":\"black squares\\nafter resize\","
        "\"signature\":\"gap "
        "display:unimpl:draw_rop3\",\"suppressed_before\":2,\"region\":{\"x\":0,\"y\":12,"
        "\"width\":16384,\"height\":1},\"exit\":{\"signal\":11,\"name\":\"SIGSEGV\","
        "\"core_dumped\":true,\"cpu_ms\":1500},\"timestamp\":\"2026-11-21T00:36:54.123456Z\","
        "\"triggered_at\":\"2026-11-21T00:36:52.123456Z\",\"session_uptime_secs\":123,"
        "\"triggered_uptime_secs\":121.377,\"target\":{\"pid\":4712,"
        "\"name\":\"worker)\\n\xee\xbf\xbf\"},\"processes\":[{\"pid\":4713,"
        "\"name\":\"worker\"},{\"pid\":4720,\"name\":\"odd\\n\xee\xbf\xbf\"}],"
        "\"collector\":{\"pid\":4711,\"session_uptime_secs\":3.123,"
        "\"triggered_uptime_secs\":1.5},\"tags\":{\"gpu\":\"none\","
        "\"server.version\":\"7 \\\"b\\\"\xee\xbf\xbf\"}}");
}

Test(model, metadata_leaves_out_what_there_is_not) {
    EXPECT_PRINTED(bp_metadata_print(&sample_metadata_bare, &out, &error),
                   "{\"schema\":2,\"report_id\":\"00112233445566778899aabbccddeeff\","
                   "\"sequence\":1,\"app\":{\"name\":\"viewer\"},"
                   "\"bugpack_version\":\"" BUGPACK_VERSION
                   "\",\"platform\":{\"os\":\"linux\"},\"pid\":4711,"
                   "\"report_type\":\"bugreport\",\"timestamp\":\"2026-11-21T00:36:54.123456Z\","
                   "\"triggered_at\":\"2026-11-21T00:36:52.123456Z\"}");
}

Test(model, an_exit_has_a_status_or_a_signal) {
    static const struct {
        bp_exit exit;
        const char *text;
    } cases[] = {
        {{.status = 3}, "\"exit\": {\n    \"status\": 3\n  },\n"},
        {{.status = 9, .signal = 9},
         "{\n    \"signal\": 9,\n    \"name\": \"SIGKILL\",\n    \"core_dumped\": false\n  },\n"},
        {{.signal = 64}, "{\n    \"signal\": 64,\n    \"core_dumped\": false\n  },\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_metadata metadata = sample_metadata_full;
        metadata.exit = &cases[i].exit;
        bp_buffer_clear(&out);
        cr_assert(eq(int, bp_metadata_print(&metadata, &out, &error), BUGPACK_OK));
        cr_expect(strstr(out.data, cases[i].text) != NULL, "%s", out.data);
    }
}

Test(model, an_uptime_is_never_negative) {
    bp_metadata metadata = sample_metadata_full;
    metadata.target.pid = 0;
    metadata.session_opened.monotonic_ns = metadata.triggered.monotonic_ns + 1;
    cr_assert(eq(int, bp_metadata_print(&metadata, &out, &error), BUGPACK_OK));
    cr_expect(strstr(out.data, "\"triggered_uptime_secs\": 0,\n") != NULL);
}

Test(model, a_report_about_its_writer_has_the_uptimes_of_the_session_and_no_collector) {
    bp_metadata metadata = sample_metadata_full;
    metadata.target.pid = 0;
    cr_assert(eq(int, bp_metadata_print(&metadata, &out, &error), BUGPACK_OK));
    cr_expect(strstr(out.data, "\"pid\": 4711,\n") != NULL);
    cr_expect(strstr(out.data, "\n  \"session_uptime_secs\": 3.123,\n") != NULL);
    cr_expect(strstr(out.data, "collector") == NULL);
}

Test(model, the_uptimes_of_a_target_are_left_out_where_they_are_not_known) {
    bp_metadata metadata = sample_metadata_full;
    metadata.target_uptime_ns = 0;
    metadata.started_wall_ns = 0;
    cr_assert(eq(int, bp_metadata_print(&metadata, &out, &error), BUGPACK_OK));
    cr_expect(strstr(out.data, "\n  \"session_uptime_secs\"") == NULL);
    cr_expect(strstr(out.data, "\n    \"session_uptime_secs\": 3.123,\n") != NULL);
    cr_expect(strstr(out.data, "started_at") == NULL);
}

Test(model, metrics_have_exactly_the_published_shape) {
    EXPECT_PRINTED(
        bp_metrics_print(&sample_metrics_full, "linux", &out, &error),
        "{\"sample_window_ms\":2003,\"process\":{\"cpu_percent\":12.5,"
        "\"ended_threads_at_least\":3,\"rss_kb\":48211,\"vm_size_kb\":912345,\"rss_samples\":[{"
        "\"at_ms\":5,\"rss_kb\":40000,\"vm_size_kb\":90000,"
        "\"thread_count\":2,\"file_count\":17},{\"at_ms\":1005,\"rss_kb\":44000,\"vm_size_kb\":0,"
        "\"thread_count\":3},{\"at_ms\":2005,\"rss_kb\":48211,\"vm_size_kb\":0,\"thread_count\":3,"
        "\"file_count\":19}],\"children\":{\"looks\":20,\"ended_at_least\":9,"
        "\"count_at_first\":1,\"count_at_last\":2,\"commands\":[{\"name\":\"one\","
        "\"count\":4,\"longest_ms\":5,\"succeeded\":1,\"failed\":3,\"status\":3},{"
        "\"name\":\"two\",\"own\":true,\"count\":1,\"longest_ms\":0,\"succeeded\":0,"
        "\"failed\":1,\"signal\":\"SIGSEGV\"}],\"has_more_commands\":true},"
        "\"uptime_secs\":61.235},\"threads\":[{\"tid\":4711,"
        "\"name\":\"viewer\",\"cpu_percent\":9.38,\"cpu_ms\":190,\"user_ms\":150,"
        "\"system_ms\":40,\"voluntary_switches\":184,\"involuntary_switches\":3},{"
        "\"tid\":4712,\"name\":\"net)\\n\xee\xbf\xbf\",\"cpu_percent\":0,"
        "\"cpu_ms\":62.093,\"born_in_window\":true,\"age_ms\":70},{\"tid\":4713,"
        "\"name\":\"\",\"cpu_percent\":0}],\"platform\":\"linux\"}");
}

Test(model, metrics_leave_out_memory_and_uptime_that_are_not_known) {
    EXPECT_PRINTED(bp_metrics_print(&sample_metrics_bare, "linux", &out, &error),
                   "{\"sample_window_ms\":1,\"process\":{\"cpu_percent\":0},\"threads\":[],"
                   "\"platform\":\"linux\"}");
}

Test(model, metrics_that_there_are_not_say_why) {
    EXPECT_PRINTED(bp_metrics_print_unavailable("freebsd", "no sampler \"yet\"", &out, &error),
                   "{\"platform\":\"freebsd\",\"available\":false,"
                   "\"reason\":\"no sampler \\\"yet\\\"\"}");
}

Test(model, manifest_counts_what_is_missing_and_says_why) {
    EXPECT_PRINTED(bp_manifest_print(&sample_manifest_full, &out, &error),
                   "{\"schema\":2,\"report_id\":\"00112233445566778899aabbccddeeff\","
                   "\"complete\":false,\"missing\":1,\"redacted\":true,"
                   "\"max_zip_bytes\":65536,\"artefacts\":[{"
                   "\"name\":\"metadata.json\",\"status\":\"ok\",\"bytes\":700,"
                   "\"captured_at\":\"2026-11-21T00:36:54.123456Z\",\"duration_ms\":1.235,"
                   "\"not_searched\":true,\"exact_channels\":[\"display\",\"usb\"],\"redactions\":["
                   "{\"rule\":\"password\",\"count\":2}]},{\"name\":\"logs.jsonl\","
                   "\"status\":\"truncated\",\"bytes\":18446744073709551615,"
                   "\"original_bytes\":18446744073709551615,\"left_out_bytes\":7,"
                   "\"captured_at\":\"2026-11-21T00:36:52.123456Z\",\"duration_ms\":0,\"covers\":{"
                   "\"from\":\"2026-11-21T00:36:51.123456Z\","
                   "\"to\":\"2026-11-21T00:36:52.123456Z\"},"
                   "\"reason\":\"12 older records were dropped\"},{\"name\":\"session.json\","
                   "\"status\":\"failed\",\"missing\":true,\"bytes\":0,\"duration_ms\":2000,"
                   "\"reason\":\"line 1, column 2: \xee\xbf\xbf\"},{\"name\":\"heap-state.json\","
                   "\"status\":\"disabled\",\"bytes\":0,\"duration_ms\":0,"
                   "\"reason\":\"not asked for\"}],\"triggers\":[{\"report_type\":\"pedantic\","
                   "\"key\":\"display:unimpl:\xee\xbf\xbf\\u0001\",\"count\":18446744073709551615,"
                   "\"first\":\"2026-11-21T00:36:50.000000Z\","
                   "\"last\":\"2026-11-21T00:36:51.000000Z\",\"written\":true,\"reports\":1},{"
                   "\"report_type\":\"disconnect\",\"count\":3,"
                   "\"first\":\"2026-11-21T00:36:50.000000Z\","
                   "\"last\":\"2026-11-21T00:36:50.000000Z\",\"written\":false,\"reports\":0,"
                   "\"reason\":\"within 60 s of an earlier one\"}]}");
}

Test(model, manifest_says_how_a_profile_was_taken) {
    const bp_manifest manifest = {.report_id = "00112233445566778899aabbccddeeff",
                                  .profile = {.is_known = true,
                                              .excludes_kernel = true,
                                              .rate_hz = 50,
                                              .sample_count = UINT64_MAX,
                                              .lost_count = 1,
                                              .window_ns = 2 * BP_NS_PER_SEC,
                                              .thread_count = 2}};
    EXPECT_PRINTED(bp_manifest_print(&manifest, &out, &error),
                   "{\"schema\":2,\"report_id\":\"00112233445566778899aabbccddeeff\","
                   "\"complete\":true,\"missing\":0,\"redacted\":false,\"artefacts\":[],"
                   "\"profile\":{\"rate_hz\":50,\"samples\":18446744073709551615,\"lost\":1,"
                   "\"window_ms\":2000,\"threads\":2,\"without_kernel\":true}}");
}

Test(model, an_omission_by_a_limit_leaves_the_report_complete) {
    const bp_manifest manifest = {.report_id = "id", .entries = sample_ledger, .entry_count = 2};
    cr_assert(eq(int, bp_manifest_print(&manifest, &out, &error), BUGPACK_OK));
    cr_expect(strstr(out.data, "\"complete\": true,\n  \"missing\": 0,\n") != NULL);
    cr_expect(strstr(out.data, "triggers") == NULL);
}
