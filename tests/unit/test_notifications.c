#include "recorder/notifications.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/ring_reader.h"
#include "support/temp_dir.h"
#include "json/json.h"

typedef struct fixture {
    temp_dir dir;
    bp_notifications *notifications;
} fixture;

static fixture open_fixture(void) {
    fixture made;
    cr_assert(temp_dir_make(&made.dir));
    bp_ring *ring = NULL;
    cr_assert(zero(int, (int)bp_ring_new(bp_notifications_ring_bytes(), &ring, NULL)));
    cr_assert(zero(int, (int)bp_notifications_new(ring, &made.notifications, NULL)));
    return made;
}

static void close_fixture(fixture *made) {
    bp_notifications_free(made->notifications);
    temp_dir_remove(&made->dir);
}

static void add(fixture *made, uint64_t at_secs, bugpack_level level, const char *source,
                const char *text) {
    bp_notifications_add(made->notifications, at_secs * BP_NS_PER_SEC, level, source, text,
                         strlen(text));
}

static bp_spool copy(fixture *made) {
    bp_spool records;
    bp_ring_view view;
    cr_assert(zero(int, (int)bp_spool_open(&records, made->dir.fd, UINT64_MAX, NULL)));
    cr_assert(zero(int, (int)bp_ring_copy(bp_notifications_ring(made->notifications), UINT64_MAX,
                                          bp_spool_sink, &records, &view, NULL)));
    cr_assert(zero(int, (int)bp_spool_flush(&records, NULL)));
    return records;
}

/* The artefact, with the epoch as the wall time of the monotonic clock's zero. */
static bp_buffer print(const bp_spool *records, uint32_t expected_count) {
    bp_buffer out;
    bp_buffer_init(&out, (size_t)16 << 20);
    uint32_t count = UINT32_MAX;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(zero(int, (int)bp_notifications_print(records, 0, &out, &count, &error)), "%s",
              error.message);
    cr_assert(eq(uint, count, expected_count));
    return out;
}

static bp_buffer print_now(fixture *made, uint32_t expected_count) {
    bp_spool records = copy(made);
    bp_buffer out = print(&records, expected_count);
    bp_spool_release(&records);
    return out;
}

static void expect(fixture *made, uint32_t count, const char *expected) {
    bp_buffer out = print_now(made, count);
    cr_assert(eq(str, (char *)(uintptr_t)bp_buffer_text(&out), (char *)(uintptr_t)expected));
    bp_buffer_release(&out);
}

static size_t count_in(const bp_buffer *text, const char *needle) {
    size_t count = 0;
    for (const char *at = bp_buffer_text(text); (at = strstr(at, needle)) != NULL; at++) {
        count++;
    }
    return count;
}

Test(notifications, says_none_when_there_was_none) {
    fixture made = open_fixture();
    expect(&made, 0, "{\n  \"notifications\": [],\n  \"dropped\": 0\n}\n");
    close_fixture(&made);
}

Test(notifications, tells_each_with_its_times_level_source_and_text) {
    fixture made = open_fixture();
    add(&made, 1, BUGPACK_WARN, "server", "stream rejected");
    add(&made, 2, BUGPACK_INFO, NULL, "");
    expect(&made, 2,
           "{\n  \"notifications\": [\n    {\n"
           "      \"first\": \"1970-01-01T00:00:01.000000Z\",\n"
           "      \"last\": \"1970-01-01T00:00:01.000000Z\",\n"
           "      \"count\": 1,\n      \"level\": \"warn\",\n"
           "      \"source\": \"server\",\n      \"text\": \"stream rejected\"\n    },\n    {\n"
           "      \"first\": \"1970-01-01T00:00:02.000000Z\",\n"
           "      \"last\": \"1970-01-01T00:00:02.000000Z\",\n"
           "      \"count\": 1,\n      \"level\": \"info\",\n      \"text\": \"\"\n    }\n  ],\n"
           "  \"dropped\": 0\n}\n");
    close_fixture(&made);
}

Test(notifications, folds_equal_ones_until_30_seconds_after_the_first) {
    fixture made = open_fixture();
    static const uint64_t at_secs[] = {100, 101, 129, 130, 131, 155};
    for (size_t i = 0; i < sizeof at_secs / sizeof at_secs[0]; i++) {
        add(&made, at_secs[i], BUGPACK_ERROR, "net", "lost");
    }
    expect(&made, 2,
           "{\n  \"notifications\": [\n    {\n"
           "      \"first\": \"1970-01-01T00:01:40.000000Z\",\n"
           "      \"last\": \"1970-01-01T00:02:10.000000Z\",\n"
           "      \"count\": 4,\n      \"level\": \"error\",\n"
           "      \"source\": \"net\",\n      \"text\": \"lost\"\n    },\n    {\n"
           "      \"first\": \"1970-01-01T00:02:11.000000Z\",\n"
           "      \"last\": \"1970-01-01T00:02:35.000000Z\",\n"
           "      \"count\": 2,\n      \"level\": \"error\",\n"
           "      \"source\": \"net\",\n      \"text\": \"lost\"\n    }\n  ],\n"
           "  \"dropped\": 0\n}\n");
    close_fixture(&made);
}

Test(notifications, folds_across_others_and_takes_a_late_clock_reading) {
    fixture made = open_fixture();
    add(&made, 100, BUGPACK_INFO, "a", "one");
    add(&made, 101, BUGPACK_INFO, "a", "two");
    add(&made, 99, BUGPACK_INFO, "a", "one");
    bp_buffer out = print_now(&made, 2);
    cr_assert(eq(sz, count_in(&out, "\"count\": 2"), 1));
    cr_assert(eq(sz, count_in(&out, "\"last\": \"1970-01-01T00:01:40.000000Z\""), 1));
    bp_buffer_release(&out);
    close_fixture(&made);
}

Test(notifications, keeps_apart_what_differs_in_level_source_text_or_where_they_meet) {
    fixture made = open_fixture();
    add(&made, 1, BUGPACK_WARN, "ab", "cd");
    add(&made, 1, BUGPACK_ERROR, "ab", "cd");
    add(&made, 1, BUGPACK_WARN, "abc", "d");
    add(&made, 1, BUGPACK_WARN, "a", "bcd");
    add(&made, 1, BUGPACK_WARN, NULL, "abcd");
    add(&made, 1, BUGPACK_WARN, "ab", "ce");
    bp_buffer out = print_now(&made, 6);
    cr_assert(eq(sz, count_in(&out, "\"count\": 1"), 6));
    bp_buffer_release(&out);
    close_fixture(&made);
}

Test(notifications, cuts_what_is_too_long_at_a_character_and_says_so) {
    fixture made = open_fixture();
    char source[BUGPACK_CHANNEL_MAX_BYTES + 2], text[BUGPACK_NOTIFICATION_MAX_BYTES + 2];
    memset(source, 's', sizeof source);
    source[sizeof source - 1] = '\0';
    memset(text, 't', sizeof text);
    memcpy(text + BUGPACK_NOTIFICATION_MAX_BYTES - 1, "\xC3\xA4", 2); /* over the cut */
    bp_notifications_add(made.notifications, 1, BUGPACK_INFO, NULL, text, sizeof text);
    bp_notifications_add(made.notifications, 1, BUGPACK_INFO, source, "t", 1);
    bp_notifications_add(made.notifications, 1, BUGPACK_INFO, source + 1, text,
                         BUGPACK_NOTIFICATION_MAX_BYTES - 1);
    bp_buffer out = print_now(&made, 3);
    cr_assert(eq(sz, count_in(&out, "\"truncated\": true"), 2));
    cr_assert(eq(sz, count_in(&out, "\xC3"), 0));
    source[BUGPACK_CHANNEL_MAX_BYTES] = '\0';
    char expected[128];
    (void)snprintf(expected, sizeof expected, "\"source\": \"%s\"", source);
    cr_assert(eq(sz, count_in(&out, expected), 2));
    bp_buffer_release(&out);
    close_fixture(&made);
}

Test(notifications, makes_hostile_bytes_and_levels_harmless) {
    fixture made = open_fixture();
    bp_notifications_add(made.notifications, 1, (bugpack_level)77, "x\xfe\"", "a\0\n\xff", 4);
    bp_buffer out = print_now(&made, 1);
    cr_assert(eq(sz, count_in(&out, "\"source\": \"x\xEE\xBF\xBE\\\"\""), 1));
    cr_assert(eq(sz, count_in(&out, "\"text\": \"a\xEE\xBC\x80\\n\xEE\xBF\xBF\""), 1));
    cr_assert(eq(sz, count_in(&out, "\"level\": \"fatal\""), 1));
    bp_buffer_release(&out);
    close_fixture(&made);
}

/* `count` of the longest notifications, each another, from `first` on. */
static void add_longest(fixture *made, unsigned first, unsigned count) {
    char text[BUGPACK_NOTIFICATION_MAX_BYTES], source[BUGPACK_CHANNEL_MAX_BYTES + 1];
    memset(source, 's', sizeof source - 1);
    source[sizeof source - 1] = '\0';
    for (unsigned i = first; i < first + count; i++) {
        memset(text, 't', sizeof text);
        int length = snprintf(text, sizeof text, "<%u>", i);
        text[length] = 't';
        bp_notifications_add(made->notifications, i * BP_NS_PER_MS, BUGPACK_INFO, source, text,
                             sizeof text);
    }
}

static void expect_longest(const bp_buffer *out, unsigned first, unsigned count) {
    cr_assert(eq(sz, count_in(out, "\"text\": \"<"), count));
    const char *at = bp_buffer_text(out);
    for (unsigned i = first; i < first + count; i++) {
        char expected[32];
        (void)snprintf(expected, sizeof expected, "\"text\": \"<%u>tt", i);
        at = strstr(at, expected);
        cr_assert(ne(ptr, (void *)(uintptr_t)at, NULL), "%u is missing or out of order", i);
    }
}

Test(notifications, keeps_the_newest_500_and_counts_the_others) {
    fixture made = open_fixture();
    add_longest(&made, 0, BUGPACK_NOTIFICATION_KEPT);
    bp_buffer out = print_now(&made, BUGPACK_NOTIFICATION_KEPT);
    expect_longest(&out, 0, BUGPACK_NOTIFICATION_KEPT);
    cr_assert(eq(sz, count_in(&out, "\"dropped\": 0\n"), 1));
    bp_buffer_release(&out);
    add_longest(&made, BUGPACK_NOTIFICATION_KEPT, 7777);
    out = print_now(&made, BUGPACK_NOTIFICATION_KEPT);
    expect_longest(&out, 7777, BUGPACK_NOTIFICATION_KEPT);
    cr_assert(eq(sz, count_in(&out, "\"dropped\": 7777\n"), 1));
    bp_buffer_release(&out);
    close_fixture(&made);
}

Test(notifications, loses_none_of_the_500_in_a_flood_of_repetitions) {
    fixture made = open_fixture();
    add_longest(&made, 0, BUGPACK_NOTIFICATION_KEPT - 1);
    const unsigned flood_count = 200000; /* turns the ring over ten times */
    for (unsigned i = 0; i < flood_count; i++) {
        bp_notifications_add(made.notifications, BP_NS_PER_SEC + i, BUGPACK_WARN, "net", "again",
                             5);
        if (i % 10000 == 0 || i + 1 == flood_count) {
            bp_buffer out = print_now(&made, BUGPACK_NOTIFICATION_KEPT);
            expect_longest(&out, 0, BUGPACK_NOTIFICATION_KEPT - 1);
            char expected[32];
            (void)snprintf(expected, sizeof expected, "\"count\": %u,", i + 1);
            cr_assert(ge(sz, count_in(&out, expected), 1), "%u", i);
            bp_buffer_release(&out);
        }
    }
    close_fixture(&made);
}

Test(notifications, tells_the_same_from_the_file_of_a_ring_whose_writer_is_gone) {
    fixture made;
    cr_assert(temp_dir_make(&made.dir));
    int fd = openat(made.dir.fd, "ring", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int salvage_fd = openat(made.dir.fd, "ring", O_RDONLY | O_CLOEXEC);
    bp_ring *ring = NULL;
    cr_assert(zero(int, (int)bp_ring_new_mapped(fd, bp_notifications_ring_bytes(), &ring, NULL)));
    cr_assert(zero(int, (int)bp_notifications_new(ring, &made.notifications, NULL)));
    add_longest(&made, 0, 700);
    add_longest(&made, 600, 50);
    bp_spool salvaged;
    bp_ring_view view;
    cr_assert(zero(int, (int)bp_spool_open(&salvaged, made.dir.fd, UINT64_MAX, NULL)));
    cr_assert(zero(int, (int)bp_ring_salvage(salvage_fd, bp_spool_sink, &salvaged, &view, NULL)));
    cr_assert(zero(int, (int)bp_spool_flush(&salvaged, NULL)));
    bp_buffer from_file = print(&salvaged, BUGPACK_NOTIFICATION_KEPT);
    bp_buffer from_memory = print_now(&made, BUGPACK_NOTIFICATION_KEPT);
    expect_longest(&from_file, 200, BUGPACK_NOTIFICATION_KEPT);
    cr_assert(eq(sz, count_in(&from_file, "\"count\": 2"), 50));
    cr_assert(eq(str, from_file.data, from_memory.data));
    bp_buffer_release(&from_memory);
    bp_buffer_release(&from_file);
    bp_spool_release(&salvaged);
    (void)close(salvage_fd);
    close_fixture(&made);
}

/* Copies records but the one of `skipped` sequence, as if it had been damaged. */
static bp_spool copy_without(fixture *made, uint64_t skipped) {
    bp_spool all = copy(made), rest;
    cr_assert(zero(int, (int)bp_spool_open(&rest, made->dir.fd, UINT64_MAX, NULL)));
    bp_ring_reader reader;
    bp_ring_reader_init(&reader, &all);
    const void *payload;
    const bp_ring_record *record;
    while ((record = bp_ring_reader_next(&reader, &payload)) != NULL) {
        if (record->sequence != skipped) {
            size_t padded_bytes = ((size_t)record->payload_bytes + 7) & ~(size_t)7;
            (void)bp_spool_write(&rest, record, sizeof *record);
            (void)bp_spool_write(&rest, payload, padded_bytes);
        }
    }
    bp_ring_reader_release(&reader);
    bp_spool_release(&all);
    cr_assert(zero(int, (int)bp_spool_flush(&rest, NULL)));
    return rest;
}

Test(notifications, tells_a_repetition_whose_text_is_lost_with_count_and_times) {
    fixture made = open_fixture();
    add(&made, 1, BUGPACK_WARN, "net", "lost text");
    add(&made, 2, BUGPACK_WARN, "net", "lost text");
    add(&made, 3, BUGPACK_WARN, "net", "other");
    bp_spool records = copy_without(&made, 1);
    bp_buffer out = print(&records, 2);
    cr_assert(eq(sz,
                 count_in(&out, "\"first\": \"1970-01-01T00:00:01.000000Z\",\n      \"last\": "
                                "\"1970-01-01T00:00:02.000000Z\",\n      \"count\": 2,\n"
                                "      \"level\": \"warn\"\n    },"),
                 1));
    bp_buffer_release(&out);
    bp_spool_release(&records);
    records = copy_without(&made, 2); /* the repetition is lost: the first sight stays */
    out = print(&records, 2);
    cr_assert(eq(sz, count_in(&out, "\"count\": 1"), 2));
    bp_buffer_release(&out);
    bp_spool_release(&records);
    records = copy_without(&made, 3);
    out = print(&records, 1);
    cr_assert(eq(sz, count_in(&out, "\"count\": 2"), 1));
    bp_buffer_release(&out);
    bp_spool_release(&records);
    close_fixture(&made);
}

Test(notifications, gets_through_records_of_anybody) {
    fixture made = open_fixture();
    bp_ring *ring = bp_notifications_ring(made.notifications);
    uint32_t state = 1;
    unsigned char payload[700];
    for (unsigned round = 0; round < 3000; round++) {
        size_t payload_bytes = (state >> 8) % sizeof payload;
        payload_bytes = round % 3 == 0 ? 32 : payload_bytes;
        for (size_t i = 0; i < payload_bytes; i++) {
            state = state * 1664525u + 1013904223u;
            payload[i] = (unsigned char)(state >> 24);
        }
        if (round % 2 == 0 && payload_bytes >= 32) {
            memset(payload + 1, 0, 7);                /* a small id */
            payload[28] = (unsigned char)(round / 2); /* and a text of any length */
            payload[29] = (unsigned char)(round % 4);
            payload[30] %= 66;
        }
        const struct iovec part = {.iov_base = payload, .iov_len = payload_bytes};
        cr_assert(gt(u64, bp_ring_append(ring, round % 4, &part, 1), 0));
    }
    bp_spool records = copy(&made);
    bp_buffer out, reformatted;
    bp_buffer_init(&out, (size_t)16 << 20);
    bp_buffer_init(&reformatted, (size_t)16 << 20);
    uint32_t count = UINT32_MAX;
    cr_assert(zero(int, (int)bp_notifications_print(&records, UINT64_MAX, &out, &count, NULL)));
    cr_assert(le(uint, count, BUGPACK_NOTIFICATION_KEPT));
    cr_assert(zero(int, (int)bp_json_reformat(out.data, out.size, &reformatted, NULL)));
    bp_buffer_release(&reformatted);
    bp_buffer_release(&out);
    bp_spool_release(&records);
    close_fixture(&made);
}

Test(notifications, takes_no_more_after_it_was_closed) {
    fixture made = open_fixture();
    add(&made, 1, BUGPACK_INFO, "a", "before");
    bp_notifications_close(made.notifications);
    add(&made, 2, BUGPACK_INFO, "a", "before");
    add(&made, 3, BUGPACK_INFO, "a", "after");
    bp_buffer out = print_now(&made, 1);
    cr_assert(eq(sz, count_in(&out, "\"count\": 1"), 1));
    bp_buffer_release(&out);
    close_fixture(&made);
}

Test(notifications, says_when_the_records_cannot_be_read_and_leaves_the_outputs_alone) {
    fixture made = open_fixture();
    add(&made, 1, BUGPACK_INFO, "a", "text");
    bp_spool records = copy(&made);
    cr_assert(zero(int, ftruncate(records.fd, (off_t)records.size - 8)));
    bp_buffer out;
    bp_buffer_init(&out, 1 << 20);
    uint32_t count = 42;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(eq(int, (int)bp_notifications_print(&records, 0, &out, &count, &error),
                 (int)BUGPACK_ERR_IO));
    cr_assert(eq(int, (int)error.status, (int)BUGPACK_ERR_IO));
    cr_assert(eq(uint, count, 42u));
    cr_assert(zero(sz, out.size));
    bp_buffer_release(&out);
    bp_spool_release(&records);
    close_fixture(&made);
}
