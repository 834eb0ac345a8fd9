/*
 * process.json as it is printed: the order of its keys, what is left out, and hostile bytes.
 */
#include "unit/model_fixture.h"

TestSuite(model_process, .init = begin_printing, .fini = end_printing);

Test(model_process, leaves_out_groups_of_which_nothing_is_known) {
    EXPECT_PRINTED(bp_process_print(&sample_process_bare, &out, &error),
                   "{\"pid\":2,\"name\":\"kthreadd\",\"kernel_thread\":true,\"context_switches\":{"
                   "\"voluntary\":5}}");
}

/* Compared piece by piece, because a report of one long text that differs cannot be read. */
Test(model_process, keeps_every_fact_exactly) {
    static const char *const pieces[] = {
        "{\n  \"pid\": 4711,\n  \"parent_pid\": 1,\n  \"name\": \"view)\xee\xbf\xbf\",\n"
        "  \"state\": \"S\",\n  \"kernel_thread\": false,\n  \"uid\": 1000,\n  \"gid\": 100,\n"
        "  \"executable\": \"/usr/bin/viewer\",\n  \"working_directory\": \"/home/someone\",\n"
        "  \"command_line\": [\n    \"viewer\",\n    \"--name\",\n    \"\",\n"
        "    \"caf\xee\xbf\xa9\"\n  ],\n  \"started_at\": \"2026-11-21T00:36:51.123456Z\",\n"
        "  \"start_ticks\": 3949755,\n  \"boot_id\": \"00112233-4455\",\n"
        "  \"threads\": 3,\n  \"user_threads\": 900,\n  \"open_files\": 17,\n"
        "  \"mappings\": 250,\n  \"mappings_max\": 65530,\n",
        "  \"context_switches\": {\n    \"voluntary\": 100,\n    \"involuntary\": 7\n  },\n"
        "  \"page_faults\": {\n    \"minor\": 2000,\n    \"major\": 0\n  },\n"
        "  \"memory\": {\n    \"rss_kb\": 40000,\n    \"peak_rss_kb\": 50000,\n"
        "    \"swap_kb\": 0,\n    \"vm_size_kb\": 90000,\n    \"data_kb\": 60000\n  },\n"
        "  \"zombie_children\": 21,\n  \"zombie_name\": \"worker\",\n"
        "  \"io\": {\n    \"read_bytes\": 4096,\n    \"written_bytes\": 18446744073709551615,\n"
        "    \"read_chars\": 5000,\n    \"written_chars\": 6000,\n    \"read_calls\": 10,\n"
        "    \"write_calls\": 20\n  },\n",
        "  \"cgroup\": \"/user.slice/app.scope\",\n"
        "  \"oom\": {\n    \"score\": 666,\n    \"score_adj\": -17\n  },\n"
        "  \"limits\": [\n    {\n      \"name\": \"Max open files\",\n      \"soft\": 1024,\n"
        "      \"hard\": 18446744073709551614,\n      \"unit\": \"files\"\n    },\n"
        "    {\n      \"name\": \"Max nice priority\",\n      \"soft\": null,\n"
        "      \"hard\": null\n    }\n  ],\n",
        "  \"loaded_objects\": [\n    {\n      \"path\": \"/usr/bin/viewer\",\n"
        "      \"address\": \"0x555555554000\",\n      \"build_id\": \"0123456789abcdef\",\n"
        "      \"deleted\": false\n    },\n    {\n"
        "      \"path\": \"/usr/lib/libfoo.so.1\xee\xbf\xbf\",\n"
        "      \"address\": \"0xffffffffff600000\",\n      \"deleted\": true\n    }\n  ]\n}\n"};
    cr_assert(eq(int, bp_process_print(&sample_process_full, &out, &error), BUGPACK_OK));
    char *at = out.data;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        size_t length = strlen(pieces[i]);
        cr_assert(strncmp(at, pieces[i], length) == 0, "piece %zu differs:\n%s", i, at);
        at += length;
    }
    cr_expect(eq(str, at, ""));
}

Test(model_process, a_process_without_a_known_command_line_has_none) {
    bp_process_facts facts = sample_process_full;
    facts.command_line = (bp_buffer){0};
    facts.objects_known = false;
    facts.limit_count = 0;
    cr_assert(eq(int, bp_process_print(&facts, &out, &error), BUGPACK_OK));
    cr_expect(strstr(out.data, "command_line") == NULL);
    cr_expect(strstr(out.data, "loaded_objects") == NULL);
    cr_expect(strstr(out.data, "limits") == NULL);
}
