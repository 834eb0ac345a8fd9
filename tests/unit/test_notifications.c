/*
 * What is told of each notification, and which are folded into one.
 */
#include "recorder/notifications.h"

#include <unistd.h>

#include "unit/notifications_fixture.h"
#include "unit/unit.h"

static void expect(fixture *made, uint32_t count, const char *expected) {
    bp_buffer out = print_now(made, count);
    cr_assert(eq(str, bp_buffer_text(&out), expected));
    bp_buffer_release(&out);
}

Test(notifications, says_none_when_there_was_none) {
    fixture made = open_fixture();
    expect(&made, 0, "{\n  \"notifications\": [],\n  \"dropped\": 0\n}\n");
    close_fixture(&made);
}

Test(notifications, tells_each_with_its_times_level_source_and_text) {
    fixture made = open_fixture();
    add(&made, 1, BUGPACK_LEVEL_WARN, "server", "stream rejected");
    add(&made, 2, BUGPACK_LEVEL_INFO, NULL, "");
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
        add(&made, at_secs[i], BUGPACK_LEVEL_ERROR, "net", "lost");
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
    add(&made, 100, BUGPACK_LEVEL_INFO, "a", "one");
    add(&made, 101, BUGPACK_LEVEL_INFO, "a", "two");
    add(&made, 99, BUGPACK_LEVEL_INFO, "a", "one");
    bp_buffer out = print_now(&made, 2);
    cr_assert(eq(sz, count_in(&out, "\"count\": 2"), 1));
    cr_assert(eq(sz, count_in(&out, "\"last\": \"1970-01-01T00:01:40.000000Z\""), 1));
    bp_buffer_release(&out);
    close_fixture(&made);
}

Test(notifications, keeps_apart_what_differs_in_level_source_text_or_where_they_meet) {
    fixture made = open_fixture();
    add(&made, 1, BUGPACK_LEVEL_WARN, "ab", "cd");
    add(&made, 1, BUGPACK_LEVEL_ERROR, "ab", "cd");
    add(&made, 1, BUGPACK_LEVEL_WARN, "abc", "d");
    add(&made, 1, BUGPACK_LEVEL_WARN, "a", "bcd");
    add(&made, 1, BUGPACK_LEVEL_WARN, NULL, "abcd");
    add(&made, 1, BUGPACK_LEVEL_WARN, "ab", "ce");
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
    bp_notifications_add(made.notifications, 1, BUGPACK_LEVEL_INFO, NULL, text, sizeof text);
    bp_notifications_add(made.notifications, 1, BUGPACK_LEVEL_INFO, source, "t", 1);
    bp_notifications_add(made.notifications, 1, BUGPACK_LEVEL_INFO, source + 1, text,
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

Test(notifications, takes_no_more_after_it_was_closed) {
    fixture made = open_fixture();
    add(&made, 1, BUGPACK_LEVEL_INFO, "a", "before");
    bp_notifications_close(made.notifications);
    add(&made, 2, BUGPACK_LEVEL_INFO, "a", "before");
    add(&made, 3, BUGPACK_LEVEL_INFO, "a", "after");
    close_fixture(&made);
}

Test(notifications, says_when_the_records_cannot_be_read_and_leaves_the_outputs_alone) {
    fixture made = open_fixture();
    add(&made, 1, BUGPACK_LEVEL_INFO, "a", "text");
    bp_temp_file records = copy(&made);
    cr_assert(zero(int, ftruncate(records.fd, (off_t)records.size - 8)));
    bp_buffer out;
    bp_buffer_init(&out, 1 << 20);
    uint32_t count = 42;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(eq(int, bp_notifications_print(&records, 0, &out, &count, &error), BUGPACK_ERR_IO));
    cr_assert(eq(int, error.status, BUGPACK_ERR_IO));
    cr_assert(eq(uint, count, 42u));
    cr_assert(zero(sz, out.size));
    bp_buffer_release(&out);
    bp_temp_file_release(&records);
    close_fixture(&made);
}
