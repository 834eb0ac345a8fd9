/*
 * What a session records, as a maintainer finds it in a report.
 */
#include <bugpack/bindings.h>

#include "unit/quick_session.h"

static void open_with_history(uint64_t history_interval_ms) {
    options.sample_window_ms = 40;
    options.recorder.history_interval_ms = history_interval_ms;
    open_session();
}

SESSION_SUITE(recording);

Test(recording, log_and_traffic_end_at_the_trigger) {
    options.sample_window_ms = 200; /* the rings are copied behind it */
    open_session();
    bugpack_channel *display = open_channel("display");
    bugpack_traffic(display, BUGPACK_SENT, 1, "hello", "before the trigger", 18);
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "before");
    cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
    bugpack_traffic(display, BUGPACK_RECEIVED, 2, NULL, "after the trigger", 17);
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "later");
    bugpack_close(session);
    find_only();
    cr_assert(pcap_holds(taken.path, "before the trigger"));
    cr_assert(not(pcap_holds(taken.path, "after the trigger")));
    cr_assert(holds("logs.jsonl", "before") && !holds("logs.jsonl", "later"));
}

Test(recording, notifications_are_folded_into_a_count) {
    open_with_history(BUGPACK_OFF);
    for (int i = 0; i < 3; i++) {
        bugpack_notify(session, BUGPACK_LEVEL_WARN, "server", NULL, "stream %d rejected", 7);
    }
    bugpack_notify_text(session, BUGPACK_LEVEL_WARN, "server", NULL, "100% %s %n");
    bugpack_notify_text(session, BUGPACK_LEVEL_WARN, "server", NULL, NULL);
    take(NULL);
    cr_assert(holds("notifications.json", "\"text\": \"100% %s %n\""));
    cr_assert(holds("notifications.json", "\"text\": \"\""));
    cr_assert(holds("notifications.json", "\"count\": 3"));
    cr_assert(holds("notifications.json", "stream 7 rejected"));
}

Test(recording, a_window_of_the_history_needs_no_sample) {
    open_with_history(20);
    bool has_history = false;
    for (int i = 0; i < 200 && !has_history; i++) {
        (void)usleep(20000);
        take(NULL);
        has_history = holds("metrics-history.jsonl", "\"interval_ms\"");
        cr_assert(holds("runtime-metrics.json", "\"threads\": ["));
        cr_assert(zero(int, unlink(taken.path)));
    }
    cr_assert(has_history);
}

/* On a busy machine the sample comes late, and the report says so; it is never of before. */
Test(recording, the_window_of_a_history_ends_at_the_trigger_or_later) {
    open_with_history(60000);
    for (int i = 0; i < 3; i++) {
        (void)usleep(100000);
        take(NULL);
        cr_expect(holds("manifest.json", "\"the window ends "));
        cr_expect(not(holds("manifest.json", "before the trigger")));
        cr_assert(zero(int, unlink(taken.path)));
    }
}

Test(recording, channels_are_refused_by_name_weight_and_options) {
    open_with_history(BUGPACK_OFF);
    bugpack_channel *channel = NULL;
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    cr_assert(
        eq(int, bugpack_channel_open(session, "", NULL, &channel, &failure), BUGPACK_ERR_INVALID));
    with.weight = BUGPACK_OFF;
    cr_assert(eq(int, bugpack_channel_open(session, "a", &with, &channel, &failure),
                 BUGPACK_ERR_INVALID));
    with.weight = 1;
    with.pin_bytes = (1u << 20) + 1;
    cr_assert(eq(int, bugpack_channel_open(session, "a", &with, &channel, &failure),
                 BUGPACK_ERR_INVALID));
    cr_expect(eq(str, failure.message, "pin_bytes must be at most 1048576"));
    with.pin_bytes = 0;
    with.struct_size = 1;
    cr_assert(eq(int, bugpack_channel_open(session, "a", &with, &channel, &failure),
                 BUGPACK_ERR_INVALID));
    cr_assert(eq(ptr, channel, NULL));
    with.struct_size = sizeof with;
    channel = open_channel_with("a", &with);
    bugpack_channel *other = NULL;
    cr_assert(
        eq(int, bugpack_channel_open(session, "a", &with, &other, &failure), BUGPACK_ERR_INVALID));
    bugpack_traffic(NULL, BUGPACK_SENT, 0, NULL, "x", 1);
}

static unsigned filtered_count;

static size_t count_filtered(bugpack_direction direction, uint32_t type, void *bytes,
                             size_t byte_count, void *context) {
    filtered_count++;
    return byte_count;
}

Test(recording, a_report_of_one_channel_has_its_traffic_unless_all_is_asked_for) {
    static const struct {
        const char *channel;
        bool all_traffic;
        bool is_retained, has_audio;
        const char *note;
    } cases[] = {
        {"video", false, false, false, "the channel \\\"video\\\" alone"},
        {"video", false, true, false, "the channel \\\"video\\\" alone"},
        {"video", true, false, true, NULL},
        {"video", true, true, true, NULL},
        {"cursor", false, false, true, "no channel is called \\\"cursor\\\": these are all"},
        {"", false, false, true, NULL},
        {NULL, false, true, true, NULL},
    };
    open_with_history(BUGPACK_OFF);
    bugpack_channel *channels[2];
    static const char *const names[] = {"audio", "video"};
    for (size_t i = 0; i < 2; i++) {
        channels[i] = open_channel(names[i]);
        bugpack_traffic(channels[i], BUGPACK_SENT, 1, NULL, i == 0 ? "a-message" : "v-message", 9);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
        request.channel = cases[i].channel;
        request.all_traffic = cases[i].all_traffic;
        if (cases[i].is_retained) {
            bugpack_notify(session, BUGPACK_LEVEL_INFO, "t", &request.retained, "%zu", i);
            cr_assert(ne(u64, request.retained, 0));
        }
        take(&request);
        cr_expect(pcap_holds(taken.path, "v-message"));
        cr_expect(eq(int, pcap_holds(taken.path, "a-message"), cases[i].has_audio), "case %zu", i);
        cr_expect(eq(int, holds("traffic-index.jsonl", "audio"), cases[i].has_audio));
        cr_expect(cases[i].note != NULL ||
                  (!holds("manifest.json", "alone") && !holds("manifest.json", "these are all")));
        cr_expect(cases[i].note == NULL || holds("manifest.json", cases[i].note));
    }
}

Test(recording, a_closed_channel_takes_no_message_and_keeps_what_it_had) {
    open_with_history(BUGPACK_OFF);
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    with.filter = count_filtered;
    bugpack_channel *channel = open_channel_with("a", &with);
    bugpack_traffic(channel, BUGPACK_SENT, 1, "EARLY", "x", 1);
    bugpack_channel_close(channel);
    bugpack_traffic(channel, BUGPACK_SENT, 1, "LATE", "x", 1);
    bugpack_channel_close(channel);
    bugpack_channel_close(NULL);
    take(NULL);
    cr_expect(holds("traffic-index.jsonl", "EARLY"));
    cr_expect(not(holds("traffic-index.jsonl", "LATE")));
    cr_expect(eq(uint, filtered_count, 1u));
    bugpack_close(session);
    bugpack_channel_close(channel);
}
