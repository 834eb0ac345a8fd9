/*
 * The files of a capture of the whole machine, whole and broken.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/machine_threads.h"
#include "platform/linux/machine_text.h"
#include "platform/linux/thread_text.h"

#define RULE "-------------------------------------------------------------------\n"

static bool is_measured(const bp_thread_reading *thread, bp_thread_group group) {
    return bp_thread_has(thread, group);
}

/* What a failed parse must leave alone. */
static bp_thread_reading marked(void) {
    bp_thread_reading thread = {.tid = 9, .stat = {.name = "before"}};
    thread.counters[BP_COUNTER_USER_CPU] = 77;
    return thread;
}

static const char good_stat[] =
    "7 (a) b) R 1 7 7 0 -1 64 120 7 3 0 50 25 1 2 -2 -20 9 0 123456 1000 20 18446744073709551615 "
    "1 1 0 0 0 0 0 0 0 0 0 0 17 5 99 2 8 0 0 1 2 3 4 5 6 7 0\n";

Test(host_stat, reads_scheduling_and_times_of_a_hostile_line) {
    bp_thread_reading thread = marked();
    cr_assert(bp_thread_parse_stat(good_stat, strlen(good_stat), 100, &thread));
    cr_expect(eq(str, thread.stat.name, "a) b"));
    cr_expect(eq(chr, thread.stat.state, 'R'));
    cr_expect(eq(i64, thread.stat.priority, -2));
    cr_expect(eq(i64, thread.stat.nice, -20));
    cr_expect(eq(u64, thread.stat.processor, 5));
    cr_expect(eq(u64, thread.stat.rt_priority, 99));
    cr_expect(eq(u64, thread.stat.policy, 2));
    cr_expect(eq(u64, thread.stat.start_ticks, 123456));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_USER_CPU], 500000000));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_SYSTEM_CPU], 250000000));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_BLOCK_IO_DELAY], 80000000));
    cr_expect(is_measured(&thread, BP_GROUP_STAT));
}

Test(host_stat, rejects_every_truncation_and_leaves_the_thread_alone) {
    /* Field 42, which is read, ends at the ' ' behind "8". */
    size_t enough = (size_t)(strstr(good_stat, " 2 8 0") - good_stat) + strlen(" 2 8 ");
    for (size_t length = 0; length < enough; length++) {
        bp_thread_reading thread = marked();
        cr_expect(not(bp_thread_parse_stat(good_stat, length, 100, &thread)), "%zu bytes", length);
        cr_expect(eq(str, thread.stat.name, "before"));
        cr_expect(eq(u64, thread.counters[BP_COUNTER_USER_CPU], 77));
        cr_expect(eq(u32, thread.measured, 0));
    }
    bp_thread_reading thread = marked();
    cr_expect(bp_thread_parse_stat(good_stat, enough, 100, &thread));
}

Test(host_stat, rejects_ticks_that_overflow_nanoseconds) {
    static const char text[] =
        "7 (x) R 1 7 7 0 -1 64 1 7 3 0 1844674407370955161 0 1 2 20 0 9 0 1 1 "
        "20 1 1 1 0 0 0 0 0 0 0 0 0 0 17 5 99 2 8 0\n";
    bp_thread_reading thread = marked();
    cr_expect(not(bp_thread_parse_stat(text, strlen(text), 100, &thread)));
    cr_expect(eq(u32, thread.measured, 0));
    cr_expect(not(bp_thread_parse_stat(good_stat, strlen(good_stat), 0, &thread)));
}

Test(host_schedstat, wants_exactly_three_numbers) {
    static const char *const bad[] = {"",         "1",         "1 2",     "1 2 3",     "1 2 x\n",
                                      "1 -2 3\n", "1 2 3 4\n", "a b c\n", "1\n2\n3\n", "1 2 3x\n"};
    bp_thread_reading thread = marked();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(not(bp_thread_parse_schedstat(bad[i], strlen(bad[i]), &thread)), "%s", bad[i]);
    }
    cr_expect(eq(u32, thread.measured, 0));
    cr_assert(bp_thread_parse_schedstat("18446744073709551615 2 3\n", 25, &thread));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_RUN], UINT64_MAX));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_RUN_DELAY], 2));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_TIMESLICES], 3));
}

Test(host_status, reads_affinity_and_switches_on_their_own) {
    static const char text[] = "Name:\tx\\nvoluntary_ctxt_switches:9\n"
                               "Cpus_allowed_list:\t0-3,8\nvoluntary_ctxt_switches:\t5\n";
    bp_cpu_list affinity;
    bp_thread_reading thread = marked();
    thread.affinity = &affinity;
    cr_expect(not(bp_thread_parse_status(text, strlen(text), &thread)));
    cr_expect(not(is_measured(&thread, BP_GROUP_STATUS)));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_VOLUNTARY_SWITCHES], 0));
    cr_expect(is_measured(&thread, BP_GROUP_AFFINITY));
    cr_expect(not(thread.has_rss));
    static const char whole[] = "TracerPid:\t12\nNSpid:\t9\t3\t2\nVmRSS:\t    1234 kB\n"
                                "SigBlk:\t0000000000004000\nSigCgt:\t0000000180004002\n"
                                "Cpus_allowed_list:\t3-1\nvoluntary_ctxt_switches:\t5\n"
                                "nonvoluntary_ctxt_switches:\t6\n";
    thread = marked();
    thread.affinity = &affinity;
    cr_expect(bp_thread_parse_status(whole, strlen(whole), &thread));
    cr_expect(not(is_measured(&thread, BP_GROUP_AFFINITY)));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_VOLUNTARY_SWITCHES], 5));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_INVOLUNTARY_SWITCHES], 6));
    cr_expect(thread.has_rss);
    cr_expect(eq(u64, thread.rss_kb, 1234));
    cr_expect(eq(u64, thread.own_tid, 2));
    cr_expect(eq(u64, thread.tracer_pid, 12));
    cr_expect(thread.has_signals);
    cr_expect(eq(u64, thread.blocked_signals, 0x4000));
    cr_expect(eq(u64, thread.caught_signals, 0x180004002));
}

#define GOOD_IO                                                                                    \
    "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"                      \
    "cancelled_write_bytes: 7\n"

Test(host_io, is_measured_whole_or_not_at_all) {
    bp_thread_reading thread = marked();
    cr_assert(bp_thread_parse_io(GOOD_IO, strlen(GOOD_IO), &thread));
    for (uint64_t i = 0; i < 7; i++) {
        cr_expect(eq(u64, thread.counters[BP_COUNTER_READ_CHARS + i], i + 1));
    }
    static const char *const bad[] = {
        "", "rchar: 1\n",
        "rchar: x\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
        "cancelled_write_bytes: 7\n",
        "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n"
        "cancelled_write_bytes: 99999999999999999999\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        thread = marked();
        cr_expect(not(bp_thread_parse_io(bad[i], strlen(bad[i]), &thread)));
        cr_expect(eq(u64, thread.counters[BP_COUNTER_READ_CHARS], 0));
        cr_expect(eq(u64, thread.counters[BP_COUNTER_WRITTEN_CHARS], 0));
        cr_expect(eq(u64, thread.counters[BP_COUNTER_USER_CPU], 77), "another group is untouched");
    }
}

#define WAITS(prefix)                                                                              \
    prefix "wait_sum : 12.000345\n" prefix "wait_max : 0.000001\n" prefix                          \
           "wait_count : 4\n" prefix "sum_sleep_runtime : 18446744073709.551615\n" prefix          \
           "sleep_max : 1.100000\n" prefix "iowait_sum : 0.000000\n" prefix "iowait_count : 2\n"
#define SCHED "se.sum_exec_runtime : 217.415327\nse.nr_migrations : 3\nnr_switches : 8\n"

/* The groups of `sched` of which no key was found. */
static void expect_not_counted(const bp_thread_reading *thread, uint32_t groups) {
    for (bp_thread_group group = BP_GROUP_SCHED; group <= BP_GROUP_BLOCKS; group++) {
        cr_expect(eq(int, thread->errnos[group], (groups >> group & 1u) != 0 ? ENODATA : 0));
    }
}

Test(host_sched, turns_dotted_milliseconds_into_exact_nanoseconds) {
    static const char *const texts[] = {"x (7, #threads: 1)\n" RULE SCHED WAITS(""),
                                        "x (7, #threads: 1)\n" RULE SCHED WAITS("se.statistics.")};
    for (size_t i = 0; i < 2; i++) {
        bp_thread_reading thread = marked();
        cr_expect(not(bp_thread_parse_sched(texts[i], strlen(texts[i]), &thread)));
        expect_not_counted(&thread, 1u << BP_GROUP_WAKEUPS | 1u << BP_GROUP_BLOCKS);
        cr_expect(eq(u64, thread.counters[BP_COUNTER_EXEC_RUNTIME], 217415327));
        cr_expect(eq(u64, thread.counters[BP_COUNTER_WAIT_SUM], 12000345));
        cr_expect(eq(u64, thread.counters[BP_COUNTER_WAIT_MAX], 1));
        cr_expect(eq(u64, thread.counters[BP_COUNTER_SLEEP_SUM], UINT64_MAX));
        cr_expect(eq(u64, thread.counters[BP_COUNTER_IOWAIT_COUNT], 2));
        cr_expect(not(is_measured(&thread, BP_GROUP_WAKEUPS)));
        cr_expect(not(is_measured(&thread, BP_GROUP_BLOCKS)));
    }
}

Test(host_sched, measures_nothing_of_a_group_with_a_broken_time) {
    static const char *const times[] = {
        "12", "12.34567", "12.3456789", "-1.000000", "1.00000x", ".000001", "18446744073709.551616",
        ""};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char text[512];
        bp_thread_reading thread = marked();
        (void)snprintf(text, sizeof text,
                       "x (7)\n" RULE "block_max : 1.000000\n"
                       "sum_block_runtime : %s\n" SCHED,
                       times[i]);
        cr_expect(not(bp_thread_parse_sched(text, strlen(text), &thread)));
        expect_not_counted(&thread, 1u << BP_GROUP_WAKEUPS | 1u << BP_GROUP_WAITS);
        cr_expect(not(is_measured(&thread, BP_GROUP_BLOCKS)), "%s", times[i]);
        cr_expect(eq(u64, thread.counters[BP_COUNTER_BLOCK_MAX], 0));
        cr_expect(is_measured(&thread, BP_GROUP_SCHED));
    }
}

Test(host_sched, takes_no_line_out_of_a_name) {
    static const char text[] = "\nnr_switches:9\nx (7, #threads: 1)\n" RULE
                               "se.sum_exec_runtime : 1.000000\nse.nr_migrations : 3\n";
    bp_thread_reading thread = marked();
    (void)bp_thread_parse_sched(text, strlen(text), &thread);
    cr_expect(not(is_measured(&thread, BP_GROUP_SCHED)));
    cr_expect(eq(u64, thread.counters[BP_COUNTER_SWITCHES], 0));
    thread = marked();
    (void)bp_thread_parse_sched(SCHED, strlen(SCHED), &thread);
    expect_not_counted(&thread, BP_GROUPS_OF_SCHED); /* without a header */
}

static const char *list_of(const char *text, char out[64]) {
    bp_cpu_list list;
    bp_buffer printed;
    if (!bp_cpu_list_parse(text, strlen(text), &list)) {
        return "refused";
    }
    bp_buffer_init(&printed, 4096);
    bp_cpu_list_print(&list, &printed);
    (void)snprintf(out, 64, "%s", bp_buffer_text(&printed));
    bp_buffer_release(&printed);
    return out;
}

Test(host_cpu_list, sorts_joins_and_refuses) {
    static const struct {
        const char *text, *expected;
    } rows[] = {{"0", "0"},
                {"0-1\n", "0-1"},
                {"3,1,2", "1-3"},
                {"0-4,2-9,63-64", "0-9,63-64"},
                {"8191", "8191"},
                {"0-8191", "0-8191"},
                {"8192", "refused"},
                {"0-8192", "refused"},
                {"0-18446744073709551615", "refused"},
                {"0-99999999999999999999", "refused"},
                {"7-3", "refused"},
                {"", "refused"},
                {"\n", "refused"},
                {",", "refused"},
                {"1,", "refused"},
                {"1-", "refused"},
                {"-1", "refused"},
                {"1--2", "refused"},
                {"1 2", "refused"},
                {"0-3x", "refused"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[64];
        cr_expect(eq(str, list_of(rows[i].text, out), rows[i].expected), "%s", rows[i].text);
    }
}

Test(host_pressure, reads_each_line_on_its_own) {
    static const char text[] = "some avg10=0.99 avg60=26.51 avg300=100.00 total=2807601975\n"
                               "full avg10=0.9 avg60=0.00 avg300=0.00 total=0\n";
    bp_pressure pressure = {.some = {.is_known = false}};
    cr_assert(bp_machine_parse_pressure(text, strlen(text), &pressure));
    cr_expect(eq(u64, pressure.some.avg10_centi, 99));
    cr_expect(eq(u64, pressure.some.avg60_centi, 2651));
    cr_expect(eq(u64, pressure.some.avg300_centi, 10000));
    cr_expect(eq(u64, pressure.some.total_us, 2807601975));
    cr_expect(not(pressure.full.is_known));
    cr_expect(not(bp_machine_parse_pressure("", 0, &pressure)));
    cr_expect(not(bp_machine_parse_pressure("some avg10=1.00\n", 16, &pressure)));
}

Test(host_figure, knows_numbers_max_and_nonsense) {
    bp_machine_figure figure = {.value = 5};
    cr_expect(bp_machine_parse_figure("123\n", 4, &figure));
    cr_expect(eq(u64, figure.value, 123));
    cr_expect(bp_machine_parse_figure("max\n", 4, &figure));
    cr_expect(figure.is_unlimited);
    static const char *const bad[] = {
        "", "\n", "-1\n", "12 13\n", "1\n2\n", "maximum\n", "99999999999999999999\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(not(bp_machine_parse_figure(bad[i], strlen(bad[i]), &figure)), "%s", bad[i]);
    }
    static const char stat[] = "usage_usec 7\nuser_usec 18446744073709551615\nsystem_usec\n";
    cr_expect(bp_machine_find_figure(stat, strlen(stat), "usage_usec", 1000, &figure));
    cr_expect(eq(u64, figure.value, 7000));
    cr_expect(not(bp_machine_find_figure(stat, strlen(stat), "user_usec", 1000, &figure)));
    cr_expect(not(bp_machine_find_figure(stat, strlen(stat), "system_usec", 1, &figure)));
    cr_expect(not(bp_machine_find_figure(stat, strlen(stat), "usage", 1, &figure)));
    bp_machine_figure quota, period;
    cr_expect(bp_machine_parse_cpu_max("max 100000\n", 11, &quota, &period));
    cr_expect(quota.is_unlimited);
    cr_expect(eq(u64, period.value, 100000000));
    cr_expect(not(bp_machine_parse_cpu_max("5000\n", 5, &quota, &period)));
    cr_expect(not(bp_machine_parse_cpu_max("5000 max\n", 9, &quota, &period)));
}
