/*
 * The artefacts as they are printed: the order of their keys, what is left out, and hostile bytes.
 */
#include <bugpack/version.h>

#include "unit/model_fixture.h"

TestSuite(model, .init = begin_printing, .fini = end_printing);

Test(model, metadata_has_every_key_in_order) {
    EXPECT_PRINTED(bp_metadata_print(&sample_metadata_full, &out, &error),
                   "{\n"
                   "  \"schema\": 2,\n"
                   "  \"report_id\": \"00112233445566778899aabbccddeeff\",\n"
                   "  \"session_id\": \"ffeeddccbbaa99887766554433221100\",\n"
                   "  \"sequence\": 3,\n"
                   "  \"app\": {\n"
                   "    \"name\": \"viewer\",\n"
                   "    \"version\": \"1.2 \\\"beta\\\"\",\n"
                   "    \"build_id\": \"4f\xee\xbf\xbf\"\n"
                   "  },\n"
                   "  \"bugpack_version\": \"" BUGPACK_VERSION "\",\n"
                   "  \"platform\": {\n"
                   "    \"os\": \"linux\",\n"
                   "    \"arch\": \"x86_64\",\n"
                   "    \"kernel\": \"6.1.0\"\n"
                   "  },\n"
                   "  \"machine\": \"desk-17\xee\xbf\xbf\",\n"
                   "  \"pid\": 4712,\n"
                   "  \"process_name\": \"worker)\\n\xee\xbf\xbf\",\n"
                   "  \"started_at\": \"2026-11-21T00:34:51.123456Z\",\n"
                   "  \"report_type\": \"pedantic\",\n"
                   "  \"gap_key\": \"display:unimpl:draw_rop3\",\n"
                   "  \"channel\": \"display\",\n"
                   "  \"description\": \"black squares\\nafter resize\",\n"
                   "  \"region\": {\n"
                   "    \"x\": 0,\n"
                   "    \"y\": 12,\n"
                   "    \"width\": 16384,\n"
                   "    \"height\": 1\n"
                   "  },\n"
                   "  \"exit\": {\n"
                   "    \"signal\": 11,\n"
                   "    \"name\": \"SIGSEGV\",\n"
                   "    \"core_dumped\": true\n"
                   "  },\n"
                   "  \"timestamp\": \"2026-11-21T00:36:54.123456Z\",\n"
                   "  \"triggered_at\": \"2026-11-21T00:36:52.123456Z\",\n"
                   "  \"session_uptime_secs\": 123,\n"
                   "  \"triggered_uptime_secs\": 121.377,\n"
                   "  \"target\": {\n"
                   "    \"pid\": 4712,\n"
                   "    \"name\": \"worker)\\n\xee\xbf\xbf\"\n"
                   "  },\n"
                   "  \"processes\": [\n"
                   "    {\n"
                   "      \"pid\": 4713,\n"
                   "      \"name\": \"worker\"\n"
                   "    },\n"
                   "    {\n"
                   "      \"pid\": 4720,\n"
                   "      \"name\": \"odd\\n\xee\xbf\xbf\"\n"
                   "    }\n"
                   "  ],\n"
                   "  \"collector\": {\n"
                   "    \"pid\": 4711,\n"
                   "    \"session_uptime_secs\": 3.123,\n"
                   "    \"triggered_uptime_secs\": 1.5\n"
                   "  },\n"
                   "  \"tags\": {\n"
                   "    \"gpu\": \"none\",\n"
                   "    \"server.version\": \"7 \\\"b\\\"\xee\xbf\xbf\"\n"
                   "  }\n"
                   "}\n");
}

Test(model, metadata_leaves_out_what_there_is_not) {
    EXPECT_PRINTED(bp_metadata_print(&sample_metadata_bare, &out, &error),
                   "{\n"
                   "  \"schema\": 2,\n"
                   "  \"report_id\": \"00112233445566778899aabbccddeeff\",\n"
                   "  \"sequence\": 1,\n"
                   "  \"app\": {\n"
                   "    \"name\": \"viewer\"\n"
                   "  },\n"
                   "  \"bugpack_version\": \"" BUGPACK_VERSION "\",\n"
                   "  \"platform\": {\n"
                   "    \"os\": \"linux\"\n"
                   "  },\n"
                   "  \"pid\": 4711,\n"
                   "  \"report_type\": \"bugreport\",\n"
                   "  \"timestamp\": \"2026-11-21T00:36:54.123456Z\",\n"
                   "  \"triggered_at\": \"2026-11-21T00:36:52.123456Z\"\n"
                   "}\n");
}

Test(model, an_exit_has_a_status_or_a_signal) {
    static const struct {
        bugpack_exit exit;
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
    EXPECT_PRINTED(bp_metrics_print(&sample_metrics_full, "linux", &out, &error),
                   "{\n"
                   "  \"sample_window_ms\": 2003,\n"
                   "  \"process\": {\n"
                   "    \"cpu_percent\": 12.5,\n"
                   "    \"rss_kb\": 48211,\n"
                   "    \"vm_size_kb\": 912345,\n"
                   "    \"uptime_secs\": 61.235\n"
                   "  },\n"
                   "  \"threads\": [\n"
                   "    {\n"
                   "      \"tid\": 4711,\n"
                   "      \"name\": \"viewer\",\n"
                   "      \"cpu_percent\": 9.38,\n"
                   "      \"cpu_ms\": 190,\n"
                   "      \"user_ms\": 150,\n"
                   "      \"system_ms\": 40,\n"
                   "      \"voluntary_switches\": 184,\n"
                   "      \"involuntary_switches\": 3\n"
                   "    },\n"
                   "    {\n"
                   "      \"tid\": 4712,\n"
                   "      \"name\": \"net)\\n\xee\xbf\xbf\",\n"
                   "      \"cpu_percent\": 0,\n"
                   "      \"cpu_ms\": 62.093,\n"
                   "      \"born_in_window\": true,\n"
                   "      \"age_ms\": 70\n"
                   "    },\n"
                   "    {\n"
                   "      \"tid\": 4713,\n"
                   "      \"name\": \"\",\n"
                   "      \"cpu_percent\": 0\n"
                   "    }\n"
                   "  ],\n"
                   "  \"platform\": \"linux\"\n"
                   "}\n");
}

Test(model, metrics_leave_out_memory_and_uptime_that_are_not_known) {
    EXPECT_PRINTED(bp_metrics_print(&sample_metrics_bare, "linux", &out, &error),
                   "{\n"
                   "  \"sample_window_ms\": 1,\n"
                   "  \"process\": {\n"
                   "    \"cpu_percent\": 0\n"
                   "  },\n"
                   "  \"threads\": [],\n"
                   "  \"platform\": \"linux\"\n"
                   "}\n");
}

Test(model, metrics_that_there_are_not_say_why) {
    EXPECT_PRINTED(bp_metrics_print_unavailable("freebsd", "no sampler \"yet\"", &out, &error),
                   "{\n"
                   "  \"platform\": \"freebsd\",\n"
                   "  \"available\": false,\n"
                   "  \"reason\": \"no sampler \\\"yet\\\"\"\n"
                   "}\n");
}

Test(model, manifest_counts_what_is_missing_and_says_why) {
    EXPECT_PRINTED(bp_manifest_print(&sample_manifest_full, &out, &error),
                   "{\n"
                   "  \"schema\": 2,\n"
                   "  \"report_id\": \"00112233445566778899aabbccddeeff\",\n"
                   "  \"complete\": false,\n"
                   "  \"missing\": 1,\n"
                   "  \"redacted\": true,\n"
                   "  \"artefacts\": [\n"
                   "    {\n"
                   "      \"name\": \"metadata.json\",\n"
                   "      \"status\": \"ok\",\n"
                   "      \"bytes\": 700,\n"
                   "      \"captured_at\": \"2026-11-21T00:36:54.123456Z\",\n"
                   "      \"duration_ms\": 1.235,\n"
                   "      \"not_searched\": true,\n"
                   "      \"exact_channels\": [\n"
                   "        \"display\",\n"
                   "        \"usb\"\n"
                   "      ],\n"
                   "      \"redactions\": [\n"
                   "        {\n"
                   "          \"rule\": \"password\",\n"
                   "          \"count\": 2\n"
                   "        }\n"
                   "      ]\n"
                   "    },\n"
                   "    {\n"
                   "      \"name\": \"logs.jsonl\",\n"
                   "      \"status\": \"truncated\",\n"
                   "      \"bytes\": 18446744073709551615,\n"
                   "      \"original_bytes\": 18446744073709551615,\n"
                   "      \"captured_at\": \"2026-11-21T00:36:52.123456Z\",\n"
                   "      \"duration_ms\": 0,\n"
                   "      \"covers\": {\n"
                   "        \"from\": \"2026-11-21T00:36:51.123456Z\",\n"
                   "        \"to\": \"2026-11-21T00:36:52.123456Z\"\n"
                   "      },\n"
                   "      \"reason\": \"12 older records were dropped\"\n"
                   "    },\n"
                   "    {\n"
                   "      \"name\": \"session.json\",\n"
                   "      \"status\": \"failed\",\n"
                   "      \"bytes\": 0,\n"
                   "      \"duration_ms\": 2000,\n"
                   "      \"reason\": \"line 1, column 2: \xee\xbf\xbf\"\n"
                   "    },\n"
                   "    {\n"
                   "      \"name\": \"heap-state.json\",\n"
                   "      \"status\": \"disabled\",\n"
                   "      \"bytes\": 0,\n"
                   "      \"duration_ms\": 0,\n"
                   "      \"reason\": \"not asked for\"\n"
                   "    }\n"
                   "  ],\n"
                   "  \"triggers\": [\n"
                   "    {\n"
                   "      \"report_type\": \"pedantic\",\n"
                   "      \"key\": \"display:unimpl:\xee\xbf\xbf\\u0001\",\n"
                   "      \"count\": 18446744073709551615,\n"
                   "      \"first\": \"2026-11-21T00:36:50.000000Z\",\n"
                   "      \"last\": \"2026-11-21T00:36:51.000000Z\",\n"
                   "      \"written\": true,\n"
                   "      \"reports\": 1\n"
                   "    },\n"
                   "    {\n"
                   "      \"report_type\": \"disconnect\",\n"
                   "      \"count\": 3,\n"
                   "      \"first\": \"2026-11-21T00:36:50.000000Z\",\n"
                   "      \"last\": \"2026-11-21T00:36:50.000000Z\",\n"
                   "      \"written\": false,\n"
                   "      \"reports\": 0,\n"
                   "      \"reason\": \"within 60 s of an earlier one\"\n"
                   "    }\n"
                   "  ]\n"
                   "}\n");
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
                   "{\n"
                   "  \"schema\": 2,\n"
                   "  \"report_id\": \"00112233445566778899aabbccddeeff\",\n"
                   "  \"complete\": true,\n"
                   "  \"missing\": 0,\n"
                   "  \"redacted\": false,\n"
                   "  \"artefacts\": [],\n"
                   "  \"profile\": {\n"
                   "    \"rate_hz\": 50,\n"
                   "    \"samples\": 18446744073709551615,\n"
                   "    \"lost\": 1,\n"
                   "    \"window_ms\": 2000,\n"
                   "    \"threads\": 2,\n"
                   "    \"without_kernel\": true\n"
                   "  }\n"
                   "}\n");
}

Test(model, an_omission_by_a_limit_leaves_the_report_complete) {
    const bp_manifest manifest = {.report_id = "id", .entries = sample_ledger, .entry_count = 2};
    cr_assert(eq(int, bp_manifest_print(&manifest, &out, &error), BUGPACK_OK));
    cr_expect(strstr(out.data, "\"complete\": true,\n  \"missing\": 0,\n") != NULL);
    cr_expect(strstr(out.data, "triggers") == NULL);
}

Test(model, every_kind_and_status_has_a_name_of_its_own) {
    for (int kind = BP_REPORT_BUGREPORT; kind <= BP_REPORT_CRASH; kind++) {
        for (int other = BP_REPORT_BUGREPORT; other < kind; other++) {
            cr_expect(ne(str, bp_report_kind_name((bp_report_kind)kind),
                         bp_report_kind_name((bp_report_kind)other)));
        }
    }
    for (int status = BP_ARTEFACT_OK; status <= BP_ARTEFACT_DISABLED; status++) {
        for (int other = BP_ARTEFACT_OK; other < status; other++) {
            cr_expect(ne(str, bp_artefact_status_name((bp_artefact_status)status),
                         bp_artefact_status_name((bp_artefact_status)other)));
        }
    }
}
