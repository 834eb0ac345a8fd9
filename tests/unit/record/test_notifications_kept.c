/*
 * Which notifications are still there: after others, after a flood, in the file of a process that
 * is gone, and in one that is damaged or was made by somebody else.
 */
#include "recorder/notifications.h"

#include <fcntl.h>

#include "base/clock.h"
#include "json/json.h"
#include "ring/ring_reader.h"
#include "unit/notifications_fixture.h"
#include "unit/unit.h"

/* `count` of the longest notifications, each another, from `first` on. */
static void add_longest(unsigned first, unsigned count) {
    char text[BUGPACK_NOTIFICATION_MAX_BYTES], source[BUGPACK_CHANNEL_MAX_BYTES + 1];
    memset(source, 's', sizeof source - 1);
    source[sizeof source - 1] = '\0';
    for (unsigned i = first; i < first + count; i++) {
        memset(text, 't', sizeof text);
        int length = snprintf(text, sizeof text, "<%u>", i);
        text[length] = 't';
        bp_notifications_add(notifications, (i + 1) * BP_NS_PER_MS, BUGPACK_LEVEL_INFO, source,
                             text, sizeof text);
    }
}

static void expect_longest(const bp_buffer *out, unsigned first, unsigned count) {
    cr_assert(eq(sz, count_in(out, "\"text\": \"<"), count));
    const char *at = bp_buffer_text(out);
    for (unsigned i = first; i < first + count; i++) {
        char expected[32];
        (void)snprintf(expected, sizeof expected, "\"text\": \"<%u>tt", i);
        at = strstr(at, expected);
        cr_assert(ne(ptr, at, NULL), "%u is missing or out of order", i);
    }
}

TestSuite(notifications_kept, .init = open_fixture, .fini = close_fixture);

Test(notifications_kept, keeps_the_newest_500_and_counts_the_others) {
    add_longest(0, BUGPACK_NOTIFICATION_KEPT);
    bp_buffer out = print_now(BUGPACK_NOTIFICATION_KEPT);
    expect_longest(&out, 0, BUGPACK_NOTIFICATION_KEPT);
    cr_assert(eq(sz, count_in(&out, "\"dropped\": 0\n"), 1));
    bp_buffer_release(&out);
    add_longest(BUGPACK_NOTIFICATION_KEPT, 7777);
    out = print_now(BUGPACK_NOTIFICATION_KEPT);
    expect_longest(&out, 7777, BUGPACK_NOTIFICATION_KEPT);
    cr_assert(eq(sz, count_in(&out, "\"dropped\": 7777\n"), 1));
    bp_buffer_release(&out);
}

Test(notifications_kept, loses_none_of_the_500_in_a_flood_of_repetitions) {
    add_longest(0, BUGPACK_NOTIFICATION_KEPT - 1);
    const unsigned flood_count = 200000; /* turns the ring over ten times */
    for (unsigned i = 0; i < flood_count; i++) {
        bp_notifications_add(notifications, BP_NS_PER_SEC + i, BUGPACK_LEVEL_WARN, "net", "again",
                             5);
        if (i % 10000 == 0 || i + 1 == flood_count) {
            CLEANUP(bp_buffer_release) bp_buffer out = print_now(BUGPACK_NOTIFICATION_KEPT);
            expect_longest(&out, 0, BUGPACK_NOTIFICATION_KEPT - 1);
            char expected[32];
            (void)snprintf(expected, sizeof expected, "\"count\": %u,", i + 1);
            cr_assert(ge(sz, count_in(&out, expected), 1), "%u", i);
        }
    }
}

Test(notifications_kept, tells_the_same_from_the_file_of_a_ring_whose_writer_is_gone) {
    bp_notifications_free(notifications);
    int fd = openat(dir.fd, "ring", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CLEANUP(close_fd) int recovery_fd = openat(dir.fd, "ring", O_RDONLY | O_CLOEXEC);
    cr_assert(zero(int, bp_ring_new_mapped(fd, bp_notifications_ring_bytes(), &ring, NULL)));
    (void)close(fd);
    cr_assert(zero(int, bp_notifications_new(ring, &notifications, NULL)));
    add_longest(0, 700);
    add_longest(600, 50);
    CLEANUP(bp_temp_file_release) bp_temp_file salvaged;
    bp_ring_view view;
    cr_assert(zero(int, bp_temp_file_open(&salvaged, dir.fd, UINT64_MAX, NULL)));
    cr_assert(zero(int, bp_ring_recover(recovery_fd, bp_temp_file_sink, &salvaged, &view, NULL)));
    cr_assert(zero(int, bp_temp_file_flush(&salvaged, NULL)));
    CLEANUP(bp_buffer_release) bp_buffer from_file = print(&salvaged, BUGPACK_NOTIFICATION_KEPT);
    CLEANUP(bp_buffer_release) bp_buffer from_memory = print_now(BUGPACK_NOTIFICATION_KEPT);
    expect_longest(&from_file, 200, BUGPACK_NOTIFICATION_KEPT);
    cr_assert(eq(sz, count_in(&from_file, "\"count\": 2"), 50));
    cr_assert(eq(str, from_file.data, from_memory.data));
}

/* Copies records but the one of `skipped` sequence, as if it had been damaged. */
static bp_temp_file copy_without(uint64_t skipped) {
    bp_temp_file all = copy(), rest;
    cr_assert(zero(int, bp_temp_file_open(&rest, dir.fd, UINT64_MAX, NULL)));
    bp_ring_reader reader;
    bp_ring_reader_init(&reader, &all);
    const void *payload;
    const bp_ring_record *record;
    while ((record = bp_ring_reader_next(&reader, &payload)) != NULL) {
        if (record->sequence != skipped) {
            size_t padded_bytes = ((size_t)record->payload_bytes + 7) & ~(size_t)7;
            (void)bp_temp_file_write(&rest, record, sizeof *record);
            (void)bp_temp_file_write(&rest, payload, padded_bytes);
        }
    }
    bp_ring_reader_release(&reader);
    bp_temp_file_release(&all);
    cr_assert(zero(int, bp_temp_file_flush(&rest, NULL)));
    return rest;
}

Test(notifications_kept, tells_a_repetition_whose_text_is_lost_with_count_and_times) {
    add(1, BUGPACK_LEVEL_WARN, "net", "lost text");
    add(2, BUGPACK_LEVEL_WARN, "net", "lost text");
    add(3, BUGPACK_LEVEL_WARN, "net", "other");
    bp_temp_file records = copy_without(1);
    bp_buffer out = print(&records, 2);
    cr_assert(eq(sz,
                 count_in(&out, "\"first\": \"1970-01-01T00:00:01.000000Z\",\n      \"last\": "
                                "\"1970-01-01T00:00:02.000000Z\",\n      \"count\": 2,\n"
                                "      \"level\": \"warn\"\n    },"),
                 1));
    bp_buffer_release(&out);
    bp_temp_file_release(&records);
    records = copy_without(2); /* the repetition is lost: the first sight stays */
    out = print(&records, 2);
    cr_assert(eq(sz, count_in(&out, "\"count\": 1"), 2));
    bp_buffer_release(&out);
    bp_temp_file_release(&records);
    records = copy_without(3);
    out = print(&records, 1);
    cr_assert(eq(sz, count_in(&out, "\"count\": 2"), 1));
    bp_buffer_release(&out);
    bp_temp_file_release(&records);
}

Test(notifications_kept, gets_through_records_of_anybody) {
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
    CLEANUP(bp_temp_file_release) bp_temp_file records = copy();
    BUFFER(out, (size_t)16 << 20);
    BUFFER(reformatted, (size_t)16 << 20);
    cr_assert(zero(int, bp_notifications_print(&records, UINT64_MAX, &out, NULL)));
    cr_assert(le(sz, count_in(&out, "\"first\": "), BUGPACK_NOTIFICATION_KEPT));
    cr_assert(zero(int, bp_json_reformat(out.data, out.size, &reformatted, NULL)));
}
