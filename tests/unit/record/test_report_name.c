#include "model/entry.h"
#include "report/name.h"
#include "unit/unit.h"

static const uint64_t some_time_ns = 1795250211ull * 1000000000u; /* 2026-11-21T08:36:51Z */

Test(report_name, is_app_kind_and_time) {
    char stem[BP_NAME_STEM_BYTES];
    bp_name_report_stem("viewer", BP_REPORT_BUGREPORT, NULL, some_time_ns, stem);
    cr_assert(eq(str, stem, "viewer-bugreport-2026-11-21T08-36-51Z"));
}

Test(report_name, makes_a_hostile_detail_harmless) {
    char stem[BP_NAME_STEM_BYTES];
    bp_name_report_stem("viewer", BP_REPORT_PEDANTIC, "display:unimpl:../a b\\c\xff\n",
                        some_time_ns, stem);
    cr_assert(eq(str, stem, "viewer-pedantic-display-unimpl-..-a-b-c__-2026-11-21T08-36-51Z"));
}

Test(report_name, is_neither_hidden_nor_an_option) {
    char stem[BP_NAME_STEM_BYTES];
    bp_name_report_stem(".app", BP_REPORT_CRASH, NULL, some_time_ns, stem);
    cr_assert(eq(str, stem, "_app-crash-2026-11-21T08-36-51Z"));
    bp_name_report_stem("-rf", BP_REPORT_CRASH, NULL, some_time_ns, stem);
    cr_assert(eq(str, stem, "_rf-crash-2026-11-21T08-36-51Z"));
    bp_name_report_stem("a/../b", BP_REPORT_CRASH, NULL, some_time_ns, stem);
    cr_assert(eq(str, stem, "a-..-b-crash-2026-11-21T08-36-51Z"));
}

Test(report_name, stays_within_its_bound_for_any_length) {
    char stem[BP_NAME_STEM_BYTES];
    char longest[1000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    bp_name_report_stem(longest, BP_REPORT_AUTO_SNAPSHOT, longest, some_time_ns, stem);
    cr_assert(lt(sz, strlen(stem), sizeof stem));
    cr_assert(eq(str, stem + strlen(stem) - 21, "-2026-11-21T08-36-51Z"));
}

Test(report_name, refuses_artefact_names_that_leave_or_break_the_zip) {
    const char *bad[] = {
        "",     "/etc/passwd",   "../x",          "a/../b",       "a//b",         "a/",
        ".",    "a/./b",         "a\\b",          "c:x",          "a\nb",         "\x7f",
        "\xff", "manifest.json", "METADATA.json", "process.json", "Traffic.pcap", "\xc0\xae"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_assert(ne(ptr, bp_entry_refuse(bad[i]), NULL), "%s", bad[i]);
    }
    char long_name[202];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    cr_assert(ne(ptr, bp_entry_refuse(long_name), NULL));
}

Test(report_name, accepts_what_a_host_may_provide) {
    const char eszett[] = "gr\xc3\xb6\xc3\x9f"
                          "e.txt";
    const char *good[] = {"session.json", "channel-state.json",
                          "logs/app.log", "a",
                          "dumps/x.bin",  "..a",
                          eszett,         "-x"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const char *refusal = bp_entry_refuse(good[i]);
        cr_assert(eq(ptr, refusal, NULL), "%s: %s", good[i], refusal);
    }
}

Test(report_name, ranks_entries_as_the_format_lists_them) {
    const char *order[] = {"metadata.json",
                           "runtime-metrics.json",
                           "process.json",
                           "threads.json",
                           "files.json",
                           "system.json",
                           "session.json",
                           "logs.jsonl",
                           "logs/a.log",
                           "traffic.pcap",
                           "commands/ss.txt",
                           "anything.bin",
                           "processes/7-b/metadata.json",
                           "processes/7-b/process.json",
                           "processes/12-a/metadata.json",
                           "processes/4194304-a/new.json",
                           "manifest.json"};
    for (size_t i = 1; i < sizeof order / sizeof order[0]; i++) {
        cr_assert(lt(uint, bp_entry_rank(order[i - 1]), bp_entry_rank(order[i])));
    }
    cr_assert(eq(uint, bp_entry_rank("one"), bp_entry_rank("two")));
}

Test(report_name, tells_the_entry_from_its_process) {
    cr_expect(zero(int, strcmp(bp_entry_in_process("processes/7-b/process.json"), "process.json")));
    const char *plain[] = {"process.json", "processes/x", "myprocesses/7-b/process.json"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        cr_expect(eq(ptr, bp_entry_in_process(plain[i]), plain[i]));
    }
}

Test(report_name, leaves_the_directory_of_processes_to_the_library) {
    const char *bad[] = {"processes", "processes/x", "Processes/7-b/process.json"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(ne(ptr, bp_entry_refuse(bad[i]), NULL));
    }
    cr_expect(eq(ptr, bp_entry_refuse("processes.txt"), NULL));
}

Test(report_name, knows_which_entries_can_be_left_out) {
    char out[BP_ENTRY_MISTAKE_BYTES];
    cr_expect(eq(ptr, bp_entry_refuse_list("", out), NULL));
    cr_expect(eq(ptr, bp_entry_refuse_list("  threads.json process.json ", out), NULL));
    cr_expect(ne(ptr, bp_entry_refuse_list("threads.json metadata.json", out), NULL));
    cr_expect(ne(ptr, bp_entry_refuse_list("threads.json,process.json", out), NULL));
    cr_expect(ne(ptr, bp_entry_refuse_list("threads", out), NULL));
    cr_expect(bp_entry_is_in_list("process.json threads.json", "threads.json"));
    cr_expect(not(bp_entry_is_in_list("process.json threads.json", "thread-heap.json")));
    cr_expect(not(bp_entry_is_in_list("threads.jsonl", "threads.json")));
}
