/*
 * Two reports compared.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspect/diff.h"
#include "support/made_zip.h"
#include "support/temp_dir.h"

static temp_dir dir;
static bugpack_error error;
static char paths[2][300];

static void setup(void) {
    cr_assert(temp_dir_make(&dir));
    (void)snprintf(paths[0], sizeof paths[0], "%s/a", dir.path);
    (void)snprintf(paths[1], sizeof paths[1], "%s/b", dir.path);
}

static void teardown(void) {
    temp_dir_remove(&dir);
}

TestSuite(diff, .init = setup, .fini = teardown);

static bugpack_status compare(const char *before, const char *after, bp_diff *ret_diff) {
    cr_assert(temp_dir_write(&dir, "a", before, strlen(before)));
    cr_assert(temp_dir_write(&dir, "b", after, strlen(after)));
    return bp_diff_compute(paths[0], paths[1], BP_MACHINE_BY_PROCESS, "schedstat.run_ns", ret_diff,
                           &error);
}

static void write_report(const char *name, const char *id, const char *extra_name,
                         const char *extra, const char *artefacts) {
    char metadata[256], manifest[512];
    (void)snprintf(metadata, sizeof metadata,
                   "{\"schema\": 1, \"report_id\": \"%s\", \"app\": {\"name\": \"viewer\"}}", id);
    (void)snprintf(manifest, sizeof manifest,
                   "{\"schema\": 1, \"report_id\": \"%s\", \"artefacts\": [%s]}", id, artefacts);
    const made_member members[] = {{"metadata.json", metadata, false},
                                   {"manifest.json", manifest, true},
                                   {extra_name, extra, true}};
    made_zip zip;
    made_zip_build(&zip, members, 3);
    cr_assert(temp_dir_write(&dir, name, zip.bytes.data, zip.bytes.size));
    made_zip_release(&zip);
}

Test(diff, a_number_that_is_not_known_has_no_difference) {
    bp_change change = {.before = 0, .after = 5, .is_known_after = true};
    bp_change_complete(&change);
    cr_expect(not(change.has_delta));
    cr_expect(not(change.has_percent));
    change.is_known_before = true;
    bp_change_complete(&change);
    cr_expect(eq(i64, change.delta, 5));
    cr_expect(not(change.has_percent), "of nothing");
    change.before = 8;
    bp_change_complete(&change);
    cr_expect(eq(i64, change.delta, -3));
    cr_expect(epsilon_eq(dbl, change.percent, -37.5, 1e-9));
}

Test(diff, metrics_are_compared_to_the_hundredth_and_the_last_bit) {
    bp_diff diff;
    cr_assert(compare("{\"process\": {\"cpu_percent\": 0.1, \"rss_kb\": 18446744073709551615}, "
                      "\"threads\": []}",
                      "{\"process\": {\"cpu_percent\": 0.3, \"rss_kb\": 18446744073709551614, "
                      "\"vm_size_kb\": 3}, \"threads\": []}",
                      &diff) == BUGPACK_OK,
              "%s", error.message);
    cr_assert(diff.has_any && diff.has_metrics && !diff.has_heap && !diff.has_host);
    cr_expect(eq(i64, diff.figures[0].change.delta, 20));
    cr_expect(epsilon_eq(dbl, diff.figures[0].change.percent, 200.0, 1e-9));
    cr_expect(eq(i64, diff.figures[1].change.delta, -1));
    cr_expect(not(diff.figures[2].change.is_known_before));
    cr_expect(eq(u64, diff.figures[2].change.after, 3));
    char *text = NULL;
    size_t text_bytes = 0;
    cr_assert(eq(int, bp_diff_json(&diff, SIZE_MAX, &text, &text_bytes, &error), BUGPACK_OK));
    cr_expect(eq(sz, text_bytes, strlen(text)));
    cr_expect(strstr(text, "\"cpu_percent\": {\n      \"before\": 0.1,\n      \"after\": 0.3,\n"
                           "      \"delta\": 0.2,\n      \"percent\": 200\n    }") != NULL,
              "%s", text);
    cr_expect(strstr(text, "\"vm_size_kb\": {\n      \"after\": 3\n    }") != NULL, "%s", text);
    free(text);
    bp_diff_release(&diff);
}

Test(diff, an_absent_artefact_comes_with_the_reason_in_the_manifest) {
    static const char heap[] = "{\"allocated_bytes\": 5, \"allocator\": \"glibc\"}";
    bp_diff diff;
    write_report("a", "0a", "heap-state.json", heap, "");
    write_report(
        "b", "0b", "note", "",
        "{\"name\": \"heap-state.json\", \"status\": \"disabled\", \"reason\": \"by host\"}");
    cr_assert(bp_diff_compute(paths[0], paths[1], BP_MACHINE_BY_PROCESS, "schedstat.run_ns", &diff,
                              &error) == BUGPACK_OK,
              "%s", error.message);
    cr_expect(not(diff.has_any));
    cr_expect(diff.before.presence[BP_DIFF_HEAP].is_there);
    cr_expect(not(diff.after.presence[BP_DIFF_HEAP].is_there));
    cr_expect(eq(str, diff.after.presence[BP_DIFF_HEAP].reason, "disabled: by host"));
    cr_expect(eq(str, (char *)diff.after.facts.app_name, "viewer"));
    bp_diff_release(&diff);
}

Test(diff, metrics_that_are_not_available_say_why) {
    static const char none[] =
        "{\"platform\": \"x\", \"available\": false, \"reason\": \"no way\"}";
    bp_diff diff;
    write_report("a", "0a", "runtime-metrics.json", none, "");
    write_report("b", "0b", "runtime-metrics.json", none, "");
    cr_assert(eq(int,
                 bp_diff_compute(paths[0], paths[1], BP_MACHINE_BY_PROCESS, "schedstat.run_ns",
                                 &diff, &error),
                 BUGPACK_OK));
    cr_expect(not(diff.has_metrics));
    cr_expect(diff.has_any); /* the documents of two reports */
    cr_expect(eq(str, diff.before.presence[BP_DIFF_METRICS].reason, "no way"));
    cr_expect(eq(str, diff.after.presence[BP_DIFF_METRICS].reason, "no way"));
    bp_diff_release(&diff);
}

Test(diff, refuses_numbers_that_are_none_and_says_where) {
    static const char good[] = "{\"process\": {}, \"threads\": []}";
    static const char *const bad[][2] = {
        {"{\"process\": {\"cpu_percent\": -1}, \"threads\": []}", "\"cpu_percent\""},
        {"{\"process\": {\"cpu_percent\": null}, \"threads\": []}", "\"cpu_percent\""},
        {"{\"process\": {\"rss_kb\": \"1\"}, \"threads\": []}", "\"rss_kb\""},
        {"{\"process\": {\"vm_size_kb\": 1e3}, \"threads\": []}", "\"vm_size_kb\""}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bp_diff diff = {.has_any = true};
        cr_expect(eq(int, compare(good, bad[i][0], &diff), BUGPACK_ERR_CORRUPT));
        cr_expect(strstr(error.message, bad[i][1]) != NULL, "%s", error.message);
        cr_expect(strstr(error.message, paths[1]) != NULL, "%s", error.message);
        cr_expect(diff.has_any && diff.before.path == NULL, "an output was touched");
    }
    bp_diff diff;
    cr_expect(eq(int, compare("{}", "{\"narenas\": -1}", &diff), BUGPACK_ERR_CORRUPT));
    cr_expect(strstr(error.message, "heap-state.json of") != NULL, "%s", error.message);
}

Test(diff, a_heap_state_is_known_by_any_of_its_keys_or_by_having_none) {
    static const char *const states[] = {"{}", " { }", "{\"narenas\": 1}",
                                         "{\"allocator\": \"x\"}"};
    static const char *const others[] = {"[]", "{\"a\": 1}", "{\"a\": {\"narenas\": 1}}", "1",
                                         "\"{}\""};
    bp_diff diff;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        cr_assert(eq(int, compare("{\"mapped_bytes\": 1}", states[i], &diff), BUGPACK_OK), "%s",
                  states[i]);
        cr_expect(diff.has_heap && !diff.has_host && !diff.has_metrics);
        bp_diff_release(&diff);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        cr_expect(eq(int, compare("{}", others[i], &diff), BUGPACK_ERR_CORRUPT), "%s", others[i]);
    }
}

Test(diff, refuses_an_unknown_counter_before_it_opens_anything) {
    bp_diff diff;
    cr_expect(eq(
        int, bp_diff_compute("nowhere", "nowhere", BP_MACHINE_BY_PROCESS, "nothing", &diff, &error),
        BUGPACK_ERR_INVALID));
    cr_expect(bp_machine_diff_has_counter("heap.allocated_bytes"));
    cr_expect(not(bp_machine_diff_has_counter("heap")));
}

Test(diff, opens_a_link_to_a_report_and_nothing_that_is_no_regular_file) {
    const char *const others[] = {paths[1], dir.path, "/dev/zero"};
    bp_diff diff = {.has_any = true};
    write_report("t.zip", "0a", "heap-state.json", "{\"allocator\": \"glibc\"}", "");
    cr_assert(eq(int, symlinkat("t.zip", dir.fd, "a"), 0));
    cr_assert(eq(int, mkfifoat(dir.fd, "b", 0600), 0));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        cr_expect(eq(int,
                     bp_diff_compute(paths[0], others[i], BP_MACHINE_BY_PROCESS, "schedstat.run_ns",
                                     &diff, &error),
                     BUGPACK_ERR_IO));
    }
    cr_expect(diff.has_any && diff.before.path == NULL, "an output was touched");
    cr_assert(bp_diff_compute(paths[0], paths[0], BP_MACHINE_BY_PROCESS, "schedstat.run_ns", &diff,
                              &error) == BUGPACK_OK,
              "%s", error.message);
    cr_expect(diff.has_heap);
    bp_diff_release(&diff);
}
