/*
 * What rules and flags do to traffic, and what the manifest says of entries that are not searched.
 */
#include "redact/redactor.h"
#include "unit/quick_session.h"
#include "unit/redacted.h"

static void setup_traffic(void) {
    setup();
    options.recorder.traffic_budget_bytes = 50 << 20;
}

TestSuite(redact_traffic, .init = setup_traffic, .fini = teardown);

static bugpack_channel *open_with(const char *name, bugpack_payload payload) {
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    bugpack_channel *channel = NULL;
    with.payload = payload;
    cr_assert(zero(int, bugpack_channel_open(session, name, &with, &channel, NULL)));
    return channel;
}

static void send_text(bugpack_channel *channel, const char *text) {
    bugpack_traffic(channel, BUGPACK_SENT, 1, "message", text, strlen(text));
}

/* How often a text is in the pcap. */
static unsigned count_in_pcap(const char *text) {
    size_t size = 0, length = strlen(text);
    char *bytes = report_read(taken.path, "traffic.pcap", &size);
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
    open_session();
    bugpack_channel *searched = open_channel("a");
    send_text(searched, "login password=hunter2 and go on");
    send_text(searched, "Authorization: Bearer 0123456789abcdef0123456789abcdef0123456789\r\n\r\n");
    take(NULL);
    cr_expect(zero(uint, count_in_pcap("hunter2")));
    cr_expect(zero(uint, count_in_pcap("0123456789abcdef")));
    cr_expect(eq(uint, count_in_pcap("login password=REDACTE and go on"), 1));
    cr_expect(eq(uint, count_in_pcap("Authorization: Bearer REDACTED-"), 1));
    cr_expect(eq(uint, count_in_pcap("xx\r\n\r\n"), 1)); /* the tag is shorter */
    cr_expect(holds("manifest.json", "\"rule\": \"password\""));
    cr_expect(holds("manifest.json", "\"count\": 1"));
    cr_expect(not(holds("manifest.json", "not_searched")));
    cr_expect(holds("traffic-index.jsonl", "\"bytes\":32,\"kept_bytes\":32}"));
    bugpack_channel *exact = open_with("b", BUGPACK_PAYLOAD_EXACT);
    send_text(exact, "login password=hunter2 too");
    bugpack_traffic(exact, BUGPACK_RECEIVED, 1, "answer", "token=8c1f0a77b2d94e5f", 22);
    send_text(searched, "login password=hunter2 and go on");
    take(NULL);
    cr_expect(eq(uint, count_in_pcap("hunter2"), 1));
    cr_expect(eq(uint, count_in_pcap("8c1f0a77b2d94e5f"), 1));
    cr_expect(eq(uint, count_in_pcap("password=REDACTE"), 2));
    cr_expect(eq(str, taken.not_searched, "traffic.pcap (b)"));
    cr_expect(holds("manifest.json", "\"not_searched\": true"));
    cr_expect(holds("manifest.json", "\"exact_channels\": [\n        \"b\"\n      ]"));
}

Test(redact_traffic, finds_a_secret_that_is_divided_between_segments_and_counts_it_once) {
    open_session();
    bugpack_channel *searched = open_channel("a");
    static char large[200000];
    memset(large, '\n', sizeof large);
    for (size_t at = 64980; at < sizeof large; at += 65000) {
        memcpy(large + at, "token=8c1f0a77b2d94e5f8c1f0a77b2d94e5f", 38);
        memcpy(large + at + 4090, "token=8c1f0a77b2d94e5f8c1f0a77b2d94e5f", 38);
    }
    bugpack_traffic(searched, BUGPACK_RECEIVED, 1, "large", large, sizeof large);
    take(NULL);
    static const char *const parts[] = {"8c1f0a", "77b2d94e5f"};
    for (size_t i = 0; i < 2; i++) {
        cr_expect(zero(uint, count_in_pcap(parts[i])));
    }
    cr_expect(eq(uint, count_in_pcap("token=REDACTED"), 6));
    cr_expect(holds("manifest.json", "\"count\": 6"));
}

/* And with what it ends with, whatever the other side has answered. */
Test(redact_traffic, finds_a_value_whose_name_ends_the_message_before) {
    open_session();
    bugpack_channel *channel = open_channel("a");
    send_text(channel, "login token=");
    bugpack_traffic(channel, BUGPACK_RECEIVED, 1, "answer", "8c1f0a77b2d94e5f", 16);
    send_text(channel, "8c1f0a77b2d94e5f, go on");
    take(NULL);
    cr_expect(eq(uint, count_in_pcap("8c1f0a77b2d94e5f"), 1));
    cr_expect(eq(uint, count_in_pcap(", go on"), 1));
}

Test(redact_traffic, finds_what_begins_a_message_whatever_the_one_before_ended_with) {
    open_session();
    bugpack_channel *channel = open_channel("a");
    send_text(channel, "abc");
    send_text(channel, "ghp_0123456789abcdefghijABCDEFGHIJ012345");
    send_text(channel, "no");
    send_text(channel, "password=hunter2");
    take(NULL);
    cr_expect(zero(uint, count_in_pcap("ghp_0123")));
    cr_expect(zero(uint, count_in_pcap("hunter2")));
}

Test(redact_traffic, ends_a_secret_with_its_message) {
    open_session();
    bugpack_channel *channel = open_channel("a");
    send_text(channel, "password=hunter2");
    send_text(channel, "POST / HTTP/1.1\r\n");
    send_text(channel, "password=hunter2 again");
    take(NULL);
    cr_expect(zero(uint, count_in_pcap("hunter2")));
    cr_expect(eq(uint, count_in_pcap("POST / HTTP/1.1"), 1));
    cr_expect(holds("manifest.json", "\"count\": 2"));
}

Test(redact_traffic, leaves_what_only_looks_like_a_name_in_binary_payload) {
    static const unsigned char bytes[] = "\x07\xd7pw=\xa4Ze\xc1ML\x7f\x1e\t\xb0\x04PW=H\x13{\xae";
    static const char field[] = "\x10\xffpw=hunter2\x00\x07\xd7",
                      short_field[] = "\xffpw=hun\x00\x07\xd7";
    open_session();
    bugpack_channel *channel = open_channel("a");
    bugpack_traffic(channel, BUGPACK_SENT, 1, "binary", bytes, sizeof bytes);
    bugpack_traffic(channel, BUGPACK_RECEIVED, 1, "field", field, sizeof field);
    bugpack_traffic(channel, BUGPACK_RECEIVED, 1, "field", short_field, sizeof short_field);
    take(NULL);
    cr_expect(eq(uint, count_in_pcap("pw=\xa4Ze\xc1ML\x7f\x1e\t\xb0\x04PW=H\x13"), 1));
    cr_expect(eq(uint, count_in_pcap("\x10\xffpw=REDACTE"), 1));
    cr_expect(eq(uint, count_in_pcap("\xffpw=hun"), 1));
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
    options.recorder.log_ring_bytes = 1 << 20;
    open_session();
    bugpack_channel *channel = open_channel("a");
    for (unsigned i = 0; i < 200; i++) {
        char secret[32], text[256];
        (void)snprintf(secret, sizeof secret, "S3cr3tPw%08xQ7", i * 2654435761u);
        (void)snprintf(text, sizeof text, "%s%s%s", forms[i % 10][0], secret, forms[i % 10][1]);
        bugpack_log(session, BUGPACK_LEVEL_INFO, "a", "%s", text);
        bugpack_traffic(channel, (bugpack_direction)(i / 10 % 2), 1, "message", text, strlen(text));
    }
    take(NULL);
    cr_expect(zero(uint, count_in_pcap("S3cr3tPw")));
    cr_expect(not(holds("logs.jsonl", "S3cr3tPw")));
}

/* The pcap of a report with logins on two channels. */
static char *take_logins(bool without_redaction, size_t *ret_size) {
    options.redaction.mode = without_redaction ? BUGPACK_REDACT_NEVER : BUGPACK_REDACT_REPORTS;
    open_session();
    for (unsigned i = 0; i < 2; i++) {
        bugpack_channel *channel = open_channel(i == 0 ? "a" : "b");
        send_text(channel, "login password=hunter2, of an odd length");
        send_text(channel, "login password=hunter22, of an even one");
    }
    take(NULL);
    bugpack_close(session);
    return report_read(taken.path, "traffic.pcap", ret_size);
}

Test(redact_traffic, of_a_report_that_was_taken_is_searched_while_it_is_as_bugpack_writes_it) {
    size_t size = 0, clean_size = 0;
    CLEANUP(free_memory)
    char *bytes = take_logins(true, &size), *clean = take_logins(false, &clean_size);
    bp_buffer found;
    bp_rule_set *set = redacted_set(NULL);
    bp_redactor *redactor = bp_redactor_new(set);
    cr_assert(ne(ptr, memmem(bytes, size, "hunter22", 8), NULL));
    cr_assert(eq(sz, clean_size, size));
    cr_expect(eq(int, bp_redact_form_of("x/traffic.pcap"), BP_REDACT_FRAMES));
    for (size_t piece_bytes = 7; piece_bytes <= size + 7; piece_bytes += size) {
        redacted(redactor, BP_REDACT_FRAMES, bytes, size, piece_bytes, &found);
        cr_expect(bp_redactor_is_searched(redactor));
        cr_assert(eq(sz, found.size, size));
        for (size_t at = 24, next; at < size; at = next) { /* all but the times is the same */
            next = at + 16 + (unsigned char)clean[at + 8];
            cr_assert(zero(int, memcmp(found.data + at + 8, clean + at + 8, next - at - 8)));
        }
        bp_buffer_release(&found);
    }
    /* No byte was captured, or the protocol is another one than TCP. */
    const size_t odd[] = {24 + 8, 24 + 16 + 14 + 9};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        char was = bytes[odd[i]];
        bytes[odd[i]] = 0;
        redacted(redactor, BP_REDACT_FRAMES, bytes, size, SIZE_MAX, &found);
        cr_expect(eq(sz, found.size, size));
        cr_expect(not(bp_redactor_is_searched(redactor)), "%zu", odd[i]);
        bp_buffer_release(&found);
        bytes[odd[i]] = was;
    }
    uint32_t state = 7;
    for (unsigned round = 0; round < 300; round++) {
        state = state * 1664525u + 1013904223u;
        size_t cut = size - (state >> 8) % 32, at = (state >> 16) % cut;
        char was = bytes[at];
        bytes[at] = (char)state;
        redacted(redactor, BP_REDACT_FRAMES, bytes, cut, round % 2 == 0 ? SIZE_MAX : 16, &found);
        cr_expect(eq(sz, found.size, cut));
        cr_expect(memmem(found.data, cut, "password=hunter2", 16) == NULL ||
                  !bp_redactor_is_searched(redactor));
        bp_buffer_release(&found);
        bytes[at] = was;
    }
    bp_redactor_free(redactor);
    bp_rule_set_drop(set);
}

Test(redact_traffic, has_no_payload_where_a_channel_records_none) {
    open_session();
    bugpack_channel *silent = open_with("a", BUGPACK_PAYLOAD_NONE);
    send_text(silent, "login password=hunter2");
    take(NULL);
    cr_expect(zero(uint, count_in_pcap("login")));
    cr_expect(
        holds("traffic-index.jsonl", "\"bytes\":22,\"kept_bytes\":0,\"cut_by\":[\"no_payload\"]}"));
    cr_expect(holds("manifest.json", "1 shortened: 1 of channels without payload"));
    cr_expect(not(holds("manifest.json", "not_searched")));
}

Test(redact_traffic, of_a_channel_without_payload_reaches_no_ring_and_no_filter) {
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    bugpack_channel *channel = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    open_session();
    with.payload = 3;
    cr_expect(
        eq(int, bugpack_channel_open(session, "a", &with, &channel, &error), BUGPACK_ERR_INVALID));
    cr_expect(eq(str, error.message, "payload: 3 is no bugpack_payload"));
    with.payload = BUGPACK_PAYLOAD_NONE;
    with.filter = (bugpack_filter_callback *)(uintptr_t)1; /* a call would end the test */
    cr_assert(zero(int, bugpack_channel_open(session, "a", &with, &channel, &error)));
    send_text(channel, "login");
}

static void send_password(void) {
    send_text(open_channel("a"), "password=hunter2 x");
}

Test(redact_traffic, of_a_dead_session_is_searched_too) {
    leave_dead_session(send_password);
    recover_and_find();
    cr_expect(eq(uint, count_in_pcap("password=REDACTE x"), 1));
}

static const char torn[] = "first line\0\0\0\nlogin password=hunter2hunter2\n";

static int provide_torn(bugpack_writer *writer, void *context) {
    return bugpack_write(writer, torn, sizeof torn - 1);
}

static int provide_utf16(bugpack_writer *writer, void *context) {
    static const char text[] = "p\0a\0s\0s\0w\0o\0r\0d\0=\0x\0y\0";
    return bugpack_write(writer, text, sizeof text - 1);
}

Test(redact_traffic, marks_entries_that_are_not_searched) {
    open_session();
    provide("a.log", BUGPACK_PROVIDE_BYTES, provide_torn, NULL);
    take(NULL);
    size_t size = 0;
    char *text = report_read(taken.path, "a.log", &size);
    cr_assert(ne(ptr, text, NULL));
    cr_expect(eq(ptr, memmem(text, size, "hunter2", 7), NULL)); /* a log is one with holes, too */
    cr_expect(zero(int, memcmp(text, torn, 14)));
    free(text);
    cr_expect(not(holds("manifest.json", "not_searched")));
    static const struct {
        const char *name;
        bugpack_provider_callback *provide;
    } others[] = {{"dump", provide_torn}, {"b.log", provide_utf16}};
    for (size_t i = 0; i < 2; i++) {
        provide(others[i].name, BUGPACK_PROVIDE_BYTES, others[i].provide, NULL);
        take(NULL);
        cr_expect(holds("manifest.json", "\"not_searched\": true"));
        (void)bugpack_unprovide(session, others[i].name);
    }
}
