/*
 * What a report says of its messages beside the pcap: the index, and the ledger's counts.
 */
#include "recorder/traffic.h"
#include "unit/quick_session.h"

static void setup_and_open(void) {
    setup();
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.is_in_memory = true;
    open_session();
}

TestSuite(traffic_index, .init = setup_and_open, .fini = teardown);

/* Takes a report and closes the session; index and manifest are the caller's to free. */
static void read_report(char **ret_index, char **ret_manifest) {
    take(NULL);
    cr_assert(eq(ptr, strstr(taken.missing, "traffic"), NULL), "%s", taken.missing);
    bugpack_close(session);
    *ret_index = report_read(taken.path, "traffic-index.jsonl", NULL);
    *ret_manifest = report_read(taken.path, "manifest.json", NULL);
    cr_assert(ne(ptr, *ret_index, NULL));
    cr_assert(ne(ptr, *ret_manifest, NULL));
}

static size_t count_lines_with(const char *text, const char *needle) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, needle)) != NULL; at++) {
        count++;
    }
    return count;
}

/* Drops the last byte of what is of type 9. */
static size_t drop_last(bugpack_direction direction, uint32_t type, void *bytes, size_t byte_count,
                        void *context) {
    return type == 9 ? byte_count - 1 : byte_count;
}

Test(traffic_index, tells_what_shortened_each_message_and_the_ledger_how_many) {
    bugpack_channel *short_channel = NULL, *small_channel = NULL;
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    with.snap_bytes = 10;
    with.filter = drop_last;
    short_channel = open_channel_with("short", &with);
    with = (bugpack_channel_options)BUGPACK_CHANNEL_OPTIONS_INIT;
    with.weight = 1; /* a ring of 768 KiB; a quarter of it is the longest message */
    small_channel = open_channel_with("small", &with);
    bugpack_traffic(short_channel, BUGPACK_SENT, 1, "whole", "0123456789", 10);
    bugpack_traffic(short_channel, BUGPACK_SENT, 1, "snapped", "0123456789a", 11);
    bugpack_traffic(short_channel, BUGPACK_SENT, 9, "both", "0123456789a", 11);
    bugpack_traffic(short_channel, BUGPACK_RECEIVED, 9, "filtered", "012", 3);
    char *large = calloc(1, 300 * 1024);
    bugpack_traffic(small_channel, BUGPACK_SENT, 1, "large", large, 300 * 1024);
    bugpack_traffic(small_channel, BUGPACK_SENT, 1, NULL, NULL, 5);
    free(large);
    char *index, *manifest;
    read_report(&index, &manifest);
    static const char *const lines[] = {
        "\"channel\":\"short\",\"connection\":0,\"seq\":1,\"direction\":\"sent\",\"type\":1,\"type_"
        "name\":\"whole\","
        "\"bytes\":10,\"kept_bytes\":10}\n",
        "\"type_name\":\"snapped\",\"bytes\":11,\"kept_bytes\":10,\"cut_by\":[\"snap_length\"]}\n",
        "\"type\":9,\"type_name\":\"both\",\"bytes\":11,\"kept_bytes\":9,"
        "\"cut_by\":[\"snap_length\",\"filter\"]}\n",
        "\"seq\":4,\"direction\":\"received\",\"type\":9,\"type_name\":\"filtered\",\"bytes\":3,"
        "\"kept_bytes\":2,\"cut_by\":[\"filter\"]}\n",
        "\"type_name\":\"large\",\"bytes\":307200,\"kept_bytes\":196",
        "\"cut_by\":[\"size_limit\"]}\n",
        "\"type\":1,\"bytes\":5,\"kept_bytes\":0,\"cut_by\":[\"no_bytes\"]}\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        cr_expect(eq(sz, count_lines_with(index, lines[i]), 1), "%s", lines[i]);
    }
    cr_expect(eq(sz, count_lines_with(index, "\n"), 6));
    cr_expect(
        ne(ptr,
           strstr(manifest, "\"6 messages; 5 shortened: 2 by the snap length, 2 by the filter, "
                            "1 by the size limit, 1 given without bytes\""),
           NULL),
        "%s", manifest);
    free(index);
    free(manifest);
}

Test(traffic_index, shows_the_pinned_first_and_the_ledger_tells_what_is_missing_behind_them) {
    enum { message_count = 30000 };
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    with.weight = 1;
    with.pin_bytes = 6;
    bugpack_channel *channel = open_channel_with("net", &with);
    bugpack_traffic(channel, BUGPACK_SENT, 1, "hello", "ABC", 3);
    for (int i = 1; i < message_count; i++) {
        bugpack_traffic(channel, BUGPACK_RECEIVED, 2, "data", "0123456789abcdef", 16);
    }
    char *index, *manifest;
    read_report(&index, &manifest);
    unsigned shown = 0, all = 0, pinned = 0, missing = 0, cut = 0, by_pins = 0;
    const char *reason = strstr(manifest, "\"name\": \"traffic.pcap\"");
    reason = reason == NULL ? NULL : strstr(reason, "\"reason\": ");
    cr_assert(ne(ptr, reason, NULL));
    cr_assert(eq(int,
                 sscanf(reason,
                        "\"reason\": \"%u of %u messages: %u were dropped to make room for newer "
                        "ones; %u of those here are the first of a channel, which are always kept; "
                        "%u shortened: %u among the first of a channel\"",
                        &shown, &all, &missing, &pinned, &cut, &by_pins),
                 6),
              "%.300s", reason);
    cr_expect(eq(uint, all, message_count));
    cr_expect(eq(uint, shown + missing, message_count));
    char index_reason[300];
    (void)snprintf(index_reason, sizeof index_reason,
                   "\"reason\": \"%u of %u messages: %u were dropped to make room for newer ones; "
                   "%u of those here are the first of a channel, which are always kept\"",
                   shown, all, missing, pinned);
    cr_expect(ne(ptr, strstr(manifest, index_reason), NULL), "%s", manifest);
    cr_expect(eq(uint, pinned, 2));
    cr_expect(eq(uint, cut, 1));
    cr_expect(eq(uint, by_pins, 1));
    cr_expect(gt(uint, missing, 1000));
    cr_expect(eq(sz, count_lines_with(index, "\n"), shown));
    cr_expect(eq(sz, count_lines_with(index, "\"pinned\":true"), pinned));
    char first_of_the_rest[64];
    (void)snprintf(first_of_the_rest, sizeof first_of_the_rest, "\"seq\":%u,",
                   missing + pinned + 1);
    const char *third = strchr(strchr(index, '\n') + 1, '\n') + 1;
    cr_expect(ne(ptr,
                 strstr(index, "\"seq\":2,\"direction\":\"received\",\"type\":2,"
                               "\"type_name\":\"data\",\"bytes\":16,\"kept_bytes\":3,"
                               "\"cut_by\":[\"pin\"],\"pinned\":true}\n"),
                 NULL));
    const char *found = strstr(third, first_of_the_rest);
    cr_expect(ne(ptr, found, NULL));
    cr_expect(lt(ptr, (void *)found, (void *)strchr(third, '\n')));
    free(index);
    free(manifest);
}

Test(traffic_index, that_has_no_room_costs_itself_and_not_the_pcap) {
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_traffic *traffic = NULL;
    bp_traffic_snapshot frozen;
    bp_traffic_extent extent;
    bp_temp_file records, pcap, index;
    with.pin_bytes = 0;
    bp_traffic_identity_init(&identity, "net", 0, &with);
    cr_assert(zero(int, bp_ring_new(64 * 1024, &ring, NULL)));
    cr_assert(zero(int, bp_traffic_new(&identity, &with, NULL, ring, NULL, &traffic, NULL)));
    bp_traffic_append(traffic, BUGPACK_SENT, 1, "hello", "hello", 5);
    cr_assert(zero(int, bp_temp_file_open(&records, dir.fd, 1 << 20, NULL)));
    cr_assert(zero(int, bp_traffic_take_snapshot(traffic, UINT64_MAX, 0, &records, &frozen, NULL)));
    cr_assert(zero(int, bp_temp_file_open(&pcap, dir.fd, 1 << 20, NULL)));
    cr_assert(zero(int, bp_temp_file_open(&index, dir.fd, 16, NULL)));
    cr_expect(zero(int, bp_traffic_print_pcap(&records, &frozen, 1, NULL, bp_temp_file_sink, &pcap,
                                              &extent, NULL)));
    cr_expect(eq(int, bp_traffic_print_index(&records, &frozen, 1, bp_temp_file_sink, &index, NULL),
                 BUGPACK_ERR_LIMIT));
    cr_expect(eq(u64, extent.message_count, 1));
    cr_expect(gt(u64, pcap.size, BP_PCAP_HEADER_BYTES));
    cr_expect(eq(int, bp_temp_file_flush(&index, NULL), BUGPACK_ERR_LIMIT));
    bp_temp_file_release(&records);
    bp_temp_file_release(&pcap);
    bp_temp_file_release(&index);
    bp_traffic_free(traffic);
}
