#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "unit/pedantic_session.h"

TestSuite(pedantic, .init = pedantic_setup, .fini = teardown);

Test(pedantic, names_its_report_after_the_gap_and_says_which_it_was) {
    open_session();
    bugpack_gap(session, "display:unimpl:draw_rop3");
    bugpack_gap(session, "display:unimpl:draw_rop3");
    bugpack_pedantic_state state = pedantic_settle();
    cr_expect(eq(uint, state.written_count, 1));
    cr_expect(eq(u64, state.occurrence_count, 2));
    const char *path = pedantic_path("viewer-pedantic-display-unimpl-draw_rop3-2", ".zip");
    cr_expect(says(path, "metadata.json", "\"report_type\": \"pedantic\""));
    cr_expect(says(path, "metadata.json", "\"gap_key\": \"display:unimpl:draw_rop3\""));
    cr_expect(says(path, "metadata.json", "\"channel\": \"display\""));
    cr_expect(says(path, "manifest.json", "\"complete\": true"));
    cr_expect(says(path, "logs.jsonl", "gap display:unimpl:draw_rop3: a report is taken"));
}

static atomic_bool may_go_on;

static int wait_for_gaps(bugpack_writer *writer, void *context) {
    while (!atomic_load(&may_go_on)) {
        (void)sched_yield();
    }
    return bugpack_write(writer, "{}", 2);
}

Test(pedantic, lists_the_gaps_as_they_were_at_its_own) {
    open_session();
    provide("slow.json", BUGPACK_PROVIDE_JSON, wait_for_gaps, NULL);
    bugpack_gap(session, "a:0");
    bugpack_gap(session, "a:1");

    cr_assert(zero(int, bugpack_disconnect(session, "main", NULL, NULL, NULL)));
    bugpack_gap(session, "a:0");
    for (int i = 0; i < 56; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "b:%d", i);
        bugpack_gap(session, key);
    }
    atomic_store(&may_go_on, true);
    (void)pedantic_settle();
    const char *path = pedantic_path("a-1-2", ".zip");
    char *manifest = report_read(path, "manifest.json", NULL);
    cr_expect(ne(ptr, strstr(manifest, "\"key\": \"a:0\",\n      \"count\": 1,"), NULL));
    cr_expect(ne(ptr, strstr(manifest, "\"key\": \"a:1\",\n      \"count\": 1,"), NULL));
    cr_expect(eq(ptr, strstr(manifest, "\"key\": \"b:"), NULL));
    cr_expect(eq(ptr, strstr(manifest, "\"report_type\": \"disconnect\""), NULL));
    free(manifest);
    manifest = report_read(pedantic_path("b-6-2", ".zip"), "manifest.json", NULL);
    cr_expect(ne(ptr, strstr(manifest, "\"key\": \"a:0\",\n      \"count\": 2,"), NULL));
    cr_expect(ne(ptr, strstr(manifest, "\"key\": \"b:6\""), NULL));
    cr_expect(eq(ptr, strstr(manifest, "\"key\": \"b:7\""), NULL));
    cr_expect(ne(ptr, strstr(manifest, "\"report_type\": \"disconnect\""), NULL));
    free(manifest);
}

Test(pedantic, does_nothing_but_count_when_the_option_is_not_set) {
    options.pedantic.is_enabled = false;
    open_session();
    bugpack_gap(session, "a:b:c");
    cr_expect(not(bugpack_pedantic_enable(session, true)));
    cr_expect(eq(uint, pedantic_settle().written_count, 0));
    bugpack_gap(session, "a:b:c");
    cr_expect(eq(uint, pedantic_settle().written_count, 1));
    cr_expect(bugpack_pedantic_enable(session, false));
    bugpack_gap(session, "a:b:d");
    CLEANUP(free_memory) char *summary = pedantic_close();
    cr_expect(ne(ptr, strstr(summary, "\"reason\": \"pedantic mode was off\""), NULL));
    cr_expect(eq(sz, pedantic_count("", ".zip"), 1));
}

Test(pedantic, holds_the_traffic_of_its_own_channel_up_to_the_gap) {
    open_session();
    bugpack_channel *display = open_channel("display");
    bugpack_channel *inputs = open_channel("inputs");
    bugpack_traffic(display, BUGPACK_RECEIVED, 1, "draw", "of display", 10);
    bugpack_traffic(inputs, BUGPACK_SENT, 2, "key", "of inputs", 9);
    bugpack_gap(session, "display:a");
    bugpack_traffic(display, BUGPACK_RECEIVED, 1, "draw", "after it", 8);
    bugpack_gap(session, "nobody:b");
    (void)pedantic_settle();
    const char *path = pedantic_path("display-a", ".zip");
    cr_expect(pcap_holds(path, "of display"));
    cr_expect(not(pcap_holds(path, "of inputs")));
    cr_expect(not(pcap_holds(path, "after it")));
    cr_expect(says(path, "manifest.json", "the channel \\\"display\\\" alone"));
    path = pedantic_path("nobody-b", ".zip");
    cr_expect(pcap_holds(path, "of display"));
    cr_expect(pcap_holds(path, "of inputs"), "no channel has that name, so all are there");
    cr_expect(says(path, "manifest.json", "no channel is called \\\"nobody\\\""));
}

static unsigned asked_count;

static int write_text(bugpack_writer *writer, void *context) {
    const char *text = context;
    asked_count++;
    const char *channel = bugpack_report_channel(writer);
    return (int)bugpack_printf(writer, "{\"%s\": \"%s\"}", text, channel == NULL ? "-" : channel);
}

Test(pedantic, asks_a_provider_for_the_state_of_the_gaps_channel) {
    open_session();
    char word[] = "provided";
    provide("channel-state.json", BUGPACK_PROVIDE_JSON, write_text, word);
    bugpack_gap(session, "display:a");
    (void)pedantic_settle();
    take(NULL);
    cr_expect(says(pedantic_path("display-a", ".zip"), "channel-state.json",
                   "\"provided\": \"display\""));
    cr_expect(says(taken.path, "channel-state.json", "\"provided\": \"-\""));
}

Test(pedantic, takes_the_state_at_the_gap_for_the_providers) {
    open_session();
    char registered[] = "provided";
    char at_gap[] = "at the gap";
    provide("channel-state.json", BUGPACK_PROVIDE_JSON, write_text, registered);
    asked_count = 0;
    bugpack_gap_with_state(session, "display:a", write_text, at_gap);
    cr_expect(eq(uint, asked_count, 1), "it is asked before the call returns");
    bugpack_gap_with_state(session, "display:a", write_text, at_gap);
    (void)pedantic_settle();
    cr_expect(eq(uint, asked_count, 1), "only for a report");
    const char *path = pedantic_path("display-a", ".zip");
    cr_expect(says(path, "channel-state.json", "\"at the gap\": \"display\""));
}

static int write_half(bugpack_writer *writer, void *context) {
    return (int)bugpack_printf(writer, "{\"half\": ");
}

Test(pedantic, loses_only_the_state_when_that_is_bad_json) {
    open_session();
    bugpack_gap_with_state(session, "display:a", write_half, NULL);
    cr_expect(eq(uint, pedantic_settle().written_count, 1));
    const char *path = pedantic_path("display-a", ".zip");
    cr_expect(eq(ptr, report_read(path, "channel-state.json", NULL), NULL));
    cr_expect(says(path, "manifest.json", "not valid JSON"));
}

Test(pedantic, keeps_the_front_of_an_unknown_message) {
    open_session();
    unsigned char message[100];
    for (unsigned i = 0; i < sizeof message; i++) {
        message[i] = (unsigned char)i;
    }
    bugpack_gap_unknown(session, "display", 77, message, sizeof message);
    bugpack_gap_unknown(session, "display", 78, message, 2);
    bugpack_gap_unknown(session, "display", 79, NULL, 0);
    cr_expect(eq(uint, pedantic_settle().written_count, 3));
    const char *path = pedantic_path("display-unknown-77", ".zip");
    cr_expect(says(path, "metadata.json", "100 bytes without a handler; the first 64: 00 01 "));
    cr_expect(says(path, "metadata.json", " 3f\""));
    path = pedantic_path("display-unknown-78", ".zip");
    cr_expect(says(path, "metadata.json", "2 bytes without a handler: 00 01\""));
    cr_expect(eq(sz, pedantic_count("display-unknown-79", ".zip"), 1));
}

static size_t keep(bugpack_direction direction, uint32_t type, void *bytes, size_t byte_count,
                   void *context) {
    (void)direction, (void)type, (void)bytes, (void)context;
    return byte_count;
}

/* "hunter2" in hexadecimal, in any entry that describes the gap. */
static void check_unknown(const char *name, const char *expected) {
    const char *path = pedantic_path(name, ".zip");
    cr_expect(says(path, "metadata.json", expected), "%s: %s", name,
              report_read(path, "metadata.json", NULL));
    cr_expect(not(says(path, "metadata.json", "75 6e 74")), "%s", name);
}

Test(pedantic, shows_no_byte_of_a_message_that_its_channel_does_not_record_as_it_is) {
    static const struct {
        const char *name;
        bugpack_channel_options with;
        const char *expected;
    } rows[] = {
        {"silent", {.payload = BUGPACK_PAYLOAD_NONE}, "channel \\\"silent\\\" as it is\""},
        {"filtered", {.filter = keep}, "7 bytes without a handler; reports do not"},
        {"both", {.filter = keep, .payload = BUGPACK_PAYLOAD_NONE}, "; reports do not"},
        {"snapped", {.snap_bytes = 1}, "7 bytes without a handler; the first 1: 68\""},
    };
    enum { row_count = sizeof rows / sizeof rows[0] };
    bugpack_channel *channels[row_count];
    open_session();
    for (size_t i = 0; i < row_count; i++) {
        bugpack_channel_options with = rows[i].with;
        with.struct_size = sizeof with;
        channels[i] = open_channel_with(rows[i].name, &with);
        bugpack_gap_unknown(session, rows[i].name, 9, "hunter2", 7);
    }
    (void)pedantic_settle();
    for (size_t i = 0; i < row_count; i++) {
        check_unknown(rows[i].name, rows[i].expected);
    }
    bugpack_channel_close(channels[0]);
    bugpack_gap_unknown(session, "silent", 10, "hunter2", 7); /* closed is no permission */
    bugpack_gap_unknown(session, "silent", 11, "", 0);
    (void)pedantic_settle();
    check_unknown("silent-unknown-10", "; reports do not");
    check_unknown("silent-unknown-11", "a message of 0 bytes without a handler\"");
}

Test(pedantic, overwrites_secrets_in_what_it_shows_of_a_message) {
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    char message[100];
    open_session();
    with.payload = BUGPACK_PAYLOAD_EXACT;
    (void)open_channel_with("exact", &with);
    bugpack_gap_unknown(session, "exact", 1, "password=hunter2", 16);
    bugpack_gap_unknown(session, "other", 1, "password=hunter2", 16);
    memset(message, ' ', sizeof message); /* a token that begins in what is shown */
    memcpy(message + 50, "ghp_0123456789abcdefghijABCDEFGHIJ012345", 40);
    bugpack_gap_unknown(session, "other", 2, message, sizeof message);
    (void)pedantic_settle();
    cr_expect(
        says(pedantic_path("exact-unknown-1", ".zip"), "metadata.json",
             "16 bytes without a handler: 70 61 73 73 77 6f 72 64 3d 68 75 6e 74 65 72 32\""));
    cr_expect(
        says(pedantic_path("other-unknown-1", ".zip"), "metadata.json",
             "16 bytes without a handler: 70 61 73 73 77 6f 72 64 3d 52 45 44 41 43 54 45\""));
    cr_expect(says(pedantic_path("other-unknown-2", ".zip"), "metadata.json",
                   " 20 52 45 44 41 43 54 45 44 2d 67 69 74 68 75\""));
}

Test(pedantic, keeps_a_channels_promise_where_the_table_of_gaps_is_full) {
    open_session();
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    with.payload = BUGPACK_PAYLOAD_NONE;
    (void)open_channel_with("silent", &with);
    (void)bugpack_pedantic_enable(session, false);
    for (unsigned i = 0; i < BUGPACK_GAP_KEYS_MAX; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "other%u:a", i);
        bugpack_gap(session, key);
    }
    (void)bugpack_pedantic_enable(session, true);
    bugpack_gap_unknown(session, "silent", 9, "hunter2", 7);
    (void)pedantic_settle();
    check_unknown("pedantic-overflow", "channel \\\"silent\\\" as it is\"");
}

Test(pedantic, shows_no_byte_where_the_reports_have_no_traffic) {
    static const char *const names[] = {"display-unknown-0", "display-unknown-1"};
    for (unsigned i = 0; i < 2; i++) {
        options.recorder.traffic_budget_bytes = i == 0 ? BUGPACK_OFF : 0;
        options.without_entries = i == 0 ? NULL : "traffic.pcap";
        open_session();
        bugpack_gap_unknown(session, "display", i, "hunter2", 7);
        (void)pedantic_settle();
        check_unknown(names[i], "7 bytes without a handler; reports do not");
        bugpack_close(session);
    }
}

Test(pedantic, writes_where_pedantic_dir_says) {
    char gaps[300];
    (void)snprintf(gaps, sizeof gaps, "%s/gaps", dir.path);
    options.pedantic.dir = gaps;
    cr_expect(eq(int, bugpack_open(&options, &session, &failure), BUGPACK_ERR_IO));
    cr_expect(ne(ptr, strstr(failure.message, "/gaps"), NULL), "%s", failure.message);
    options.create_report_dir = true;
    open_session();
    bugpack_gap(session, "a:b");
    bugpack_close(session);
    cr_expect(eq(sz, pedantic_count("", ".zip"), 0));
    (void)snprintf(dir.path + strlen(dir.path), sizeof dir.path - strlen(dir.path), "/gaps");
    cr_expect(eq(sz, pedantic_count("viewer-pedantic-a-b-", ".zip"), 1));
    struct stat info;
    cr_assert(zero(int, stat(pedantic_path("viewer-pedantic-summary-", ".json"), &info)));
    cr_expect(eq(uint, info.st_mode & 07777, 0600));
    *strrchr(dir.path, '/') = '\0';
}

Test(pedantic, leaves_no_summary_where_there_was_no_gap) {
    open_session();
    bugpack_close(session);
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
}

static void keep_diagnostic(bugpack_level level, const char *text, void *context) {
    (void)level;
    (void)snprintf(context, BUGPACK_ERROR_MESSAGE_BYTES, "%s", text);
}

Test(pedantic, tells_the_host_why_there_is_no_summary) {
    char gaps[300], told[BUGPACK_ERROR_MESSAGE_BYTES] = "";
    (void)snprintf(gaps, sizeof gaps, "%s/gaps", dir.path);
    options.pedantic.dir = gaps;
    options.pedantic.is_enabled = false;
    options.on_diagnostic = keep_diagnostic;
    options.on_diagnostic_context = told;
    open_session();
    bugpack_gap(session, "a:b");
    bugpack_close(session);
    cr_expect(ne(ptr, strstr(told, "the summary of the gaps was not written: "), NULL), "%s", told);
    cr_expect(ne(ptr, strstr(told, "/gaps"), NULL), "%s", told);
}

Test(pedantic, is_harmless_without_a_session_a_key_or_a_channel) {
    bugpack_gap(NULL, "a:b");
    bugpack_gap_unknown(NULL, "a", 1, NULL, 0);
    cr_expect(not(bugpack_pedantic_enable(NULL, true)));
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    cr_expect(eq(int, bugpack_pedantic_get(NULL, &state, NULL), BUGPACK_ERR_INVALID));
    open_session();
    bugpack_gap(session, NULL);
    bugpack_gap_unknown(session, NULL, 1, NULL, 0);
    state.struct_size = 4;
    cr_expect(eq(int, bugpack_pedantic_get(session, &state, NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(uint, pedantic_settle().distinct_count, 0));
}
