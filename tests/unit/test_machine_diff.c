/*
 * What changed from one capture of the machine to the next.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "inspect/machine_diff.h"
#include "model/machine_threads.h"

/* One thread of a capture, as a test writes it down. */
typedef struct made_thread {
    uint64_t tgid, tid, start;
    const char *process, *name, *cgroup;
    uint64_t run_ns;
    bool is_measured;
} made_thread;

/* Begun when the machine was 1,000 ticks old. */
static const bp_machine_summary first_summary = {.ticks_per_sec = 100, .boottime_ns = 10000000000u};
static const bp_machine_summary second_summary = {
    .ticks_per_sec = 100, .boottime_ns = 20000000000u, .captured_wall_ns = 10000000000u};

static void print_capture(const bp_machine_summary *summary, const made_thread *threads,
                          size_t count, bp_buffer *out) {
    const bp_machine_header header = {.summary = summary};
    bp_buffer element;
    bp_buffer_init(out, (size_t)1 << 20);
    bp_buffer_init(&element, (size_t)1 << 20);
    cr_assert(eq(int, bp_machine_print_header(&header, out, NULL), BUGPACK_OK));
    for (size_t i = 0; i < count; i++) {
        bp_machine_thread thread = {.tgid = threads[i].tgid,
                                    .tid = threads[i].tid,
                                    .has_start = threads[i].start != 0,
                                    .start_ticks = threads[i].start,
                                    .cgroup = threads[i].cgroup};
        (void)snprintf(thread.process_name, sizeof thread.process_name, "%s", threads[i].process);
        (void)snprintf(thread.name, sizeof thread.name, "%s", threads[i].name);
        thread.counters[BP_MACHINE_RUN] = thread.counters[BP_MACHINE_WAIT_MAX] =
            thread.counters[BP_MACHINE_RSS] = threads[i].run_ns;
        thread.measured =
            threads[i].is_measured
                ? 1u << BP_MACHINE_SCHEDSTAT | 1u << BP_MACHINE_WAITS | 1u << BP_MACHINE_MEMORY
                : 0;
        bp_machine_print_thread(&thread, &element);
        (void)bp_buffer_append_text(out, bp_buffer_text(&element) + (i == 0 ? 1 : 0));
        bp_buffer_clear(&element);
    }
    bp_buffer_release(&element);
    (void)bp_buffer_append_text(out, count > 0 ? bp_machine_tail : bp_machine_tail_empty);
    (void)bp_buffer_append(out, "", 1);
}

static const char empty[] = "{\"threads\": []}";
/* In pieces that end anywhere. */
static bugpack_status give_text(const void *context, bp_sink *sink, void *sink_context,
                                bugpack_error *error) {
    const char *text = context;
    size_t left = strlen(text), piece_bytes = 7;
    bugpack_status status = BUGPACK_OK;
    (void)error;
    for (; status == BUGPACK_OK && left > 0; text += piece_bytes, left -= piece_bytes) {
        piece_bytes = left < piece_bytes ? left : piece_bytes;
        status = sink(sink_context, text, piece_bytes);
    }
    return status;
}

static bugpack_status compute(const char *before, const char *after, bp_machine_key key,
                              const char *counter, bp_machine_diff *ret_diff,
                              bugpack_error *error) {
    const bp_giver old_text = {give_text, before}, new_text = {give_text, after};
    return bp_machine_diff_compute(&old_text, &new_text, key, counter, ret_diff, error);
}

static void compare_with(const bp_machine_summary *first, const made_thread *before,
                         size_t before_count, const bp_machine_summary *second,
                         const made_thread *after, size_t after_count, bp_machine_key key,
                         const char *counter, bp_machine_diff *ret_diff) {
    bp_buffer text_before, text_after;
    bugpack_error error = BUGPACK_ERROR_INIT;
    print_capture(first, before, before_count, &text_before);
    print_capture(second, after, after_count, &text_after);
    cr_assert(eq(int,
                 compute(bp_buffer_text(&text_before), bp_buffer_text(&text_after), key, counter,
                         ret_diff, &error),
                 BUGPACK_OK),
              "%s", error.message);
    bp_buffer_release(&text_before);
    bp_buffer_release(&text_after);
}

#define COMPARE(before, after, key, counter, ret_diff)                                             \
    compare_with(&first_summary, before, sizeof(before) / sizeof *(before), &second_summary,       \
                 after, sizeof(after) / sizeof *(after), key, counter, ret_diff)

static const char run_ns[] = "schedstat.run_ns";

static const bp_machine_row *find(const bp_machine_diff *diff, const char *name) {
    for (size_t i = 0; i < diff->row_count; i++) {
        if (strcmp(diff->rows[i].name, name) == 0) {
            return &diff->rows[i];
        }
    }
    cr_fail("there is no row %s", name);
    return NULL;
}

/* The sums of what is in both captures, and how many threads that is. */
static void expect_row(const bp_machine_row *row, const char *name, uint64_t in_both,
                       uint64_t sum_before, uint64_t sum_after, int64_t delta) {
    cr_expect(eq(str, (char *)row->name, (char *)name));
    cr_expect(eq(u64, row->threads_in_both, in_both), "%s", name);
    cr_expect(eq(u64, row->change.before, sum_before), "%s", name);
    cr_expect(eq(u64, row->change.after, sum_after), "%s", name);
    cr_expect(eq(i64, row->change.delta, delta), "%s", name);
}

static void expect_rest(const bp_machine_rest *rest, uint64_t count, uint64_t measured_count,
                        uint64_t value) {
    cr_expect(eq(u64, rest->count, count));
    cr_expect(eq(u64, rest->measured_count, measured_count));
    cr_expect(eq(u64, rest->value, value));
}

static const made_thread before[] = {
    {1, 1, 5, "server", "net", "/a", 100, true},   {1, 2, 6, "server", "disk", "/a", 50, true},
    {1, 3, 6, "server", "old", "/a", 4000, true},  {4, 4, 7, "gone", "gone", "/b", 40, true},
    {5, 5, 7, "hidden", "hidden", NULL, 0, false}, {6, 6, 7, "same", "same", "/c", 9, true},
    {7, 7, 7, "reused", "reused", "/c", 700, true}};
static const made_thread after[] = {{6, 6, 7, "same", "same", "/c", 9, true},
                                    {1, 1, 5, "server", "net", "/a", 101, true},
                                    {1, 9, 1500, "server", "young", "/a", 3, true},
                                    {1, 2, 6, "server", "disk", "/a", 500, true},
                                    {8, 8, 1000, "new\n\xff", "net", "/b", 7, true},
                                    {7, 7, 1001, "reused", "reused", "/c", 1, true},
                                    {5, 5, 7, "hidden", "hidden", NULL, 30, true}};

Test(host_diff, subtracts_what_is_in_both_and_lists_what_ended_and_what_was_born) {
    bp_machine_diff diff;
    COMPARE(before, after, BP_MACHINE_BY_PROCESS, run_ns, &diff);
    cr_assert(eq(sz, diff.row_count, 6));
    cr_expect(diff.is_same_boot && diff.is_complete_before && diff.is_complete_after);
    cr_expect(not(diff.is_maximum));
    const bp_machine_row *server = &diff.rows[0];
    expect_row(server, "server", 2, 150, 601, 451);
    cr_expect(epsilon_eq(dbl, server->change.percent, 300.67, 1e-9));
    cr_expect(eq(u64, server->threads_before, 3));
    cr_expect(eq(u64, server->threads_after, 3));
    expect_rest(&server->ended, 1, 1, 4000);
    expect_rest(&server->born, 1, 1, 3);
    cr_expect(eq(u64, server->not_compared_count, 0));
    const bp_machine_row *born = &diff.rows[1];
    expect_row(born, "new\n\xee\xbf\xbf", 0, 0, 0, 0);
    cr_expect(not(born->change.has_delta), "a thread that was not there has no change");
    expect_rest(&born->born, 1, 1, 7);
    const bp_machine_row *reused = &diff.rows[2];
    expect_row(reused, "reused", 0, 0, 0, 0);
    expect_rest(&reused->ended, 1, 1, 700);
    expect_rest(&reused->born, 1, 1, 1);
    const bp_machine_row *ended = &diff.rows[3];
    expect_row(ended, "gone", 0, 0, 0, 0);
    expect_rest(&ended->ended, 1, 1, 40);
    cr_expect(bp_machine_row_is_changed(ended));
    expect_row(&diff.rows[4], "same", 1, 9, 9, 0);
    cr_expect(not(bp_machine_row_is_changed(&diff.rows[4])));
    cr_expect(not(bp_machine_row_is_unknown(&diff.rows[4])));
    expect_row(&diff.rows[5], "hidden", 1, 0, 0, 0);
    cr_expect(not(bp_machine_row_is_changed(&diff.rows[5])));
    cr_expect(bp_machine_row_is_unknown(&diff.rows[5]), "it was measured on one side alone");
    cr_expect(eq(u64, diff.rows[5].not_compared_count, 1));
    bp_machine_diff_release(&diff);
}

Test(host_diff, groups_by_cgroup_and_by_thread_name) {
    bp_machine_diff diff;
    COMPARE(before, after, BP_MACHINE_BY_CGROUP, run_ns, &diff);
    cr_assert(eq(sz, diff.row_count, 4));
    expect_row(&diff.rows[0], "/a", 2, 150, 601, 451);
    expect_rest(&find(&diff, "/b")->ended, 1, 1, 40);
    expect_rest(&find(&diff, "/b")->born, 1, 1, 7);
    expect_row(&diff.rows[3], "", 1, 0, 0, 0);
    bp_machine_diff_release(&diff);
    COMPARE(before, after, BP_MACHINE_BY_THREAD, run_ns, &diff);
    expect_row(&diff.rows[0], "disk", 1, 50, 500, 450);
    expect_row(find(&diff, "net"), "net", 1, 100, 101, 1);
    expect_rest(&find(&diff, "net")->born, 1, 1, 7);
    bp_machine_diff_release(&diff);
}

Test(host_diff, never_adds_up_a_maximum) {
    bp_machine_diff diff;
    COMPARE(before, after, BP_MACHINE_BY_PROCESS, "waits.wait_max_ns", &diff);
    cr_expect(diff.is_maximum);
    const bp_machine_row *server = find(&diff, "server");
    expect_row(server, "server", 2, 100, 500, 400);
    expect_rest(&server->ended, 1, 1, 4000);
    expect_rest(&server->born, 1, 1, 3);
    bp_machine_diff_release(&diff);
}

Test(host_diff, the_memory_is_of_processes_and_falls_when_one_ends) {
    bp_machine_diff diff;
    COMPARE(before, after, BP_MACHINE_BY_PROCESS, "smaps_rollup.rss_kb", &diff);
    cr_expect(eq(str, (char *)diff.rows[0].name, "reused"), "700 less and 1 more");
    cr_expect(eq(u64, diff.rows[0].weight, 699));
    const bp_machine_row *server = find(&diff, "server");
    expect_row(server, "server", 2, 100, 101, 1);
    expect_rest(&server->ended, 1, 0, 0);
    cr_expect(eq(u64, server->not_compared_count, 0), "a second thread has no memory of its own");
    cr_expect(eq(u64, find(&diff, "gone")->weight, 40));
    bp_machine_diff_release(&diff);
}

Test(host_diff, a_thread_that_a_capture_missed_was_neither_born_nor_has_it_ended) {
    static const made_thread one[] = {{1, 1, 5, "a", "a", NULL, 10, true},
                                      {2, 2, 0, "b", "b", NULL, 10, true}};
    static const made_thread other[] = {{3, 3, 998, "c", "c", NULL, 10, true},
                                        {4, 4, 999, "d", "d", NULL, 10, true},
                                        {2, 2, 0, "b", "b", NULL, 30, true}};
    bp_machine_summary cut = second_summary;
    bp_machine_diff diff;
    cut.is_cut = true;
    compare_with(&first_summary, one, 2, &cut, other, 3, BP_MACHINE_BY_PROCESS, run_ns, &diff);
    cr_expect(diff.is_complete_before && !diff.is_complete_after);
    expect_rest(&find(&diff, "a")->ended, 0, 0, 0);
    cr_expect(eq(u64, find(&diff, "a")->not_compared_count, 1));
    cr_expect(eq(u64, find(&diff, "b")->not_compared_count, 2), "its start is not known");
    expect_rest(&find(&diff, "c")->born, 0, 0, 0);
    cr_expect(eq(u64, find(&diff, "c")->not_compared_count, 1), "it is older than the first");
    expect_rest(&find(&diff, "d")->born, 1, 1, 10);
    bp_machine_diff_release(&diff);
}

Test(host_diff, after_a_restart_no_thread_is_in_both) {
    static const made_thread one[] = {{1, 1, 5, "init", "init", NULL, 1000, true}};
    static const made_thread other[] = {{1, 1, 5, "init", "init", NULL, 10, true}};
    bp_machine_summary restarted = second_summary;
    bp_machine_diff diff;
    restarted.boottime_ns = 5000000000u;
    compare_with(&first_summary, one, 1, &restarted, other, 1, BP_MACHINE_BY_PROCESS, run_ns,
                 &diff);
    cr_expect(not(diff.is_same_boot));
    expect_row(&diff.rows[0], "init", 0, 0, 0, 0);
    expect_rest(&diff.rows[0].ended, 1, 1, 1000);
    expect_rest(&diff.rows[0].born, 1, 1, 10);
    bp_machine_diff_release(&diff);
    compare_with(&second_summary, one, 1, &first_summary, other, 1, BP_MACHINE_BY_PROCESS, run_ns,
                 &diff);
    cr_expect(diff.is_same_boot, "the later one was given first");
    expect_row(&diff.rows[0], "init", 1, 1000, 10, -990);
    bp_machine_diff_release(&diff);
}

Test(host_diff, the_boot_id_tells_two_boots_apart) {
    static const char text[] = "{\"summary\": {\"boot_id\": \"%s\"}, \"threads\": [{\"tgid\": 1, "
                               "\"tid\": 1, \"start_ticks\": 1, \"process\": \"a\"}]}";
    char one[256], other[256];
    bp_machine_diff diff;
    (void)snprintf(one, sizeof one, text, "x");
    (void)snprintf(other, sizeof other, text, "y");
    cr_assert(eq(int, compute(one, other, BP_MACHINE_BY_PROCESS, run_ns, &diff, NULL), BUGPACK_OK));
    cr_expect(not(diff.is_same_boot));
    bp_machine_diff_release(&diff);
    cr_assert(eq(int, compute(one, one, BP_MACHINE_BY_PROCESS, run_ns, &diff, NULL), BUGPACK_OK));
    cr_expect(diff.is_same_boot);
    cr_expect(eq(u64, diff.rows[0].threads_in_both, 1));
    bp_machine_diff_release(&diff);
}

Test(host_diff, reads_what_was_not_measured_from_both_schemas) {
#define THREAD "\"tgid\": 1, \"tid\": 1, \"start_ticks\": 1, \"process\": \"a\""
    static const char *const unmeasured[] = {
        "{\"threads\": [{" THREAD
        ", \"schedstat_measured\": false, \"schedstat\": {\"run_ns\": 0}}]}",
        "{\"threads\": [{" THREAD ", \"schedstat_measured\": false}]}",
        "{\"threads\": [{" THREAD "}]}"};
    static const char *const measured[] = {
        "{\"threads\": [{" THREAD
        ", \"schedstat_measured\": true, \"schedstat\": {\"run_ns\": 6}}]}",
        "{\"threads\": [{" THREAD ", \"schedstat\": {\"run_ns\": 6}}]}"};
    bp_machine_diff diff;
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 2; j++) {
            cr_assert(
                eq(int,
                   compute(unmeasured[i], measured[j], BP_MACHINE_BY_PROCESS, run_ns, &diff, NULL),
                   BUGPACK_OK));
            cr_expect(eq(sz, diff.measured_before, 0));
            cr_expect(eq(sz, diff.measured_after, 1));
            cr_expect(bp_machine_row_is_unknown(&diff.rows[0]));
            cr_expect(not(diff.rows[0].change.has_delta));
            bp_machine_diff_release(&diff);
        }
    }
}

Test(host_diff, stays_inside_its_integers) {
    static const made_thread large[] = {{1, 1, 1, "a", "a", NULL, UINT64_MAX, true},
                                        {1, 2, 1, "a", "a", NULL, UINT64_MAX, true}};
    static const made_thread none[] = {{1, 1, 1, "a", "a", NULL, 0, true},
                                       {1, 2, 1, "a", "a", NULL, 0, true},
                                       {1, 3, 2000, "a", "a", NULL, UINT64_MAX, true}};
    bp_machine_diff diff;
    COMPARE(large, none, BP_MACHINE_BY_PROCESS, run_ns, &diff);
    expect_row(&diff.rows[0], "a", 2, UINT64_MAX, 0, INT64_MIN);
    cr_expect(eq(u64, diff.rows[0].weight, UINT64_MAX));
    bp_machine_diff_release(&diff);
    COMPARE(none, large, BP_MACHINE_BY_PROCESS, run_ns, &diff);
    expect_row(&diff.rows[0], "a", 2, 0, UINT64_MAX, INT64_MAX);
    bp_machine_diff_release(&diff);
    compare_with(&first_summary, NULL, 0, &second_summary, NULL, 0, BP_MACHINE_BY_PROCESS, run_ns,
                 &diff);
    cr_expect(eq(sz, diff.row_count, 0));
    bp_machine_diff_release(&diff);
}

static bugpack_status try_text(const char *text, const char *counter, bugpack_error *error) {
    bp_machine_diff diff = {.row_count = 77};
    bugpack_status status = compute(empty, text, BP_MACHINE_BY_PROCESS, counter, &diff, error);
    if (status == BUGPACK_OK) {
        bp_machine_diff_release(&diff);
    } else {
        cr_expect(eq(sz, diff.row_count, 77), "an output was touched by %s", text);
    }
    return status;
}

Test(host_diff, refuses_what_is_no_capture_and_says_which) {
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"threads\": 1}",
        "{\"a\": {\"threads\": []}}",
        "{\"threads\": [{\"process\": \"a\"}]}",
        "{\"threads\": [{\"tgid\": 1, \"process\": \"a\"}]}",
        "{\"threads\": [{\"tid\": 1, \"process\": \"a\"}]}",
        "{\"threads\": [{\"tgid\": \"1\", \"tid\": 1}]}",
        "{\"threads\": [{\"tgid\": 1, \"tid\": 1, \"start_ticks\": -1}]}",
        "{\"threads\": [[]]}",
        "{\"threads\": [{\"process\": 1}]}",
        "{\"threads\": [{\"process\": \"a\", \"schedstat\": {\"run_ns\": -1}}]}",
        "{\"threads\": [{\"process\": \"a\", \"schedstat\": {\"run_ns\": 1.5}}]}",
        "{\"threads\": [{\"process\": \"a\", \"schedstat\": {\"run_ns\": 18446744073709551616}}]}",
        "{\"threads\": [{\"process\": \"a\", \"process\": \"b\"}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        cr_expect(eq(int, try_text(bad[i], "schedstat.run_ns", &error), BUGPACK_ERR_CORRUPT), "%s",
                  bad[i]);
        cr_expect(eq(int, strncmp(error.message, "the capture of after: ", 22), 0), "%s",
                  error.message);
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_expect(eq(int,
                 try_text("{\"threads\": [{\"tgid\": 1, \"tid\": 1, \"process\": 1}]}",
                          "schedstat.run_ns", &error),
                 BUGPACK_ERR_CORRUPT));
    cr_expect(eq(str, error.message,
                 "the capture of after: \"process\" of a thread is missing, or not a text"));
    cr_expect(
        eq(int, try_text("{\"threads\": []}", "schedstat.nothing", &error), BUGPACK_ERR_INVALID));
    cr_expect(eq(str, error.message, "there is no counter \"schedstat.nothing\""));
}

Test(host_diff, a_worker_of_the_kernel_is_one_whatever_it_works_on) {
    static const made_thread one[] = {{1, 1, 1, "kworker/u8:0-writeback", "a", NULL, 5, true},
                                      {2, 2, 1, "kworker/1:1H-kblockd", "a", NULL, 10, true},
                                      {3, 3, 1, "kworker/R-ext4", "a", NULL, 1, true},
                                      {4, 4, 1, "kworker/", "a", NULL, 1, true}};
    static const made_thread other[] = {{1, 1, 1, "kworker/u8:0+flush-8:0", "a", NULL, 9, true},
                                        {2, 2, 1, "kworker/1:1H", "a", NULL, 11, true},
                                        {5, 5, 1500, "kworker/R-xfs", "a", NULL, 1, true},
                                        {4, 4, 1, "kworker/", "a", NULL, 1, true}};
    bp_machine_diff diff;
    COMPARE(one, other, BP_MACHINE_BY_PROCESS, run_ns, &diff);
    cr_assert(eq(sz, diff.row_count, 5));
    expect_row(&diff.rows[0], "kworker/u8:0", 1, 5, 9, 4);
    expect_row(&diff.rows[1], "kworker/1:1H", 1, 10, 11, 1);
    expect_rest(&find(&diff, "kworker/R-ext4")->ended, 1, 1, 1);
    expect_rest(&find(&diff, "kworker/R-xfs")->born, 1, 1, 1);
    expect_row(&diff.rows[4], "kworker/", 1, 1, 1, 0);
    bp_machine_diff_release(&diff);
}

Test(host_diff, a_thread_that_was_renamed_is_in_its_later_group) {
    static const made_thread one[] = {{1, 1, 1, "sh", "sh", "/a", 5, true}};
    static const made_thread other[] = {{1, 1, 1, "python3", "python3", "/b", 8, true}};
    bp_machine_diff diff;
    COMPARE(one, other, BP_MACHINE_BY_PROCESS, run_ns, &diff);
    cr_assert(eq(sz, diff.row_count, 1));
    expect_row(&diff.rows[0], "python3", 1, 5, 8, 3);
    bp_machine_diff_release(&diff);
}

Test(host_diff, looks_only_where_the_counter_is) {
    static const char text[] =
        "{\"summary\": {\"threads\": [1]}, \"threads\": [{" THREAD ", \"other\": {\"run_ns\": 5, "
        "\"process\": \"b\", \"tid\": 4}, \"schedstat_measured\": true, \"schedstat\": "
        "{\"deeper\": {\"run_ns\": 6}, \"run_ns\": 7}}], \"later\": {\"x\": [{\"process\": "
        "\"c\"}]}}";
    bp_machine_diff diff;
    cr_assert(
        eq(int, compute(empty, text, BP_MACHINE_BY_PROCESS, run_ns, &diff, NULL), BUGPACK_OK));
    cr_assert(eq(sz, diff.row_count, 1));
    expect_row(&diff.rows[0], "a", 0, 0, 0, 0);
    expect_rest(&diff.rows[0].born, 1, 1, 7);
    bp_machine_diff_release(&diff);
}
