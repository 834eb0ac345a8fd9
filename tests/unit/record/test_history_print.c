/*
 * metrics-history.jsonl: exact lines, from a ring and from what a damaged file gave.
 */
#include <fcntl.h>
#include <locale.h>
#include <math.h>

#include "recorder/history.h"
#include "support/made_snapshot.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

#define SEC 1000000000ull

static temp_dir dir;
static bp_temp_file records, out;
static char text[64 * 1024];

static void set_up(void) {
    cr_assert(temp_dir_make(&dir));
    cr_assert(eq(int, bp_temp_file_open(&records, dir.fd, 1 << 20, NULL), BUGPACK_OK));
    cr_assert(eq(int, bp_temp_file_open(&out, dir.fd, 1 << 20, NULL), BUGPACK_OK));
}

static void tear_down(void) {
    bp_temp_file_release(&records);
    bp_temp_file_release(&out);
    temp_dir_remove(&dir);
}

TestSuite(history_print, .init = set_up, .fini = tear_down);

/* Prints what is in `records`; the lines are in `text`. */
static uint64_t print(uint64_t wall_offset_ns) {
    uint64_t count = 0;
    cr_assert(eq(int, bp_temp_file_flush(&records, NULL), BUGPACK_OK));
    cr_assert(eq(int, bp_history_print(&records, wall_offset_ns, bp_temp_file_sink, &out, NULL),
                 BUGPACK_OK));
    cr_assert(eq(int, bp_temp_file_flush(&out, NULL), BUGPACK_OK));
    int64_t length = bp_temp_file_read(&out, 0, text, sizeof text - 1);
    cr_assert(length >= 0 && (uint64_t)length == out.size);
    text[length] = '\0';
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        count++;
    }
    return count;
}

static bp_ring *ring; /* of the history */

static uint64_t print_ring(uint64_t wall_offset_ns) {
    bp_ring_view view;
    cr_assert(eq(int, bp_ring_copy(ring, UINT64_MAX, bp_temp_file_sink, &records, &view, NULL),
                 BUGPACK_OK));
    return print(wall_offset_ns);
}

static bp_history *history_of(size_t sample_count) {
    bp_history *history = NULL;
    cr_assert(eq(int, bp_ring_new(bp_history_ring_bytes(sample_count), &ring, NULL), BUGPACK_OK));
    cr_assert(eq(int, bp_history_new(ring, 2000, &history, NULL), BUGPACK_OK));
    return history;
}

static void add(bp_history *history, bp_task_snapshot snapshot) {
    cr_assert(eq(int, bp_history_add(history, &snapshot, NULL), BUGPACK_OK));
}

static void add_rss(bp_history *history, unsigned at_secs, uint64_t rss_kb) {
    bp_task_snapshot snapshot = made_snapshot(at_secs * SEC, 0, NULL, 0);
    snapshot.rss_bytes = rss_kb * 1024;
    add(history, snapshot);
}

Test(history_print, memory_that_bugpack_took_is_told_apart) {
    bp_history *history = history_of(20);
    bp_history_note_rings(history, 100 << 10);
    add_rss(history, 1, 1000);
    add_rss(history, 2, 1050); /* the host's */
    bp_history_note_report(history, true);
    add_rss(history, 3, 1500);
    bp_history_note_report(history, false);
    add_rss(history, 4, 1700); /* the rest of the report */
    add_rss(history, 5, 1900);
    bp_history_note_report(history, true);
    bp_history_note_report(history, false);
    add_rss(history, 6, 1200); /* given back, more than was taken */
    bp_history_note_rings(history, 9999 << 10);
    add_rss(history, 7, 1200);
    (void)print_ring(0);
    static const char *const expected[] = {"100", "550", "750", "750", "100", "1200"};
    const char *at = text;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        char wanted[40];
        (void)snprintf(wanted, sizeof wanted, "\"bugpack_kb\":%s,", expected[i]);
        at = strstr(at, "\"bugpack_kb\"");
        cr_assert(ne(ptr, at, NULL));
        cr_expect(strncmp(at, wanted, strlen(wanted)) == 0, "%zu: %.20s", i, at);
        at++;
    }
    bp_history_free(history);
}

/* 2026-11-21T00:36:51Z is one second on the monotonic clock. */
#define WALL_OFFSET_NS (1795221411 * SEC - SEC)

Test(history_print, an_interval_is_a_line_with_exact_numbers) {
    (void)setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed, numbers have a comma */
    bp_history *history = history_of(10);
    bp_thread_counters threads[] = {{.tid = 4711, .name = "net\xff)\n\"rx"}, {.tid = 4710}};
    add(history, made_snapshot(SEC, 0, threads, 2));
    threads[0].cpu = 31500000;
    threads[1].cpu = 4000000000;
    add(history, made_snapshot(2 * SEC + 999999, 5000000000, threads, 2));
    bp_task_snapshot kernel_thread = made_snapshot(5 * SEC, 5000000000, threads, 1);
    kernel_thread.has_memory = false;
    add(history, kernel_thread);
    cr_expect(eq(u64, print_ring(WALL_OFFSET_NS), 2));
    cr_expect(
        eq(str, text,
           "{\"time\":\"2026-11-21T00:36:52.000999Z\",\"monotonic_ns\":2000999999,"
           "\"interval_ms\":1000,\"cpu_percent\":499.5,\"rss_kb\":48211,\"vm_size_kb\":912345,"
           "\"thread_count\":2,\"threads\":[{\"tid\":4710,\"name\":\"\",\"cpu_percent\":399.6},"
           "{\"tid\":4711,\"name\":\"net\xee\xbf\xbf)\\n\\\"rx\",\"cpu_percent\":3.15}]}\n"
           "{\"time\":\"2026-11-21T00:36:55.000000Z\",\"monotonic_ns\":5000000000,"
           "\"interval_ms\":2999,\"cpu_percent\":0,\"thread_count\":1,\"threads\":[]}\n"));
    bp_history_free(history);
}

static void add_totals(bp_history *history, uint64_t at_ns, uint64_t cpu_ns) {
    const bp_task_totals totals = {.taken_ns = at_ns,
                                   .cpu_ns = cpu_ns,
                                   .has_memory = true,
                                   .rss_bytes = 3 << 20,
                                   .vm_size_bytes = 9 << 20,
                                   .thread_count = 7};
    bp_history_add_totals(history, &totals);
}

Test(history_print, totals_between_two_snapshots_are_a_line_without_threads) {
    bp_history *history = history_of(10);
    add_totals(history, SEC, SEC);
    bp_history_note_files(history, 12);
    add_totals(history, 3 * SEC, 2 * SEC);
    add_totals(history, 3 * SEC, 9 * SEC); /* not newer */
    add_totals(history, 4 * SEC, 9 * SEC);
    cr_expect(eq(u64, print_ring(WALL_OFFSET_NS), 2));
    cr_expect(eq(str, text,
                 "{\"time\":\"2026-11-21T00:36:53.000000Z\",\"monotonic_ns\":3000000000,"
                 "\"interval_ms\":2000,\"cpu_percent\":50,\"rss_kb\":3072,\"vm_size_kb\":9216,"
                 "\"thread_count\":7,\"file_count\":12}\n"
                 "{\"time\":\"2026-11-21T00:36:54.000000Z\",\"monotonic_ns\":4000000000,"
                 "\"interval_ms\":1000,\"cpu_percent\":0,\"rss_kb\":3072,\"vm_size_kb\":9216,"
                 "\"thread_count\":7}\n"));
    bp_history_free(history);
}

Test(history_print, the_busiest_threads_come_first_and_idle_ones_not_at_all) {
    enum { COUNT = 20 };
    bp_metrics metrics = {.thread_count = COUNT};
    bp_thread_metrics threads[COUNT] = {0};
    /* Each twice, and the first two below what two decimals show. */
    for (unsigned i = 0; i < COUNT; i++) {
        threads[i].tid = 100 + i;
        threads[i].cpu_percent = i < 2 ? 0.0049 : (double)(i * 7 % COUNT / 2 + 1);
    }
    metrics.threads = threads;
    bp_history_record record;
    bp_history_record_make(&metrics, 0, SEC, &record);
    cr_assert(eq(u32, record.busy_count, BP_HISTORY_BUSIEST));
    for (unsigned i = 1; i < BP_HISTORY_BUSIEST; i++) {
        const bp_history_thread *a = &record.threads[i - 1];
        const bp_history_thread *b = &record.threads[i];
        cr_expect(a->cpu_percent > b->cpu_percent ||
                  (a->cpu_percent == b->cpu_percent && a->tid < b->tid));
    }
    /* Nobody who was left out is busier than the last. */
    unsigned at_least = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        at_least += threads[i].cpu_percent > record.threads[BP_HISTORY_BUSIEST - 1].cpu_percent;
    }
    cr_expect(lt(u32, at_least, BP_HISTORY_BUSIEST));
    cr_expect(eq(dbl, record.threads[0].cpu_percent, 10.0));
    metrics.thread_count = 3;
    threads[2].cpu_percent = 0.005;
    bp_history_record_make(&metrics, 0, SEC, &record);
    cr_assert(eq(u32, record.busy_count, 1));
    cr_expect(eq(u64, record.threads[0].tid, 102));
    memcpy(threads[2].name, "bugpack-worker", sizeof "bugpack-worker");
    bp_history_record_make(&metrics, 0, SEC, &record);
    cr_expect(zero(u32, record.busy_count));
}

Test(history_print, the_ring_keeps_as_many_as_it_was_made_for_and_drops_the_oldest) {
    enum { KEPT = 20, ADDED = 200 };
    bp_history *history = history_of(KEPT);
    bp_thread_counters threads[BP_HISTORY_BUSIEST] = {0};
    for (unsigned i = 0; i < ADDED; i++) {
        for (unsigned t = 0; t < BP_HISTORY_BUSIEST; t++) {
            threads[t].tid = t;
            threads[t].cpu += SEC;
        }
        add(history, made_snapshot((i + 1) * SEC, 0, threads, BP_HISTORY_BUSIEST));
    }
    uint64_t count = print_ring(0);
    cr_expect(ge(u64, count, KEPT));
    cr_expect(lt(u64, count, ADDED - 1));
    cr_expect(strstr(text, "\"monotonic_ns\":2000000000,") == NULL);
    cr_expect(strstr(text, "\"monotonic_ns\":200000000000,") != NULL);
    bp_history_free(history);
}

/* Puts a record into the spool as a salvaged ring gives it. */
static void put(uint64_t sequence, uint32_t tag, const void *payload, size_t payload_bytes) {
    static const char zeros[8];
    bp_ring_record header = {.sequence = sequence,
                             .monotonic_ns = 1,
                             .payload_bytes = (uint32_t)payload_bytes,
                             .tag = tag};
    cr_assert(eq(int, bp_temp_file_write(&records, &header, sizeof header), BUGPACK_OK));
    cr_assert(eq(int, bp_temp_file_write(&records, payload, payload_bytes), BUGPACK_OK));
    cr_assert(eq(int, bp_temp_file_write(&records, zeros, -payload_bytes % 8), BUGPACK_OK));
}

static void put_record(uint64_t sequence, const bp_history_record *record) {
    put(sequence, BP_HISTORY_TAG, record, bp_history_record_bytes(record));
}

static void expect_only(uint64_t monotonic_ns) {
    char key[64];
    cr_expect(eq(u64, print(0), 1));
    (void)snprintf(key, sizeof key, "\"monotonic_ns\":%llu,", (unsigned long long)monotonic_ns);
    cr_expect(strstr(text, key) != NULL, "%s", text);
}

Test(history_print, records_that_make_no_sense_are_passed_over) {
    const bp_history_record good = {.ended_ns = 77, .busy_count = 1, .has_threads = 1};
    bp_history_record bad[9];
    for (unsigned i = 0; i < 9; i++) {
        bad[i] = good;
    }
    bad[0].cpu_percent = (double)NAN;
    bad[1].cpu_percent = -1.0;
    bad[2].threads[0].cpu_percent = (double)INFINITY;
    bad[3].has_memory = 2;
    memset(bad[4].threads[0].name, 'x', sizeof bad[4].threads[0].name);
    for (unsigned i = 0; i < 5; i++) {
        put_record(i + 1, &bad[i]);
    }
    bad[5].busy_count = BP_HISTORY_BUSIEST + 1;
    put(6, BP_HISTORY_TAG, &bad[5], sizeof bad[5]);
    bad[6].busy_count = 2;
    put(7, BP_HISTORY_TAG, &bad[6], bp_history_record_bytes(&good));
    put(8, BP_HISTORY_TAG, "", 0);
    put(9, BP_HISTORY_TAG + 1, &good, bp_history_record_bytes(&good));
    put(10, BP_HISTORY_TAG, &good, bp_history_record_bytes(&good) - 8);
    bad[7].has_files = 2;
    bad[8].has_threads = 2;
    put_record(11, &bad[7]);
    put_record(12, &bad[8]);
    put_record(13, &good);
    expect_only(77);
}

Test(history_print, a_spool_that_is_full_is_an_error_and_leaves_output_alone) {
    const bp_history_record good = {.ended_ns = 77};
    put_record(1, &good);
    cr_assert(eq(int, bp_temp_file_flush(&records, NULL), BUGPACK_OK));
    CLEANUP(bp_temp_file_release) bp_temp_file small = BP_TEMP_FILE_INIT;
    cr_assert(eq(int, bp_temp_file_open(&small, dir.fd, 10, NULL), BUGPACK_OK));
    cr_expect(eq(int, bp_history_print(&records, 0, bp_temp_file_sink, &small, &failure),
                 BUGPACK_ERR_LIMIT));
    cr_expect(eq(str, failure.message, "cannot write the metrics history"));
}

Test(history_print, records_that_cannot_be_read_are_an_error_after_the_lines_before_them) {
    const bp_history_record good = {.ended_ns = 77};
    const bp_ring_record cut = {.payload_bytes = 100, .tag = BP_HISTORY_TAG};
    put_record(1, &good);
    cr_assert(eq(int, bp_temp_file_write(&records, &cut, sizeof cut), BUGPACK_OK));
    cr_assert(eq(int, bp_temp_file_flush(&records, NULL), BUGPACK_OK));
    cr_expect(
        eq(int, bp_history_print(&records, 0, bp_temp_file_sink, &out, NULL), BUGPACK_ERR_IO));
    cr_assert(eq(int, bp_temp_file_flush(&out, NULL), BUGPACK_OK));
    cr_assert(gt(i64, bp_temp_file_read(&out, 0, text, sizeof text), 0));
}

/* The file of a ring whose writer is gone. */
Test(history_print, what_a_dead_writer_left_is_printed_as_well) {
    bp_history *history = NULL;
    int fd = openat(dir.fd, "ring", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cr_assert(ge(int, fd, 0));
    cr_assert(
        eq(int, bp_ring_new_mapped(fd, bp_history_ring_bytes(20), &ring, &failure), BUGPACK_OK),
        "%s", failure.message);
    cr_assert(eq(int, bp_history_new(ring, 2000, &history, NULL), BUGPACK_OK));
    add(history, made_snapshot(SEC, 0, NULL, 0));
    add(history, made_snapshot(2 * SEC, SEC / 2, NULL, 0));
    bp_history_free(history);
    int dead = openat(dir.fd, "ring", O_RDONLY | O_CLOEXEC);
    cr_assert(ge(int, dead, 0));
    bp_ring_view view;
    cr_assert(eq(int, bp_ring_recover(dead, bp_temp_file_sink, &records, &view, NULL), BUGPACK_OK));
    (void)close(dead);
    expect_only(2 * SEC);
    cr_expect(strstr(text, "\"cpu_percent\":50,") != NULL);
}
