#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/report_reader.h"
#include "unit/pedantic_session.h"
#include "unit/unit.h"

static bool says(const char *path, const char *entry, const char *needle) {
    return report_entry_contains(path, entry, needle);
}

Test(pedantic, names_its_report_after_the_gap_and_says_which_it_was) {
    pedantic p = pedantic_start();
    bugpack_gap(p.session, "display:unimpl:draw_rop3");
    bugpack_gap(p.session, "display:unimpl:draw_rop3");
    bugpack_pedantic_state state = pedantic_settle(&p);
    cr_expect(eq(uint, state.written_count, 1));
    cr_expect(eq(u64, state.occurrence_count, 2));
    const char *path = pedantic_path(&p, "viewer-pedantic-display-unimpl-draw_rop3-2", ".zip");
    cr_expect(says(path, "metadata.json", "\"report_type\": \"pedantic\""));
    cr_expect(says(path, "metadata.json", "\"gap_key\": \"display:unimpl:draw_rop3\""));
    cr_expect(says(path, "metadata.json", "\"channel\": \"display\""));
    cr_expect(says(path, "manifest.json", "\"complete\": true"));
    cr_expect(says(path, "logs.jsonl", "gap display:unimpl:draw_rop3: a report is taken"));
    pedantic_remove(&p);
}

static atomic_bool may_go_on;

static int wait_for_gaps(bugpack_writer *writer, void *context) {
    (void)context;
    while (!atomic_load(&may_go_on)) {
        (void)sched_yield();
    }
    return bugpack_write(writer, "{}", 2);
}

Test(pedantic, lists_the_gaps_as_they_were_at_its_own) {
    pedantic p = pedantic_start();
    cr_assert(zero(int, bugpack_provide_json(p.session, "slow.json", wait_for_gaps, NULL, NULL)));
    bugpack_gap(p.session, "a:0");
    bugpack_gap(p.session, "a:1");

    cr_assert(zero(int, bugpack_disconnect(p.session, "main", NULL)));
    bugpack_gap(p.session, "a:0");
    for (int i = 0; i < 56; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "b:%d", i);
        bugpack_gap(p.session, key);
    }
    atomic_store(&may_go_on, true);
    (void)pedantic_settle(&p);
    const char *path = pedantic_path(&p, "a-1-2", ".zip");
    char *manifest = report_read(path, "manifest.json", NULL);
    cr_expect(ne(ptr, strstr(manifest, "\"key\": \"a:0\",\n      \"count\": 1,"), NULL));
    cr_expect(ne(ptr, strstr(manifest, "\"key\": \"a:1\",\n      \"count\": 1,"), NULL));
    cr_expect(eq(ptr, strstr(manifest, "\"key\": \"b:"), NULL));
    cr_expect(eq(ptr, strstr(manifest, "\"report_type\": \"disconnect\""), NULL));
    free(manifest);
    manifest = report_read(pedantic_path(&p, "b-6-2", ".zip"), "manifest.json", NULL);
    cr_expect(ne(ptr, strstr(manifest, "\"key\": \"a:0\",\n      \"count\": 2,"), NULL));
    cr_expect(ne(ptr, strstr(manifest, "\"key\": \"b:6\""), NULL));
    cr_expect(eq(ptr, strstr(manifest, "\"key\": \"b:7\""), NULL));
    cr_expect(ne(ptr, strstr(manifest, "\"report_type\": \"disconnect\""), NULL));
    free(manifest);
    pedantic_remove(&p);
}

Test(pedantic, does_nothing_but_count_when_the_option_is_not_set) {
    pedantic p;
    bugpack_options options = pedantic_options(&p);
    options.pedantic = false;
    p.session = open_session(&options);
    bugpack_gap(p.session, "a:b:c");
    cr_expect(not(bugpack_pedantic_enable(p.session, true)));
    cr_expect(eq(uint, pedantic_settle(&p).written_count, 0));
    bugpack_gap(p.session, "a:b:c");
    cr_expect(eq(uint, pedantic_settle(&p).written_count, 1));
    cr_expect(bugpack_pedantic_enable(p.session, false));
    bugpack_gap(p.session, "a:b:d");
    char *summary = pedantic_close(&p);
    cr_expect(ne(ptr, strstr(summary, "\"reason\": \"pedantic mode was off\""), NULL));
    cr_expect(eq(sz, pedantic_count(&p, "", ".zip"), 1));
    free(summary);
    temp_dir_remove(&p.dir);
}

static bugpack_channel *open_channel(const pedantic *p, const char *name) {
    bugpack_channel *channel = NULL;
    cr_assert(zero(int, bugpack_channel_open(p->session, name, NULL, &channel, NULL)));
    return channel;
}

static bool has_bytes(const char *path, const char *needle) {
    size_t bytes = 0;
    char *pcap = report_read(path, "traffic.pcap", &bytes);
    bool is_there = pcap != NULL && memmem(pcap, bytes, needle, strlen(needle)) != NULL;
    free(pcap);
    return is_there;
}

Test(pedantic, holds_the_traffic_of_its_own_channel_up_to_the_gap) {
    pedantic p = pedantic_start();
    bugpack_channel *display = open_channel(&p, "display");
    bugpack_channel *inputs = open_channel(&p, "inputs");
    bugpack_traffic(display, BUGPACK_RECEIVED, 1, "draw", "of display", 10);
    bugpack_traffic(inputs, BUGPACK_SENT, 2, "key", "of inputs", 9);
    bugpack_gap(p.session, "display:a");
    bugpack_traffic(display, BUGPACK_RECEIVED, 1, "draw", "after it", 8);
    bugpack_gap(p.session, "nobody:b");
    (void)pedantic_settle(&p);
    const char *path = pedantic_path(&p, "display-a", ".zip");
    cr_expect(has_bytes(path, "of display"));
    cr_expect(not(has_bytes(path, "of inputs")));
    cr_expect(not(has_bytes(path, "after it")));
    cr_expect(says(path, "manifest.json", "the channel \\\"display\\\" alone"));
    path = pedantic_path(&p, "nobody-b", ".zip");
    cr_expect(has_bytes(path, "of display"));
    cr_expect(has_bytes(path, "of inputs"), "no channel has that name, so all are there");
    cr_expect(says(path, "manifest.json", "no channel is called \\\"nobody\\\""));
    pedantic_remove(&p);
}

static unsigned asked_count;

static int write_text(bugpack_writer *writer, void *context) {
    const char *text = context;
    asked_count++;
    const char *channel = bugpack_report_channel(writer);
    return (int)bugpack_printf(writer, "{\"%s\": \"%s\"}", text, channel == NULL ? "-" : channel);
}

Test(pedantic, asks_a_provider_for_the_state_of_the_gaps_channel) {
    pedantic p = pedantic_start();
    char word[] = "provided";
    cr_assert(zero(
        int, (int)bugpack_provide_json(p.session, "channel-state.json", write_text, word, NULL)));
    bugpack_gap(p.session, "display:a");
    (void)pedantic_settle(&p);
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    cr_assert(zero(int, bugpack_report(p.session, NULL, &result)));
    cr_expect(says(pedantic_path(&p, "display-a", ".zip"), "channel-state.json",
                   "\"provided\": \"display\""));
    cr_expect(says(result.path, "channel-state.json", "\"provided\": \"-\""));
    pedantic_remove(&p);
}

Test(pedantic, takes_the_state_at_the_gap_for_the_providers) {
    pedantic p = pedantic_start();
    char registered[] = "provided";
    char at_gap[] = "at the gap";
    cr_assert(zero(
        int, bugpack_provide_json(p.session, "channel-state.json", write_text, registered, NULL)));
    asked_count = 0;
    bugpack_gap_with_state(p.session, "display:a", write_text, at_gap);
    cr_expect(eq(uint, asked_count, 1), "it is asked before the call returns");
    bugpack_gap_with_state(p.session, "display:a", write_text, at_gap);
    (void)pedantic_settle(&p);
    cr_expect(eq(uint, asked_count, 1), "only for a report");
    const char *path = pedantic_path(&p, "display-a", ".zip");
    cr_expect(says(path, "channel-state.json", "\"at the gap\": \"display\""));
    pedantic_remove(&p);
}

static int write_half(bugpack_writer *writer, void *context) {
    (void)context;
    return (int)bugpack_printf(writer, "{\"half\": ");
}

Test(pedantic, loses_only_the_state_when_that_is_bad_json) {
    pedantic p = pedantic_start();
    bugpack_gap_with_state(p.session, "display:a", write_half, NULL);
    cr_expect(eq(uint, pedantic_settle(&p).written_count, 1));
    const char *path = pedantic_path(&p, "display-a", ".zip");
    cr_expect(eq(ptr, report_read(path, "channel-state.json", NULL), NULL));
    cr_expect(says(path, "manifest.json", "not valid JSON"));
    pedantic_remove(&p);
}

Test(pedantic, keeps_the_front_of_an_unknown_message) {
    pedantic p = pedantic_start();
    unsigned char message[100];
    for (unsigned i = 0; i < sizeof message; i++) {
        message[i] = (unsigned char)i;
    }
    bugpack_gap_unknown(p.session, "display", 77, message, sizeof message);
    bugpack_gap_unknown(p.session, "display", 78, message, 2);
    bugpack_gap_unknown(p.session, "display", 79, NULL, 0);
    cr_expect(eq(uint, pedantic_settle(&p).written_count, 3));
    const char *path = pedantic_path(&p, "display-unknown-77", ".zip");
    cr_expect(says(path, "metadata.json", "100 bytes without a handler; the first 64: 00 01 "));
    cr_expect(says(path, "metadata.json", " 3f\""));
    path = pedantic_path(&p, "display-unknown-78", ".zip");
    cr_expect(says(path, "metadata.json", "2 bytes without a handler: 00 01\""));
    cr_expect(eq(sz, pedantic_count(&p, "display-unknown-79", ".zip"), 1));
    pedantic_remove(&p);
}

static size_t keep(bugpack_direction direction, uint32_t type, void *bytes, size_t byte_count,
                   void *context) {
    (void)direction, (void)type, (void)bytes, (void)context;
    return byte_count;
}

/* "hunter2" in hexadecimal, in any entry that describes the gap. */
static void check_unknown(const pedantic *p, const char *name, const char *expected) {
    const char *path = pedantic_path(p, name, ".zip");
    cr_expect(says(path, "metadata.json", expected), "%s: %s", name,
              report_read(path, "metadata.json", NULL));
    cr_expect(not(says(path, "metadata.json", "75 6e 74")), "%s", name);
}

Test(pedantic, shows_no_byte_of_a_message_that_its_channel_does_not_record_as_it_is) {
    static const struct {
        const char *name;
        bugpack_channel_options options;
        const char *expected;
    } rows[] = {
        {"silent", {.flags = BUGPACK_CHANNEL_WITHOUT_PAYLOAD}, "channel \\\"silent\\\" as it is\""},
        {"filtered", {.filter = keep}, "7 bytes without a handler; reports do not"},
        {"both", {.filter = keep, .flags = BUGPACK_CHANNEL_WITHOUT_PAYLOAD}, "; reports do not"},
        {"snapped", {.snap_bytes = 1}, "7 bytes without a handler; the first 1: 68\""},
    };
    enum { row_count = sizeof rows / sizeof rows[0] };
    bugpack_channel *channels[row_count];
    pedantic p = pedantic_start();
    for (size_t i = 0; i < row_count; i++) {
        bugpack_channel_options options = rows[i].options;
        options.struct_size = sizeof options;
        cr_assert(zero(
            int, (int)bugpack_channel_open(p.session, rows[i].name, &options, &channels[i], NULL)));
        bugpack_gap_unknown(p.session, rows[i].name, 9, "hunter2", 7);
    }
    (void)pedantic_settle(&p);
    for (size_t i = 0; i < row_count; i++) {
        check_unknown(&p, rows[i].name, rows[i].expected);
    }
    bugpack_channel_close(channels[0]);
    bugpack_gap_unknown(p.session, "silent", 10, "hunter2", 7); /* closed is no permission */
    bugpack_gap_unknown(p.session, "silent", 11, "", 0);
    (void)pedantic_settle(&p);
    check_unknown(&p, "silent-unknown-10", "; reports do not");
    check_unknown(&p, "silent-unknown-11", "a message of 0 bytes without a handler\"");
    pedantic_remove(&p);
}

Test(pedantic, overwrites_secrets_in_what_it_shows_of_a_message) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    bugpack_channel *channel = NULL;
    char message[100];
    pedantic p = pedantic_start();
    options.flags = BUGPACK_CHANNEL_EXACT;
    cr_assert(zero(int, bugpack_channel_open(p.session, "exact", &options, &channel, NULL)));
    bugpack_gap_unknown(p.session, "exact", 1, "password=hunter2", 16);
    bugpack_gap_unknown(p.session, "other", 1, "password=hunter2", 16);
    memset(message, ' ', sizeof message); /* a token that begins in what is shown */
    memcpy(message + 50, "ghp_0123456789abcdefghijABCDEFGHIJ012345", 40);
    bugpack_gap_unknown(p.session, "other", 2, message, sizeof message);
    (void)pedantic_settle(&p);
    cr_expect(
        says(pedantic_path(&p, "exact-unknown-1", ".zip"), "metadata.json",
             "16 bytes without a handler: 70 61 73 73 77 6f 72 64 3d 68 75 6e 74 65 72 32\""));
    cr_expect(
        says(pedantic_path(&p, "other-unknown-1", ".zip"), "metadata.json",
             "16 bytes without a handler: 70 61 73 73 77 6f 72 64 3d 52 45 44 41 43 54 45\""));
    cr_expect(says(pedantic_path(&p, "other-unknown-2", ".zip"), "metadata.json",
                   " 20 52 45 44 41 43 54 45 44 2d 67 69 74 68 75\""));
    pedantic_remove(&p);
}

Test(pedantic, keeps_a_channels_promise_where_the_table_of_gaps_is_full) {
    pedantic p = pedantic_start();
    bugpack_channel *channel = NULL;
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.flags = BUGPACK_CHANNEL_WITHOUT_PAYLOAD;
    cr_assert(zero(int, bugpack_channel_open(p.session, "silent", &options, &channel, NULL)));
    (void)bugpack_pedantic_enable(p.session, false);
    for (unsigned i = 0; i < BUGPACK_GAP_KEYS_MAX; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "other%u:a", i);
        bugpack_gap(p.session, key);
    }
    (void)bugpack_pedantic_enable(p.session, true);
    bugpack_gap_unknown(p.session, "silent", 9, "hunter2", 7);
    (void)pedantic_settle(&p);
    check_unknown(&p, "pedantic-overflow", "channel \\\"silent\\\" as it is\"");
    pedantic_remove(&p);
}

Test(pedantic, shows_no_byte_where_the_reports_have_no_traffic) {
    for (int i = 0; i < 2; i++) {
        pedantic p;
        bugpack_options options = pedantic_options(&p);
        options.traffic_budget_bytes = i == 0 ? BUGPACK_OFF64 : 0;
        options.without_entries = i == 0 ? NULL : "traffic.pcap";
        p.session = open_session(&options);
        bugpack_gap_unknown(p.session, "display", 9, "hunter2", 7);
        (void)pedantic_settle(&p);
        check_unknown(&p, "display-unknown-9", "7 bytes without a handler; reports do not");
        pedantic_remove(&p);
    }
}

Test(pedantic, writes_where_pedantic_dir_says) {
    pedantic p;
    bugpack_options options = pedantic_options(&p);
    char dir[300];
    (void)snprintf(dir, sizeof dir, "%s/gaps", p.dir.path);
    options.pedantic_dir = dir;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_expect(eq(int, bugpack_open(&options, &p.session, &error), BUGPACK_ERR_IO));
    cr_expect(ne(ptr, strstr(error.message, "/gaps"), NULL), "%s", error.message);
    options.create_report_dir = true;
    p.session = open_session(&options);
    bugpack_gap(p.session, "a:b");
    bugpack_close(p.session);
    cr_expect(eq(sz, pedantic_count(&p, "", ".zip"), 0));
    (void)snprintf(p.dir.path + strlen(p.dir.path), sizeof p.dir.path - strlen(p.dir.path),
                   "/gaps");
    cr_expect(eq(sz, pedantic_count(&p, "viewer-pedantic-a-b-", ".zip"), 1));
    struct stat info;
    cr_assert(zero(int, stat(pedantic_path(&p, "viewer-pedantic-summary-", ".json"), &info)));
    cr_expect(eq(uint, info.st_mode & 07777, 0600));
    *strrchr(p.dir.path, '/') = '\0';
    temp_dir_remove(&p.dir);
}

Test(pedantic, leaves_no_summary_where_there_was_no_gap) {
    pedantic p = pedantic_start();
    bugpack_close(p.session);
    cr_expect(eq(sz, temp_dir_count(&p.dir), 0));
    temp_dir_remove(&p.dir);
}

Test(pedantic, is_harmless_without_a_session_a_key_or_a_channel) {
    bugpack_gap(NULL, "a:b");
    bugpack_gap_unknown(NULL, "a", 1, NULL, 0);
    cr_expect(not(bugpack_pedantic_enable(NULL, true)));
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    cr_expect(eq(int, bugpack_pedantic_get(NULL, &state), BUGPACK_ERR_INVALID));
    pedantic p = pedantic_start();
    bugpack_gap(p.session, NULL);
    bugpack_gap_unknown(p.session, NULL, 1, NULL, 0);
    state.struct_size = 4;
    cr_expect(eq(int, bugpack_pedantic_get(p.session, &state), BUGPACK_ERR_INVALID));
    cr_expect(eq(uint, pedantic_settle(&p).distinct_count, 0));
    pedantic_remove(&p);
}
