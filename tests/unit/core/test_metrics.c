/*
 * The arithmetic of a window.
 */
#include <math.h>
#include <sys/mman.h>

#include "model/metrics.h"
#include "unit/unit.h"

#define TICK_NS 10000000u

static bp_task_snapshot before, after;
static bp_metrics metrics;

static void tear_down(void) {
    bp_metrics_release(&metrics);
}

TestSuite(metrics, .fini = tear_down);

/* Two snapshots, `window_ns` apart. */
static void snapshots_of(uint64_t window_ns, bp_thread_counters *first, size_t first_count,
                         bp_thread_counters *second, size_t second_count) {
    before = (bp_task_snapshot){
        .taken_ns = 5, .cpu_unit_ns = TICK_NS, .threads = first, .thread_count = first_count};
    after = (bp_task_snapshot){.taken_ns = 5 + window_ns,
                               .cpu_unit_ns = TICK_NS,
                               .threads = second,
                               .thread_count = second_count};
}

/* Two seconds up to 102.00 s since boot, births in ticks of 10 ms. */
static void snapshots_since_boot(uint64_t before_ns, bp_thread_counters *second,
                                 size_t second_count) {
    snapshots_of(2 * BP_NS_PER_SEC, NULL, 0, second, second_count);
    before.boottime_ns = before_ns;
    after.boottime_ns = 102 * BP_NS_PER_SEC;
    before.birth_unit_ns = after.birth_unit_ns = TICK_NS;
}

static void compute(void) {
    bp_metrics_release(&metrics);
    cr_assert(eq(int, bp_metrics_compute(&before, &after, &metrics, &failure), BUGPACK_OK));
}

/* What the manifest says of a window, in milliseconds, that was triggered at 10 s. */
static const char *described(uint64_t began_ms, uint64_t ended_ms, size_t gone) {
    static char text[300];
    const bp_metrics window = {.began_ns = began_ms * BP_NS_PER_MS,
                               .ended_ns = ended_ms * BP_NS_PER_MS,
                               .vanished_count = gone};
    bp_metrics_describe(&window, 10 * BP_NS_PER_SEC, text, sizeof text);
    return text;
}

Test(metrics, the_manifest_says_how_a_window_lies_to_its_trigger) {
    cr_expect(eq(str, described(8000, 10000, 0), "the window ends at the trigger"));
    cr_expect(eq(str, described(8000, 9950, 0), "the window ends at the trigger"));
    cr_expect(eq(str, described(8000, 10050, 0), "the window ends at the trigger"));
    cr_expect(eq(str, described(9960, 10040, 0), "the window ends at the trigger"));
    cr_expect(eq(str, described(10000, 12000, 0), "the window begins at the trigger"));
    cr_expect(eq(str, described(9990, 12000, 0), "the window begins at the trigger"));
    cr_expect(eq(str, described(13200, 15200, 0), "the window begins 3200 ms after the trigger"));
    cr_expect(eq(str, described(9900, 10150, 0), "the window ends 150 ms after the trigger"));
    cr_expect(eq(str, described(7000, 9000, 3),
                 "the window ends 1000 ms before the trigger; threads that ended inside the "
                 "window: at least 3"));
}

Test(metrics, one_busy_cpu_is_a_hundred_percent) {
    cr_expect(eq(dbl, bp_metrics_cpu_percent(0, 2000, 2000), 100.0));
    cr_expect(eq(dbl, bp_metrics_cpu_percent(500, 1000, 2000), 25.0));
    cr_expect(eq(dbl, bp_metrics_cpu_percent(0, 8000, 2000), 400.0));
}

Test(metrics, a_counter_that_runs_backwards_counts_as_nothing) {
    cr_expect(eq(dbl, bp_metrics_cpu_percent(1000, 999, 2000), 0.0));
    cr_expect(eq(dbl, bp_metrics_cpu_percent(UINT64_MAX, 0, 1), 0.0));
}

Test(metrics, a_window_of_nothing_is_finite) {
    cr_expect(eq(dbl, bp_metrics_cpu_percent(0, 0, 0), 0.0));
    cr_expect(eq(dbl, bp_metrics_cpu_percent(0, 3, 0), 300.0));
    cr_expect(isfinite(bp_metrics_cpu_percent(0, UINT64_MAX, 0)));
}

Test(metrics, threads_of_the_second_snapshot_are_reported_in_ascending_order) {
    bp_thread_counters first[] = {{.tid = 30, .birth = 3, .cpu = 100},
                                  {.tid = 10, .birth = 1, .cpu = 10}};
    bp_thread_counters second[] = {{.tid = 30, .birth = 3, .cpu = 120, .name = "c"},
                                   {.tid = 20, .birth = 9, .cpu = 50, .name = "b"},
                                   {.tid = 10, .birth = 1, .cpu = 60, .name = "a"}};
    snapshots_of(BP_NS_PER_SEC, first, 2, second, 3);
    compute();
    cr_assert(eq(sz, metrics.thread_count, 3));
    cr_expect(eq(u64, metrics.threads[0].tid, 10));
    cr_expect(eq(str, metrics.threads[0].name, "a"));
    cr_expect(eq(dbl, metrics.threads[0].cpu_percent, 50.0));
    cr_expect(eq(u64, metrics.threads[1].tid, 20));
    cr_expect(not(metrics.threads[0].is_born));
    cr_expect(metrics.threads[1].is_born);
    cr_expect(eq(u64, metrics.threads[0].cpu_ns, 500 * BP_NS_PER_MS));
    cr_expect(eq(u64, metrics.threads[2].tid, 30));
    cr_expect(eq(dbl, metrics.threads[2].cpu_percent, 20.0));
    cr_expect(eq(sz, metrics.vanished_count, 0));
}

/* A tick passed between the two readings. */
Test(metrics, a_process_used_no_less_than_its_busiest_thread) {
    bp_thread_counters first[] = {{.tid = 1, .cpu = 4}};
    bp_thread_counters second[] = {{.tid = 1, .cpu = 6}};
    snapshots_of(BP_NS_PER_SEC, first, 1, second, 1);
    before.process_cpu = after.process_cpu = 5;
    compute();
    cr_expect(eq(dbl, metrics.threads[0].cpu_percent, 2.0));
    cr_expect(eq(dbl, metrics.cpu_percent, 2.0));
}

Test(metrics, threads_that_ended_are_absent_and_counted) {
    bp_thread_counters first[] = {{.tid = 1}, {.tid = 2}, {.tid = 3}, {.tid = 4}};
    bp_thread_counters second[] = {{.tid = 3}};
    snapshots_of(1, first, 4, second, 1);
    compute();
    cr_assert(eq(sz, metrics.thread_count, 1));
    cr_expect(eq(u64, metrics.threads[0].tid, 3));
    cr_expect(eq(sz, metrics.vanished_count, 3));
}

/* 40 ticks of the process, of which the threads that are there have 6 and 4. */
Test(metrics, the_time_of_ended_threads_is_what_the_others_leave) {
    bp_thread_counters first[] = {{.tid = 1, .cpu = 4}, {.tid = 2, .cpu = 7}};
    bp_thread_counters second[] = {{.tid = 1, .cpu = 10}, {.tid = 3, .birth = 9, .cpu = 4}};
    snapshots_of(BP_NS_PER_SEC, first, 2, second, 2);
    before.process_cpu = 11;
    after.process_cpu = 51;
    compute();
    cr_expect(metrics.has_ended_threads);
    cr_expect(eq(u64, metrics.ended_threads_ns, 30 * (uint64_t)TICK_NS));
    after.process_cpu = 11 + 10 + 3; /* a tick for each that ran, and one for the process */
    compute();
    cr_expect(zero(u64, metrics.ended_threads_ns), "it may be rounding");
    after.process_cpu = 11 + 10 + 4;
    compute();
    cr_expect(eq(u64, metrics.ended_threads_ns, 4 * (uint64_t)TICK_NS));
}

Test(metrics, without_the_time_of_each_thread_that_of_ended_ones_is_not_known) {
    bp_thread_counters second[] = {{.tid = 1, .birth = 1, .cpu = 10}};
    snapshots_of(BP_NS_PER_SEC, NULL, 0, second, 1);
    before.boottime_ns = after.boottime_ns = 100 * BP_NS_PER_SEC; /* born before, and not read */
    before.birth_unit_ns = after.birth_unit_ns = TICK_NS;
    after.process_cpu = 10;
    compute();
    cr_assert(not(metrics.threads[0].has_cpu));
    cr_expect(not(metrics.has_ended_threads));
}

Test(metrics, the_threads_of_bugpack_are_marked_and_not_those_of_a_host_that_is_called_so) {
    bp_thread_metrics threads[] = {{.tid = 1, .name = "bugpack-minimal"},
                                   {.tid = 2, .name = "bugpack-worker"}};
    const bp_metrics two = {.threads = threads, .thread_count = 2};
    BUFFER(out, 4096);
    cr_assert(zero(int, bp_metrics_print(&two, "linux", &out, NULL)));
    const char *own = strstr(bp_buffer_text(&out), "\"own\": true");
    cr_assert(ne(ptr, own, NULL));
    cr_expect(gt(ptr, (void *)own, (void *)strstr(bp_buffer_text(&out), "bugpack-worker")));
}

Test(metrics, threads_that_ended_while_they_were_read_are_counted_once) {
    bp_thread_counters first[] = {{.tid = 1}, {.tid = 2}};
    bp_thread_counters second[] = {{.tid = 1}};
    snapshots_of(1, first, 2, second, 1);
    before.vanished_count = 5;
    after.vanished_count = 1;
    compute();
    cr_expect(eq(sz, metrics.vanished_count, 6));
    after.vanished_count = 3;
    compute();
    cr_expect(eq(sz, metrics.vanished_count, 8), "some were born inside the window");
}

Test(metrics, a_reused_thread_id_is_another_thread) {
    bp_thread_counters first[] = {{.tid = 7, .birth = 100, .cpu = 5}};
    bp_thread_counters second[] = {{.tid = 7, .birth = 200, .cpu = 95}};
    snapshots_of(BP_NS_PER_SEC, first, 1, second, 1);
    compute();
    cr_expect(metrics.threads[0].is_born);
    cr_expect(eq(u64, metrics.threads[0].cpu_ns, 950 * BP_NS_PER_MS), "all of the new one");
    cr_expect(eq(sz, metrics.vanished_count, 1));
}

static bool prints(const char *text) {
    BUFFER(out, 1 << 16);
    cr_assert(eq(int, bp_metrics_print(&metrics, "linux", &out, NULL), BUGPACK_OK));
    bool is_there = strstr(bp_buffer_text(&out), text) != NULL;
    return is_there;
}

Test(metrics, a_thread_born_in_the_window_used_what_it_used_since_then) {
    bp_thread_counters second[] = {{.tid = 4, .birth = 10050, .cpu = 140, .name = "late"}};
    snapshots_since_boot(100 * BP_NS_PER_SEC, second, 1);
    compute();
    cr_expect(metrics.threads[0].is_born && metrics.threads[0].has_age);
    cr_expect(eq(u64, metrics.threads[0].age_ns, 1500 * BP_NS_PER_MS));
    cr_expect(eq(dbl, metrics.threads[0].cpu_percent, 70.0));
    cr_expect(prints("\"cpu_percent\": 0,\n      \"cpu_ms\": 1400,\n"
                     "      \"born_in_window\": true,\n      \"age_ms\": 1500\n"));
}

/* A descendant that could not be read at first. Born in the tick of the first snapshot, it was born
 * after it: else it would be there. */
Test(metrics, a_thread_that_the_first_snapshot_missed_is_not_born_in_the_window) {
    bp_thread_counters second[] = {{.tid = 4, .birth = 9998, .cpu = 140},
                                   {.tid = 5, .birth = 10000, .cpu = 1}};
    snapshots_since_boot(100 * BP_NS_PER_SEC + TICK_NS - 1, second, 2);
    compute();
    cr_expect(not(metrics.threads[0].is_born || metrics.threads[0].has_cpu));
    cr_expect(eq(dbl, metrics.threads[0].cpu_percent, 0.0));
    cr_expect(metrics.threads[1].is_born && metrics.threads[1].has_cpu);
    cr_expect(prints("\"cpu_percent\": 0\n"));
}

Test(metrics, a_thread_is_born_in_the_window_from_one_tick_before_it_on) {
    bp_thread_counters second[] = {{.tid = 4, .birth = 9998, .cpu = 1},
                                   {.tid = 5, .birth = 9999, .cpu = 1}};
    snapshots_since_boot(100 * BP_NS_PER_SEC, second, 2);
    compute();
    cr_expect(not(metrics.threads[0].is_born));
    cr_expect(metrics.threads[1].is_born);
}

Test(metrics, without_a_birth_the_id_alone_counts) {
    bp_thread_counters first[] = {{.tid = 7, .birth = 100, .cpu = 5}};
    bp_thread_counters second[] = {{.tid = 7, .birth = 0, .cpu = 15}};
    snapshots_of(BP_NS_PER_SEC, first, 1, second, 1);
    compute();
    cr_expect(eq(dbl, metrics.threads[0].cpu_percent, 10.0));
}

Test(metrics, times_and_switches_are_those_of_the_window_where_both_ends_have_them) {
    bp_thread_counters first[] = {{.tid = 1,
                                   .cpu = 50,
                                   .has_system_cpu = true,
                                   .system_cpu = 20,
                                   .has_switches = true,
                                   .voluntary_switches = 7,
                                   .involuntary_switches = 3,
                                   .is_awake = true,
                                   .page_faults = 40,
                                   .has_run_delay = true,
                                   .run_delay_ns = 5,
                                   .has_io = true,
                                   .read_chars = 100,
                                   .written_chars = 200,
                                   .write_calls = 1},
                                  {.tid = 2, .has_system_cpu = true}};
    bp_thread_counters second[] = {{.tid = 1,
                                    .cpu = 90,
                                    .has_system_cpu = true,
                                    .system_cpu = 25,
                                    .has_switches = true,
                                    .voluntary_switches = 107,
                                    .involuntary_switches = 4,
                                    .is_awake = true,
                                    .page_faults = 47,
                                    .has_run_delay = true,
                                    .run_delay_ns = 905,
                                    .has_io = true,
                                    .read_chars = 100,
                                    .written_chars = 5200,
                                    .write_calls = 11},
                                   {.tid = 2, .has_switches = true, .voluntary_switches = 9},
                                   {.tid = 3, .cpu = 1, .has_system_cpu = true, .page_faults = 3}};
    snapshots_of(BP_NS_PER_SEC, first, 2, second, 3);
    compute();
    const bp_thread_metrics *threads = metrics.threads;
    cr_assert(threads[0].has_times && threads[0].has_switches);
    cr_expect(eq(u64, threads[0].user_ns, 350000000));
    cr_expect(eq(u64, threads[0].system_ns, 50000000));
    cr_expect(eq(u64, threads[0].voluntary_switches, 100));
    cr_expect(eq(u64, threads[0].involuntary_switches, 1));
    cr_expect(threads[0].has_run_delay && threads[0].run_delay_ns == 900);
    cr_expect(not(threads[1].has_run_delay || threads[2].has_run_delay));
    cr_expect(threads[0].has_faults && threads[0].page_faults == 7);
    cr_expect(threads[2].has_faults && threads[2].page_faults == 3, "asleep at an end");
    cr_expect(threads[0].has_io && threads[0].read_chars == 0);
    cr_expect(threads[0].written_chars == 5000 && threads[0].write_calls == 10);
    cr_expect(not(threads[1].has_io || threads[2].has_io || threads[1].has_faults));
    cr_expect(not(threads[1].has_times || threads[1].has_switches));
    cr_expect(threads[2].has_times, "born in the window");
    cr_expect(eq(u64, threads[2].user_ns, 10000000));
    cr_expect(not(threads[2].has_switches));
}

Test(metrics, process_values_come_from_the_second_snapshot) {
    snapshots_of(2 * BP_NS_PER_SEC + 999999, NULL, 0, NULL, 0);
    before.process_cpu = 100;
    after.process_cpu = 125;
    after.has_memory = after.has_uptime = true;
    after.rss_bytes = 48211u * 1024 + 1023;
    after.vm_size_bytes = 912345u * 1024;
    after.uptime_ns = 61200000000;
    compute();
    cr_expect(eq(u64, metrics.sample_window_ms, 2000));
    cr_expect(epsilon_eq(dbl, metrics.cpu_percent, 12.5, 0.01));
    cr_expect(metrics.has_memory && metrics.has_uptime);
    cr_expect(eq(u64, metrics.rss_kb, 48211));
    cr_expect(eq(u64, metrics.vm_size_kb, 912345));
    cr_expect(eq(dbl, metrics.uptime_secs, 61.2));
    cr_expect(eq(ptr, metrics.threads, NULL));
}

Test(metrics, absurd_counters_and_clocks_stay_finite) {
    bp_thread_counters first[] = {{.tid = 1, .cpu = 0}, {.tid = UINT64_MAX, .cpu = UINT64_MAX}};
    bp_thread_counters second[] = {{.tid = 1, .cpu = UINT64_MAX}, {.tid = UINT64_MAX, .cpu = 0}};
    snapshots_of(UINT64_MAX, first, 2, second, 2); /* the clock went back */
    before.cpu_unit_ns = after.cpu_unit_ns = UINT64_MAX;
    after.process_cpu = UINT64_MAX;
    before.vanished_count = SIZE_MAX;
    after.vanished_count = SIZE_MAX;
    compute();
    cr_expect(eq(u64, metrics.sample_window_ms, 0));
    cr_expect(isfinite(metrics.cpu_percent));
    cr_expect(isfinite(metrics.threads[0].cpu_percent));
    cr_expect(eq(dbl, metrics.threads[1].cpu_percent, 0.0));
    cr_expect(eq(sz, metrics.vanished_count, SIZE_MAX));
}

Test(metrics, keeps_the_precision_of_counters_near_their_end) {
    snapshots_of(BP_NS_PER_SEC, NULL, 0, NULL, 0);
    before.process_cpu = UINT64_MAX - 50;
    after.process_cpu = UINT64_MAX;
    compute();
    cr_expect(eq(dbl, metrics.cpu_percent, 50.0));
}

Test(metrics, rejects_snapshots_of_different_units_and_leaves_output_alone) {
    snapshots_of(1, NULL, 0, NULL, 0);
    after.cpu_unit_ns = 1;
    bp_metrics untouched, output;
    memset(&untouched, 0x5a, sizeof untouched);
    output = untouched;
    cr_expect(eq(int, bp_metrics_compute(&before, &after, &output, NULL), BUGPACK_ERR_INVALID));
    cr_expect(memcmp(&output, &untouched, sizeof output) == 0);
}

/* On a page that cannot be written to, so that the smallest write would end the test. */
Test(metrics, snapshots_that_are_sorted_are_only_read) {
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    bp_thread_counters *threads =
        mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(threads != MAP_FAILED);
    threads[0] = (bp_thread_counters){.tid = 30, .cpu = 5};
    threads[1] = (bp_thread_counters){.tid = 7, .birth = 2, .cpu = 6};
    threads[2] = (bp_thread_counters){.tid = 7, .birth = 1, .cpu = 7};
    snapshots_of(BP_NS_PER_SEC, NULL, 0, threads, 3);
    bp_metrics_sort_threads(&after);
    cr_expect(eq(u64, threads[0].birth, 1));
    cr_expect(eq(u64, threads[1].birth, 2));
    cr_expect(eq(u64, threads[2].tid, 30));
    cr_assert(mprotect(threads, page_bytes, PROT_READ) == 0);
    compute();
    cr_expect(eq(sz, metrics.thread_count, 3));
    bp_metrics_release(&metrics);
    cr_assert(munmap(threads, page_bytes) == 0);
}
