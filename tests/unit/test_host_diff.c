/*
 * What changed from one capture of the machine to the next.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#include "inspect/host_diff.h"
#include "model/host_threads.h"

/* One thread of a capture, as a test writes it down. */
typedef struct made_thread {
    const char *process, *name, *cgroup;
    uint64_t run_ns;
    bool is_measured;
} made_thread;

static void print_capture(const made_thread *threads, size_t count, bp_buffer *out) {
    const bp_host_header header = {.summary = &(const bp_host_summary){.ticks_per_sec = 100}};
    bp_buffer element;
    bp_buffer_init(out, (size_t)1 << 20);
    bp_buffer_init(&element, (size_t)1 << 20);
    cr_assert(eq(int, bp_host_print_header(&header, out, NULL), BUGPACK_OK));
    for (size_t i = 0; i < count; i++) {
        bp_host_thread thread = {.tgid = 7, .tid = 7 + i, .cgroup = threads[i].cgroup};
        (void)snprintf(thread.process_name, sizeof thread.process_name, "%s", threads[i].process);
        (void)snprintf(thread.name, sizeof thread.name, "%s", threads[i].name);
        thread.counters[BP_HOST_RUN] = threads[i].run_ns;
        thread.measured = threads[i].is_measured ? 1u << BP_HOST_SCHEDSTAT : 0;
        bp_host_print_thread(&thread, &element);
        (void)bp_buffer_append_text(out, bp_buffer_text(&element) + (i == 0 ? 1 : 0));
        bp_buffer_clear(&element);
    }
    bp_buffer_release(&element);
    (void)bp_buffer_append_text(out, count > 0 ? bp_host_tail : bp_host_tail_empty);
}

static const made_thread before[] = {{"server", "net", "/a", 100, true},
                                     {"server", "disk", "/a", 50, true},
                                     {"gone", "gone", "/b", 40, true},
                                     {"hidden", "hidden", NULL, 0, false},
                                     {"same", "same", "/c", 9, true}};
static const made_thread after[] = {{"same", "same", "/c", 9, true},
                                    {"server", "net", "/a", 101, true},
                                    {"server", "disk", "/a", 500, true},
                                    {"new\n\xff", "net", "/b", 7, true},
                                    {"hidden", "hidden", NULL, 30, true}};

static void compare(bp_host_key key, bp_host_diff *ret_diff) {
    bp_buffer text_before, text_after;
    bugpack_error error = BUGPACK_ERROR_INIT;
    print_capture(before, 5, &text_before);
    print_capture(after, 5, &text_after);
    cr_assert(eq(int,
                 bp_host_diff_compute(text_before.data, text_before.size, text_after.data,
                                      text_after.size, key, "schedstat.run_ns", ret_diff, &error),
                 BUGPACK_OK),
              "%s", error.message);
    bp_buffer_release(&text_before);
    bp_buffer_release(&text_after);
}

static void expect_row(const bp_host_row *row, const char *name, uint64_t sum_before,
                       uint64_t sum_after, int64_t delta) {
    cr_expect(eq(str, (char *)row->name, (char *)name));
    cr_expect(eq(u64, row->change.before, sum_before), "%s", name);
    cr_expect(eq(u64, row->change.after, sum_after), "%s", name);
    cr_expect(eq(i64, row->change.delta, delta), "%s", name);
}

Test(host_diff, sums_processes_and_puts_the_largest_change_first) {
    bp_host_diff diff;
    compare(BP_HOST_BY_PROCESS, &diff);
    cr_assert(eq(sz, diff.row_count, 5));
    expect_row(&diff.rows[0], "server", 150, 601, 451);
    cr_expect(eq(u64, diff.rows[0].threads_before, 2));
    cr_expect(diff.rows[0].change.has_percent);
    cr_expect(epsilon_eq(dbl, diff.rows[0].change.percent, 300.67, 1e-9));
    expect_row(&diff.rows[1], "gone", 40, 0, -40);
    cr_expect(eq(u64, diff.rows[1].threads_after, 0));
    cr_expect(epsilon_eq(dbl, diff.rows[1].change.percent, -100.0, 1e-9));
    expect_row(&diff.rows[2], "new\n\xee\xbf\xbf", 0, 7, 7);
    cr_expect(diff.rows[2].change.is_known_before, "no thread has no counter");
    cr_expect(not(diff.rows[2].change.has_percent));
    expect_row(&diff.rows[3], "same", 9, 9, 0);
    expect_row(&diff.rows[4], "hidden", 0, 30, 0);
    cr_expect(not(diff.rows[4].change.is_known_before));
    cr_expect(diff.rows[4].change.is_known_after);
    cr_expect(not(diff.rows[4].change.has_delta));
    cr_expect(not(diff.rows[4].change.has_percent));
    bp_host_diff_release(&diff);
}

Test(host_diff, groups_by_cgroup_and_by_thread_name) {
    bp_host_diff diff;
    compare(BP_HOST_BY_CGROUP, &diff);
    cr_assert(eq(sz, diff.row_count, 4));
    expect_row(&diff.rows[0], "/a", 150, 601, 451);
    expect_row(&diff.rows[1], "/b", 40, 7, -33);
    expect_row(&diff.rows[3], "", 0, 30, 0);
    bp_host_diff_release(&diff);
    compare(BP_HOST_BY_THREAD, &diff);
    cr_assert(eq(sz, diff.row_count, 5));
    expect_row(&diff.rows[0], "disk", 50, 500, 450);
    expect_row(&diff.rows[2], "net", 100, 108, 8);
    bp_host_diff_release(&diff);
}

Test(host_diff, stays_inside_its_integers) {
    const made_thread large[] = {{"a", "a", NULL, UINT64_MAX, true},
                                 {"a", "a", NULL, UINT64_MAX, true}};
    bp_buffer full, empty;
    bp_host_diff diff;
    print_capture(large, 2, &full);
    print_capture(NULL, 0, &empty);
    cr_assert(eq(int,
                 bp_host_diff_compute(full.data, full.size, empty.data, empty.size,
                                      BP_HOST_BY_PROCESS, "schedstat.run_ns", &diff, NULL),
                 BUGPACK_OK));
    expect_row(&diff.rows[0], "a", UINT64_MAX, 0, INT64_MIN);
    bp_host_diff_release(&diff);
    cr_assert(eq(int,
                 bp_host_diff_compute(empty.data, empty.size, full.data, full.size,
                                      BP_HOST_BY_PROCESS, "schedstat.run_ns", &diff, NULL),
                 BUGPACK_OK));
    expect_row(&diff.rows[0], "a", 0, UINT64_MAX, INT64_MAX);
    bp_host_diff_release(&diff);
    bp_buffer_release(&full);
    bp_buffer_release(&empty);
}

static bugpack_status try_text(const char *text, const char *counter, bugpack_error *error) {
    static const char empty[] = "{\"threads\": []}";
    bp_host_diff diff = {.row_count = 77};
    bugpack_status status = bp_host_diff_compute(empty, strlen(empty), text, strlen(text),
                                                 BP_HOST_BY_PROCESS, counter, &diff, error);
    if (status == BUGPACK_OK) {
        bp_host_diff_release(&diff);
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
    cr_expect(
        eq(int, try_text("{\"threads\": []}", "schedstat.nothing", &error), BUGPACK_ERR_INVALID));
    cr_expect(eq(str, error.message, "there is no counter \"schedstat.nothing\""));
}

Test(host_diff, a_worker_of_the_kernel_is_one_whatever_it_works_on) {
    static const made_thread one[] = {{"kworker/u8:0-writeback", "a", NULL, 5, true},
                                      {"kworker/1:1H-kblockd", "a", NULL, 10, true},
                                      {"kworker/R-ext4", "a", NULL, 1, true},
                                      {"kworker/", "a", NULL, 1, true}};
    static const made_thread other[] = {{"kworker/u8:0+flush-8:0", "a", NULL, 9, true},
                                        {"kworker/1:1H", "a", NULL, 11, true},
                                        {"kworker/R-xfs", "a", NULL, 1, true},
                                        {"kworker/", "a", NULL, 1, true}};
    bp_buffer text_one, text_other;
    bp_host_diff diff;
    print_capture(one, 4, &text_one);
    print_capture(other, 4, &text_other);
    cr_assert(
        eq(int,
           bp_host_diff_compute(text_one.data, text_one.size, text_other.data, text_other.size,
                                BP_HOST_BY_PROCESS, "schedstat.run_ns", &diff, NULL),
           BUGPACK_OK));
    cr_assert(eq(sz, diff.row_count, 5));
    expect_row(&diff.rows[0], "kworker/u8:0", 5, 9, 4);
    expect_row(&diff.rows[1], "kworker/1:1H", 10, 11, 1);
    expect_row(&diff.rows[2], "kworker/R-ext4", 1, 0, -1);
    expect_row(&diff.rows[3], "kworker/R-xfs", 0, 1, 1);
    expect_row(&diff.rows[4], "kworker/", 1, 1, 0);
    bp_host_diff_release(&diff);
    bp_buffer_release(&text_one);
    bp_buffer_release(&text_other);
}

Test(host_diff, looks_only_where_the_counter_is) {
    static const char text[] =
        "{\"summary\": {\"threads\": [1]}, \"threads\": [{\"process\": \"a\", \"other\": "
        "{\"run_ns\""
        ": 5, \"process\": \"b\"}, \"schedstat_measured\": true, \"schedstat\": {\"deeper\": "
        "{\"run_ns\": 6}, \"run_ns\": 7}}], \"later\": {\"x\": [{\"process\": \"c\"}]}}";
    static const char empty[] = "{\"threads\": []}";
    bp_host_diff diff;
    cr_assert(eq(int,
                 bp_host_diff_compute(empty, strlen(empty), text, strlen(text), BP_HOST_BY_PROCESS,
                                      "schedstat.run_ns", &diff, NULL),
                 BUGPACK_OK));
    cr_assert(eq(sz, diff.row_count, 1));
    expect_row(&diff.rows[0], "a", 0, 7, 7);
    bp_host_diff_release(&diff);
}
