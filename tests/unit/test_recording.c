/*
 * What a session records, as a maintainer finds it in a report.
 */
#include <unistd.h>

#include "support/report_reader.h"
#include "unit/quick_session.h"
#include "unit/unit.h"

static bugpack *open_with_history(const temp_dir *dir, uint32_t history_interval_ms) {
    bugpack_options options = quick_options(dir);
    options.sample_window_ms = 40;
    options.history_interval_ms = history_interval_ms;
    return open_session(&options);
}

Test(recording, traffic_becomes_a_pcap_that_ends_at_the_trigger) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack *session = open_with_history(&dir, BUGPACK_OFF);
    bugpack_channel *display = NULL;
    cr_assert(zero(int, bugpack_channel_open(session, "display", NULL, &display, NULL)));
    bugpack_traffic(display, BUGPACK_SENT, 1, "hello", "before the trigger", 18);
    cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL)));
    bugpack_traffic(display, BUGPACK_RECEIVED, 2, NULL, "after the trigger", 17);
    bugpack_close(session);
    char path[512];
    size_t pcap_bytes = 0;
    cr_assert(report_find_only(&dir, path, sizeof path));
    char *pcap = report_read(path, "traffic.pcap", &pcap_bytes);
    cr_assert(ne(ptr, pcap, NULL));
    cr_assert(ne(ptr, memmem(pcap, pcap_bytes, "before the trigger", 18), NULL));
    cr_assert(eq(ptr, memmem(pcap, pcap_bytes, "after the trigger", 17), NULL));
    free(pcap);
    temp_dir_remove(&dir);
}

Test(recording, notifications_are_folded_into_a_count) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack *session = open_with_history(&dir, BUGPACK_OFF);
    for (int i = 0; i < 3; i++) {
        bugpack_notify(session, BUGPACK_LEVEL_WARN, "server", "stream %d rejected", 7);
    }
    bugpack_notify_text(session, BUGPACK_LEVEL_WARN, "server", "100% %s %n");
    bugpack_notify_text(session, BUGPACK_LEVEL_WARN, "server", NULL);
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    cr_assert(zero(int, bugpack_report(session, NULL, &result)), "%s", result.error.message);
    cr_assert(report_entry_contains(result.path, "notifications.json", "\"text\": \"100% %s %n\""));
    cr_assert(report_entry_contains(result.path, "notifications.json", "\"text\": \"\""));
    cr_assert(report_entry_contains(result.path, "notifications.json", "\"count\": 3"));
    cr_assert(report_entry_contains(result.path, "notifications.json", "stream 7 rejected"));
    bugpack_close(session);
    temp_dir_remove(&dir);
}

Test(recording, a_window_of_the_history_needs_no_sample) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack *session = open_with_history(&dir, 20);
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    bool has_history = false;
    for (int i = 0; i < 200 && !has_history; i++) {
        (void)usleep(20000);
        cr_assert(zero(int, bugpack_report(session, NULL, &result)), "%s", result.error.message);
        has_history =
            report_entry_contains(result.path, "metrics-history.jsonl", "\"interval_ms\"");
        cr_assert(report_entry_contains(result.path, "runtime-metrics.json", "\"threads\": ["));
        cr_assert(zero(int, unlink(result.path)));
    }
    cr_assert(has_history);
    bugpack_close(session);
    temp_dir_remove(&dir);
}

/* On a busy machine the sample comes late, and the report says so; it is never of before. */
Test(recording, the_window_of_a_history_ends_at_the_trigger_or_later) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack *session = open_with_history(&dir, 60000);
    for (int i = 0; i < 3; i++) {
        (void)usleep(100000);
        bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
        cr_assert(zero(int, bugpack_report(session, NULL, &result)), "%s", result.error.message);
        cr_expect(report_entry_contains(result.path, "manifest.json", "\"the window ends "));
        cr_expect(not(report_entry_contains(result.path, "manifest.json", "before the trigger")));
        cr_assert(zero(int, unlink(result.path)));
    }
    bugpack_close(session);
    temp_dir_remove(&dir);
}

Test(recording, channels_are_refused_by_name_weight_and_options) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack *session = open_with_history(&dir, BUGPACK_OFF);
    bugpack_channel *channel = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    cr_assert(
        eq(int, bugpack_channel_open(session, "", NULL, &channel, &error), BUGPACK_ERR_INVALID));
    options.weight = BUGPACK_OFF;
    cr_assert(eq(int, bugpack_channel_open(session, "a", &options, &channel, &error),
                 BUGPACK_ERR_INVALID));
    options.weight = 1;
    options.struct_size = 1;
    cr_assert(eq(int, bugpack_channel_open(session, "a", &options, &channel, &error),
                 BUGPACK_ERR_INVALID));
    cr_assert(eq(ptr, channel, NULL));
    options.struct_size = sizeof options;
    cr_assert(zero(int, bugpack_channel_open(session, "a", &options, &channel, &error)));
    bugpack_channel *other = NULL;
    cr_assert(
        eq(int, bugpack_channel_open(session, "a", &options, &other, &error), BUGPACK_ERR_INVALID));
    bugpack_traffic(NULL, BUGPACK_SENT, 0, NULL, "x", 1);
    bugpack_close(session);
    temp_dir_remove(&dir);
}

static unsigned filtered_count;

static size_t count_filtered(bugpack_direction direction, uint32_t type, void *bytes,
                             size_t byte_count, void *context) {
    (void)direction;
    (void)type;
    (void)bytes;
    (void)context;
    filtered_count++;
    return byte_count;
}

/* Whether the pcap of a report has these bytes. */
static bool has_traffic(const char *path, const char *text) {
    size_t pcap_bytes = 0;
    char *pcap = report_read(path, "traffic.pcap", &pcap_bytes);
    cr_assert(ne(ptr, pcap, NULL));
    bool is_there = memmem(pcap, pcap_bytes, text, strlen(text)) != NULL;
    free(pcap);
    return is_there;
}

Test(recording, a_report_of_one_channel_has_its_traffic_unless_all_is_asked_for) {
    static const struct {
        const char *channel;
        uint64_t flags;
        bool is_retained, has_audio;
        const char *note;
    } cases[] = {
        {"video", 0, false, false, "the channel \\\"video\\\" alone"},
        {"video", 0, true, false, "the channel \\\"video\\\" alone"},
        {"video", BUGPACK_REPORT_ALL_TRAFFIC, false, true, NULL},
        {"video", BUGPACK_REPORT_ALL_TRAFFIC, true, true, NULL},
        {"cursor", 0, false, true, "no channel is called \\\"cursor\\\": these are all"},
        {"", 0, false, true, NULL},
        {NULL, 0, true, true, NULL},
    };
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack *session = open_with_history(&dir, BUGPACK_OFF);
    bugpack_channel *channels[2];
    static const char *const names[] = {"audio", "video"};
    for (size_t i = 0; i < 2; i++) {
        cr_assert(zero(int, bugpack_channel_open(session, names[i], NULL, &channels[i], NULL)));
        bugpack_traffic(channels[i], BUGPACK_SENT, 1, NULL, i == 0 ? "a-message" : "v-message", 9);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
        bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
        request.channel = cases[i].channel;
        request.flags = cases[i].flags;
        if (cases[i].is_retained) {
            request.retained = bugpack_notify_retain(session, BUGPACK_LEVEL_INFO, "t", "%zu", i);
            cr_assert(ne(u64, request.retained, 0));
        }
        cr_assert(zero(int, bugpack_report(session, &request, &result)), "%s",
                  result.error.message);
        cr_expect(has_traffic(result.path, "v-message"));
        cr_expect(eq(int, has_traffic(result.path, "a-message"), cases[i].has_audio), "case %zu",
                  i);
        cr_expect(eq(int, report_entry_contains(result.path, "traffic-index.jsonl", "audio"),
                     cases[i].has_audio));
        cr_expect(cases[i].note != NULL ||
                  (!report_entry_contains(result.path, "manifest.json", "alone") &&
                   !report_entry_contains(result.path, "manifest.json", "these are all")));
        cr_expect(cases[i].note == NULL ||
                  report_entry_contains(result.path, "manifest.json", cases[i].note));
    }
    bugpack_report_request unknown = BUGPACK_REPORT_REQUEST_INIT;
    unknown.flags = 2;
    cr_expect(eq(int, bugpack_report_async(session, &unknown, NULL, NULL), BUGPACK_ERR_INVALID));
    bugpack_close(session);
    temp_dir_remove(&dir);
}

Test(recording, a_closed_channel_takes_no_message_and_keeps_what_it_had) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    bugpack *session = open_with_history(&dir, BUGPACK_OFF);
    bugpack_channel *channel = NULL;
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.filter = count_filtered;
    cr_assert(zero(int, bugpack_channel_open(session, "a", &options, &channel, NULL)));
    bugpack_traffic(channel, BUGPACK_SENT, 1, "EARLY", "x", 1);
    bugpack_channel_close(channel);
    bugpack_traffic(channel, BUGPACK_SENT, 1, "LATE", "x", 1);
    bugpack_channel_close(channel);
    bugpack_channel_close(NULL);
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    cr_assert(zero(int, bugpack_report(session, NULL, &result)));
    cr_expect(report_entry_contains(result.path, "traffic-index.jsonl", "EARLY"));
    cr_expect(not(report_entry_contains(result.path, "traffic-index.jsonl", "LATE")));
    cr_expect(eq(uint, filtered_count, 1u));
    bugpack_close(session);
    bugpack_channel_close(channel);
    temp_dir_remove(&dir);
}
