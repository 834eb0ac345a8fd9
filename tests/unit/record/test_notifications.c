/*
 * What is told of each notification, and which are folded into one.
 */
#include "recorder/notifications.h"

#include "support/json_line.h"
#include "unit/notifications_fixture.h"
#include "unit/unit.h"

static void expect(uint32_t count, const char *expected) {
    CLEANUP(bp_buffer_release) bp_buffer out = print_now(count);
    json_line_fold(&out, 0);
    cr_assert(eq(str, bp_buffer_text(&out), expected));
}

TestSuite(notifications, .init = open_fixture, .fini = close_fixture);

Test(notifications, says_none_when_there_was_none) {
    expect(0, "{\"notifications\":[],\"dropped\":0}");
}

Test(notifications, tells_each_with_its_times_level_source_and_text) {
    add(1, BUGPACK_LEVEL_WARN, "server", "stream rejected");
    add(2, BUGPACK_LEVEL_INFO, NULL, "");
    expect(2, "{\"notifications\":[{\"first\":\"1970-01-01T00:00:01.000000Z\","
              "\"last\":\"1970-01-01T00:00:01.000000Z\",\"count\":1,\"level\":\"warn\","
              "\"source\":\"server\",\"text\":\"stream rejected\"},{"
              "\"first\":\"1970-01-01T00:00:02.000000Z\","
              "\"last\":\"1970-01-01T00:00:02.000000Z\",\"count\":1,\"level\":\"info\","
              "\"text\":\"\"}],\"dropped\":0}");
}

Test(notifications, folds_equal_ones_until_30_seconds_after_the_first) {
    static const uint64_t at_secs[] = {100, 101, 129, 130, 131, 155};
    for (size_t i = 0; i < sizeof at_secs / sizeof at_secs[0]; i++) {
        add(at_secs[i], BUGPACK_LEVEL_ERROR, "net", "lost");
    }
    expect(2, "{\"notifications\":[{\"first\":\"1970-01-01T00:01:40.000000Z\","
              "\"last\":\"1970-01-01T00:02:10.000000Z\",\"count\":4,\"level\":\"error\","
              "\"source\":\"net\",\"text\":\"lost\"},{"
              "\"first\":\"1970-01-01T00:02:11.000000Z\","
              "\"last\":\"1970-01-01T00:02:35.000000Z\",\"count\":2,\"level\":\"error\","
              "\"source\":\"net\",\"text\":\"lost\"}],\"dropped\":0}");
}

Test(notifications, folds_across_others_and_takes_a_late_clock_reading) {
    add(100, BUGPACK_LEVEL_INFO, "a", "one");
    add(101, BUGPACK_LEVEL_INFO, "a", "two");
    add(99, BUGPACK_LEVEL_INFO, "a", "one");
    CLEANUP(bp_buffer_release) bp_buffer out = print_now(2);
    cr_assert(eq(sz, count_in(&out, "\"count\": 2"), 1));
    cr_assert(eq(sz, count_in(&out, "\"last\": \"1970-01-01T00:01:40.000000Z\""), 1));
}

Test(notifications, keeps_apart_what_differs_in_level_source_text_or_where_they_meet) {
    add(1, BUGPACK_LEVEL_WARN, "ab", "cd");
    add(1, BUGPACK_LEVEL_ERROR, "ab", "cd");
    add(1, BUGPACK_LEVEL_WARN, "abc", "d");
    add(1, BUGPACK_LEVEL_WARN, "a", "bcd");
    add(1, BUGPACK_LEVEL_WARN, NULL, "abcd");
    add(1, BUGPACK_LEVEL_WARN, "ab", "ce");
    CLEANUP(bp_buffer_release) bp_buffer out = print_now(6);
    cr_assert(eq(sz, count_in(&out, "\"count\": 1"), 6));
}

Test(notifications, cuts_what_is_too_long_at_a_character_and_says_so) {
    char source[BUGPACK_CHANNEL_MAX_BYTES + 2], text[BUGPACK_NOTIFICATION_MAX_BYTES + 2];
    memset(source, 's', sizeof source);
    source[sizeof source - 1] = '\0';
    memset(text, 't', sizeof text);
    memcpy(text + BUGPACK_NOTIFICATION_MAX_BYTES - 1, "\xC3\xA4", 2); /* over the cut */
    bp_notifications_add(notifications, 1, BUGPACK_LEVEL_INFO, NULL, text, sizeof text);
    bp_notifications_add(notifications, 1, BUGPACK_LEVEL_INFO, source, "t", 1);
    bp_notifications_add(notifications, 1, BUGPACK_LEVEL_INFO, source + 1, text,
                         BUGPACK_NOTIFICATION_MAX_BYTES - 1);
    CLEANUP(bp_buffer_release) bp_buffer out = print_now(3);
    cr_assert(eq(sz, count_in(&out, "\"truncated\": true"), 2));
    cr_assert(eq(sz, count_in(&out, "\xC3"), 0));
    source[BUGPACK_CHANNEL_MAX_BYTES] = '\0';
    char expected[128];
    (void)snprintf(expected, sizeof expected, "\"source\": \"%s\"", source);
    cr_assert(eq(sz, count_in(&out, expected), 2));
}

Test(notifications, makes_hostile_bytes_and_levels_harmless) {
    bp_notifications_add(notifications, 1, (bugpack_level)77, "x\xfe\"", "a\0\n\xff", 4);
    CLEANUP(bp_buffer_release) bp_buffer out = print_now(1);
    cr_assert(eq(sz, count_in(&out, "\"source\": \"x\xEE\xBF\xBE\\\"\""), 1));
    cr_assert(eq(sz, count_in(&out, "\"text\": \"a\xEE\xBC\x80\\n\xEE\xBF\xBF\""), 1));
    cr_assert(eq(sz, count_in(&out, "\"level\": \"fatal\""), 1));
}

Test(notifications, takes_no_more_after_it_was_closed) {
    add(1, BUGPACK_LEVEL_INFO, "a", "before");
    bp_notifications_close(notifications);
    add(2, BUGPACK_LEVEL_INFO, "a", "before");
    add(3, BUGPACK_LEVEL_INFO, "a", "after");
}

Test(notifications, says_when_the_records_cannot_be_read_and_leaves_the_outputs_alone) {
    add(1, BUGPACK_LEVEL_INFO, "a", "text");
    CLEANUP(bp_temp_file_release) bp_temp_file records = copy();
    cr_assert(zero(int, ftruncate(records.fd, (off_t)records.size - 8)));
    BUFFER(out, 1 << 20);
    cr_assert(eq(int, bp_notifications_print(&records, 0, &out, &failure), BUGPACK_ERR_IO));
    cr_assert(eq(int, failure.status, BUGPACK_ERR_IO));
    cr_assert(zero(sz, out.size));
}
