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

Test(redact_traffic, overwrites_secrets_unless_the_channel_is_exact) {
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel *searched = open_channel(session, "a", 0);
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
    bugpack_channel *exact = open_channel(session, "b", BUGPACK_CHANNEL_EXACT);
    send_text(exact, "login password=hunter2 too");
    bugpack_traffic(exact, BUGPACK_RECEIVED, 1, "answer", "token=8c1f0a77b2d94e5f", 22);
    send_text(searched, "login password=hunter2 and go on");
    bugpack_report_result result;
    take(session, NULL, &result);
    cr_expect(eq(uint, count_in_pcap("hunter2"), 1));
    cr_expect(eq(uint, count_in_pcap("8c1f0a77b2d94e5f"), 1));
    cr_expect(eq(uint, count_in_pcap("password=REDACTE"), 2));
    cr_expect(eq(str, result.not_searched, "traffic.pcap (b)"));
    cr_expect(report_entry_contains(path, "manifest.json", "\"not_searched\": true"));
    cr_expect(report_entry_contains(path, "manifest.json",
                                    "\"exact_channels\": [\n        \"b\"\n      ]"));
    bugpack_close(session);
}

Test(redact_traffic, overwrites_secrets_in_packets_of_ipv6) {
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    bugpack_channel *channel = NULL;
    with.is_ipv6 = true;
    cr_assert(zero(int, (int)bugpack_channel_open(session, "a", &with, &channel, NULL)));
    send_text(channel, "login password=hunter2 and go on");
    take(session, NULL, NULL);
    cr_expect(eq(uint, count_in_pcap("login password=REDACTE and go on"), 1));
    bugpack_close(session);
}

Test(redact_traffic, finds_a_secret_that_is_divided_between_segments_and_counts_it_once) {
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel *searched = open_channel(session, "a", 0);
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

/* Both ends of what a message is divided into, and what may lie between them. */
Test(redact_traffic, finds_a_secret_that_is_divided_between_messages) {
    static const char text[] = "login token=8c1f0a77b2d94e5f8c1f0a77b2d94e5f, go on";
    static const char filler[30000] = {'-'};
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel *other = open_channel(session, "other", 0);
    bugpack_channel *channel = open_channel(session, "a", 0);
    for (size_t cut = 1; cut < sizeof text - 1; cut++) {
        bugpack_traffic(channel, BUGPACK_SENT, 1, "first", text, cut);
        if (cut <= 12) { /* the secret has not begun: an answer may come in between */
            bugpack_traffic(channel, BUGPACK_RECEIVED, 1, "answer", "wait", 4);
        }
        bugpack_traffic(other, BUGPACK_SENT, 1, "other", filler, sizeof filler);
        bugpack_traffic(channel, BUGPACK_SENT, 1, "rest", text + cut, sizeof text - 1 - cut);
    }
    take(session, NULL, NULL);
    size_t size = 0;
    char *bytes = report_read(path, "traffic.pcap", &size);
    cr_assert(ne(ptr, bytes, NULL));
    for (size_t at = 0; at + 4 < 32; at++) { /* no four digits of it are left */
        char part[5] = "";
        memcpy(part, text + 12 + at, 4);
        cr_expect(eq(ptr, memmem(bytes, size, part, 4), NULL), "%s", part);
    }
    free(bytes);
    cr_expect(report_entry_contains(path, "manifest.json", "\"count\": 50"));
    bugpack_close(session);
}

Test(redact_traffic, finds_what_begins_a_message_whatever_the_one_before_ended_with) {
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel *channel = open_channel(session, "a", 0);
    send_text(channel, "abc");
    send_text(channel, "ghp_0123456789abcdefghijABCDEFGHIJ012345");
    send_text(channel, "no");
    send_text(channel, "password=hunter2");
    take(session, NULL, NULL);
    cr_expect(zero(uint, count_in_pcap("ghp_0123")));
    cr_expect(zero(uint, count_in_pcap("hunter2")));
    bugpack_close(session);
}

Test(redact_traffic, ends_a_secret_with_its_message_where_the_other_side_has_answered) {
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel *channel = open_channel(session, "a", 0);
    send_text(channel, "password=hunter2hunter2");
    bugpack_traffic(channel, BUGPACK_RECEIVED, 1, "answer", "ok", 2);
    send_text(channel, "POST / HTTP/1.1\r\n");
    take(session, NULL, NULL);
    cr_expect(zero(uint, count_in_pcap("hunter2")));
    cr_expect(eq(uint, count_in_pcap("POST / HTTP/1.1"), 1));
    bugpack_close(session);
}

Test(redact_traffic, leaves_what_only_looks_like_a_name_in_binary_payload) {
    static const unsigned char bytes[] = "\x07\xd7pw=\xa4Ze\xc1ML\x7f\x1e\t\xb0\x04PW=H\x13{\xae";
    static const char field[] = "\x10\xffpw=hunter2\x00\x07\xd7";
    const bugpack_options options = traffic_options();
    bugpack *session = open_session(&options);
    bugpack_channel *channel = open_channel(session, "a", 0);
    bugpack_traffic(channel, BUGPACK_SENT, 1, "binary", bytes, sizeof bytes);
    bugpack_traffic(channel, BUGPACK_RECEIVED, 1, "field", field, sizeof field);
    take(session, NULL, NULL);
    cr_expect(eq(uint, count_in_pcap("pw=\xa4Ze\xc1ML\x7f\x1e\t\xb0\x04PW=H\x13"), 1));
    cr_expect(eq(uint, count_in_pcap("\x10\xffpw=REDACTE"), 1));
    bugpack_close(session);
}

/* The same 200 passwords, which both have to hide. */
Test(redact_traffic, hides_in_the_traffic_what_it_hides_in_the_log) {
    static const char *const forms[][2] = {
        {"login password=", " and go on"},
        {"{\"user\":\"bob\",\"password\":\"", "\"}"},
        {"POST / HTTP/1.1\r\nAuthorization: Basic ", "\r\n\r\n"},
        {"GET /?access_token=", "&x=1 HTTP/1.1\r\n"},
        {"postgres://bob:", "@db/shop"},
        {"Cookie: session=", "; theme=dark\r\n"},
        {"{\"msg\":\"{\\\"api_key\\\":\\\"", "\\\"}\"}"},
        {"<password>", "</password>"},
        {"mysql --password ", " -h db"},
        {"DB_PASSWORD='", "'"},
    };
    bugpack_options options = traffic_options();
    options.log_ring_bytes = 1 << 20;
    bugpack *session = open_session(&options);
    bugpack_channel *channel = open_channel(session, "a", 0);
    for (unsigned i = 0; i < 200; i++) {
        char secret[32], text[256];
        (void)snprintf(secret, sizeof secret, "S3cr3tPw%08xQ7", i * 2654435761u);
        (void)snprintf(text, sizeof text, "%s%s%s", forms[i % 10][0], secret, forms[i % 10][1]);
        bugpack_log(session, BUGPACK_LEVEL_INFO, "a", "%s", text);
        bugpack_traffic(channel, (bugpack_direction)(i / 10 % 2), 1, "message", text, strlen(text));
    }
    take(session, NULL, NULL);
    cr_expect(zero(uint, count_in_pcap("S3cr3tPw")));
    cr_expect(not(report_entry_contains(path, "logs.jsonl", "S3cr3tPw")));
    bugpack_close(session);
}

/* A pcap as it is on its way to a report, in pieces. */
static void search_pcap(bp_redactor *redactor, const char *bytes, size_t size, size_t piece_bytes,
                        bp_buffer *out) {
    redacted(redactor, BP_REDACT_PCAP, bytes, size, piece_bytes, out);
    cr_expect(bp_redactor_is_searched(redactor));
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

Test(redact_traffic, survives_packets_that_are_none_and_changes_no_length) {
    bugpack_options options = traffic_options();
    options.without_redaction = true;
    bugpack *session = open_session(&options);
    bugpack_channel *channel = open_channel(session, "a", 0);
    for (unsigned i = 0; i < 1000; i++) {
        send_text(channel, i % 3 == 0 ? "login password=hunter2" : " and go on, token=8c1f0a77b2");
    }
    take(session, NULL, NULL);
    size_t size = 0;
    char *bytes = report_read(path, "traffic.pcap", &size);
    bp_buffer whole, pieces;
    bp_rule_set *set = redacted_set(NULL);
    bp_redactor *redactor = bp_redactor_new(set);
    search_pcap(redactor, bytes, size, SIZE_MAX, &whole);
    search_pcap(redactor, bytes, size, 7, &pieces);
    cr_expect(eq(ptr, memmem(whole.data, whole.size, "hunter2", 7), NULL));
    cr_assert(eq(sz, whole.size, size));
    cr_assert(eq(sz, pieces.size, size));
    bp_buffer_release(&whole);
    bp_buffer_release(&pieces);
    uint32_t state = 7;
    for (unsigned round = 0; round < 30; round++) {
        size_t cut = size - next_random(&state) % size / 2;
        char *damaged = malloc(cut);
        memcpy(damaged, bytes, cut);
        for (unsigned i = 0; i < 1 + round * 20; i++) {
            size_t range = i % 2 == 0 ? 2000 : cut;
            damaged[next_random(&state) % range % cut] = (char)next_random(&state);
        }
        search_pcap(redactor, damaged, cut, round % 2 == 0 ? SIZE_MAX : 4096, &whole);
        cr_expect(eq(sz, whole.size, cut));
        /* What a reader would still see as text is searched, whatever the headers say. */
        size_t left = 0;
        for (const char *at = whole.data; (at = memmem(at, whole.size - (size_t)(at - whole.data),
                                                       "password=hunter2", 16)) != NULL;
             at++) {
            left++;
        }
        cr_expect(zero(sz, left), "round %u", round);
        bp_buffer_release(&whole);
        free(damaged);
    }
    bp_redactor_free(redactor);
    bp_rule_set_drop(set);
    free(bytes);
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
        report_entry_contains(path, "manifest.json", "1 shortened: 1 of channels without payload"));
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
    with.flags = BUGPACK_CHANNEL_WITHOUT_PAYLOAD | BUGPACK_CHANNEL_EXACT;
    cr_expect(eq(int, (int)bugpack_channel_open(session, "a", &with, &channel, &error),
                 BUGPACK_ERR_INVALID));
    cr_expect(eq(str, error.message, "a channel cannot be exact and without payload at once"));
    with.flags = BUGPACK_CHANNEL_WITHOUT_PAYLOAD;
    with.filter = (bugpack_filter_callback *)(uintptr_t)1; /* a call would end the test */
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
        send_text(open_channel(session, "a", 0), "password=hunter2 x");
        (void)!write(ready[1], "", 1);
        (void)pause();
    }
    cr_assert(read(ready[0], &byte, 1) == 1);
    (void)kill(host, SIGKILL);
    (void)waitpid(host, NULL, 0);
    cr_assert(
        bugpack_recover(&(bugpack_recover_options){.struct_size = sizeof(bugpack_recover_options),
                                                   .recorder_dir = dir.path,
                                                   .report_dir = dir.path},
                        NULL) == BUGPACK_OK);
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
        bugpack_provider_callback *provide;
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
