/*
 * What rules and flags do to traffic, and what the manifest says of entries that are not searched.
 */
#include <bugpack/bugpack.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redact/redactor.h"
#include "support/report_reader.h"
#include "unit/redacted.h"
#include "unit/taken_report.h"

TestSuite(redact_traffic, .init = setup, .fini = teardown);

static bugpack_options traffic_options(void) {
    bugpack_options options = quick_options(&dir);
    options.traffic_budget_bytes = 50 << 20;
    return options;
}

static bugpack_channel *open_channel(bugpack *session, const char *name, uint64_t flags) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    bugpack_channel *channel = NULL;
    options.flags = flags;
    cr_assert(zero(int, (int)bugpack_channel_open(session, name, &options, &channel, NULL)));
    return channel;
}

static void send_text(bugpack_channel *channel, const char *text) {
    bugpack_traffic(channel, BUGPACK_SENT, 1, "message", text, strlen(text));
}

/* How often a text is in the pcap. */
static unsigned count_in_pcap(const char *text) {
    size_t size = 0, length = strlen(text);
    char *bytes = report_read(path, "traffic.pcap", &size);
    unsigned count = 0;
    cr_assert(ne(ptr, bytes, NULL));
    for (const char *at = bytes;
         (at = memmem(at, size - (size_t)(at - bytes), text, length)) != NULL; at += length) {
        count++;
    }
    free(bytes);
    return count;
}

Test(redact_traffic, replaces_secrets_by_as_many_bytes_where_a_channel_wants_it) {
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel *searched = open_channel(session, "a", BUGPACK_CHANNEL_REDACT_PAYLOAD);
    send_text(searched, "login password=hunter2 and go on");
    send_text(searched, "Authorization: Bearer 0123456789abcdef0123456789abcdef0123456789\r\n\r\n");
    take(session, NULL, NULL);
    cr_expect(zero(uint, count_in_pcap("hunter2")));
    cr_expect(zero(uint, count_in_pcap("0123456789abcdef")));
    cr_expect(eq(uint, count_in_pcap("login password=REDACTE and go on"), 1));
    cr_expect(eq(uint, count_in_pcap("Authorization: Bearer REDACTED-"), 1));
    cr_expect(eq(uint, count_in_pcap("xx\r\n\r\n"), 1)); /* the tag is shorter */
    cr_expect(report_entry_contains(path, "manifest.json", "\"rule\": \"password\""));
    cr_expect(report_entry_contains(path, "manifest.json", "\"count\": 1"));
    cr_expect(not(report_entry_contains(path, "manifest.json", "not_searched")));
    cr_expect(
        report_entry_contains(path, "traffic-index.jsonl", "\"bytes\":32,\"kept_bytes\":32}"));
    bugpack_channel *plain = open_channel(session, "b", 0);
    send_text(plain, "login password=hunter2 too");
    take(session, NULL, NULL);
    cr_expect(eq(uint, count_in_pcap("hunter2"), 1));
    cr_expect(report_entry_contains(path, "manifest.json", "\"not_searched\": true"));
    bugpack_close(session);
}

Test(redact_traffic, finds_a_secret_that_is_divided_between_segments_and_counts_it_once) {
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel *searched = open_channel(session, "a", BUGPACK_CHANNEL_REDACT_PAYLOAD);
    static char large[200000];
    memset(large, '\n', sizeof large);
    for (size_t at = 64980; at < sizeof large; at += 65000) {
        memcpy(large + at, "token=8c1f0a77b2d94e5f8c1f0a77b2d94e5f", 38);
    }
    bugpack_traffic(searched, BUGPACK_RECEIVED, 1, "large", large, sizeof large);
    take(session, NULL, NULL);
    static const char *const parts[] = {"8c1f0a", "77b2d94e5f"};
    for (size_t i = 0; i < 2; i++) {
        cr_expect(zero(uint, count_in_pcap(parts[i])));
    }
    cr_expect(eq(uint, count_in_pcap("token=REDACTED"), 3));
    cr_expect(report_entry_contains(path, "manifest.json", "\"count\": 3"));
    bugpack_close(session);
}

Test(redact_traffic, has_no_payload_where_a_channel_records_none) {
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel *silent = open_channel(session, "a", BUGPACK_CHANNEL_WITHOUT_PAYLOAD);
    send_text(silent, "login password=hunter2");
    take(session, NULL, NULL);
    cr_expect(zero(uint, count_in_pcap("login")));
    cr_expect(report_entry_contains(path, "traffic-index.jsonl",
                                    "\"bytes\":22,\"kept_bytes\":0,\"cut_by\":[\"no_payload\"]}"));
    cr_expect(
        report_entry_contains(path, "manifest.json", "1 were cut: 1 of channels without payload"));
    cr_expect(not(report_entry_contains(path, "manifest.json", "not_searched")));
    bugpack_close(session);
}

Test(redact_traffic, of_a_channel_without_payload_reaches_no_ring_and_no_filter) {
    bugpack_options options = traffic_options();
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    bugpack_channel *channel = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack *session = open_session(&options);
    with.flags = 4;
    cr_expect(eq(int, (int)bugpack_channel_open(session, "a", &with, &channel, &error),
                 BUGPACK_ERR_INVALID));
    cr_expect(eq(str, error.message, "a channel has no such flag"));
    with.flags = BUGPACK_CHANNEL_WITHOUT_PAYLOAD;
    with.filter = (bugpack_traffic_filter *)(uintptr_t)1; /* a call would end the test */
    cr_assert(zero(int, (int)bugpack_channel_open(session, "a", &with, &channel, &error)));
    send_text(channel, "login");
    bugpack_close(session);
}

Test(redact_traffic, of_a_dead_session_is_searched_too) {
    int ready[2];
    char byte;
    bugpack_options options = traffic_options();
    options.recorder_dir = dir.path;
    options.recorder_in_memory = false;
    cr_assert(pipe(ready) == 0);
    pid_t host = fork();
    if (host == 0) {
        bugpack *session = open_session(&options);
        send_text(open_channel(session, "a", BUGPACK_CHANNEL_REDACT_PAYLOAD), "password=hunter2 x");
        (void)!write(ready[1], "", 1);
        (void)pause();
    }
    cr_assert(read(ready[0], &byte, 1) == 1);
    (void)kill(host, SIGKILL);
    (void)waitpid(host, NULL, 0);
    cr_assert(bugpack_recover(dir.path, dir.path, NULL, NULL, NULL, NULL) == BUGPACK_OK);
    cr_assert(report_find_only(&dir, path, sizeof path));
    cr_expect(eq(uint, count_in_pcap("password=REDACTE x"), 1));
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static const char torn[] = "first line\0\0\0\nlogin password=hunter2hunter2\n";

static int provide_torn(bugpack_writer *writer, void *context) {
    (void)context;
    return bugpack_write(writer, torn, sizeof torn - 1);
}

static int provide_utf16(bugpack_writer *writer, void *context) {
    static const char text[] = "p\0a\0s\0s\0w\0o\0r\0d\0=\0x\0y\0";
    (void)context;
    return bugpack_write(writer, text, sizeof text - 1);
}

Test(redact_traffic, marks_entries_that_are_not_searched) {
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    cr_assert(zero(int, (int)bugpack_provide_bytes(session, "a.log", provide_torn, NULL, NULL)));
    take(session, NULL, NULL);
    size_t size = 0;
    char *text = report_read(path, "a.log", &size);
    cr_assert(ne(ptr, text, NULL));
    cr_expect(eq(ptr, memmem(text, size, "hunter2", 7), NULL)); /* a log is one with holes, too */
    cr_expect(zero(int, memcmp(text, torn, 14)));
    free(text);
    cr_expect(not(report_entry_contains(path, "manifest.json", "not_searched")));
    static const struct {
        const char *name;
        bugpack_provider *provide;
    } others[] = {{"dump", provide_torn}, {"b.log", provide_utf16}};
    for (size_t i = 0; i < 2; i++) {
        cr_assert(zero(int, (int)bugpack_provide_bytes(session, others[i].name, others[i].provide,
                                                       NULL, NULL)));
        take(session, NULL, NULL);
        cr_expect(report_entry_contains(path, "manifest.json", "\"not_searched\": true"));
        (void)bugpack_unprovide(session, others[i].name);
    }
    bugpack_close(session);
}
