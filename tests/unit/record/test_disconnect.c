/*
 * Disconnect reports: what the cause says, and which of many disconnects leads to a report.
 */
#include <dirent.h>

#include "unit/auto_session.h"

TestSuite(disconnect, .init = auto_setup, .fini = teardown);

Test(disconnect, report_says_why_and_how_every_channel_stood) {
    open_session();
    bugpack_channel *main_channel = open_channel("main"), *display = open_channel("display");
    bugpack_traffic(main_channel, BUGPACK_SENT, 1, NULL, "hello", 5);
    bugpack_traffic(main_channel, BUGPACK_SENT, 1, NULL, "again", 5);
    bugpack_traffic(display, BUGPACK_RECEIVED, 2, NULL, "pixels!", 7);
    bugpack_disconnect_details details = BUGPACK_DISCONNECT_DETAILS_INIT;
    details.error_kind = "io";
    details.keepalive_fired = true;
    cr_assert(
        zero(int, bugpack_disconnect(session, "main", "reset \xff by \"peer\"\n", &details, NULL)));
    bugpack_traffic(display, BUGPACK_RECEIVED, 2, NULL, "too late for the cause", 22);
    close_and_find();
    cr_assert(ne(ptr, strstr(taken.path, "/viewer-disconnect-main-20"), NULL), "%s", taken.path);
    static const char *const parts[] = {
        "\"channel\": \"main\"",
        "\"error\": \"reset \xee\xbf\xbf by \\\"peer\\\"\\n\"",
        "\"error_kind\": \"io\"",
        "\"keepalive_fired\": true",
        "\"cooldown_ms\": 60000",
        "\"suppressed_before\": 0",
        "\"name\": \"main\",\n      \"sent\": {\n        \"messages\": 2,\n        \"bytes\": 10,\n"
        "        \"last\": \"20",
        "\"received\": {\n        \"messages\": 0,\n        \"bytes\": 0\n      }\n    },\n    {\n"
        "      \"name\": \"display\"",
        "\"messages\": 1,\n        \"bytes\": 7,\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        cr_assert(holds("disconnect-cause.json", parts[i]), "%s", parts[i]);
    }
    cr_assert(holds("metadata.json", "\"report_type\": \"disconnect\""));
    cr_assert(holds("metadata.json", "\"channel\": \"main\""));
    cr_assert(holds("manifest.json", "\"written\": true,\n"));
}

Test(disconnect, within_the_cool_down_is_counted_in_the_ledger) {
    open_session();
    cr_assert(zero(int, bugpack_disconnect(session, "main", "ECONNRESET", NULL, NULL)));
    take(NULL);
    cr_assert(eq(int, bugpack_disconnect(session, "main", NULL, NULL, NULL), BUGPACK_ERR_BUSY));
    cr_assert(eq(int, bugpack_disconnect(session, "inputs", NULL, NULL, NULL), BUGPACK_ERR_BUSY));
    bp_trigger_entry entry = auto_count(BP_REPORT_DISCONNECT, "main");
    cr_assert(eq(u64, entry.count, 2));
    cr_assert(eq(u64, entry.written_count, 1));
    take(NULL);
    cr_assert(holds("manifest.json", "\"key\": \"inputs\""));
    cr_assert(holds(
        "manifest.json",
        "\"reports\": 0,\n      \"reason\": \"a disconnect report was taken shortly before\""));
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), 3));
}

Test(disconnect, that_could_not_be_written_starts_no_cool_down) {
    char parked[300];
    open_session();
    (void)snprintf(parked, sizeof parked, "%s.parked", dir.path);
    cr_assert(zero(int, rename(dir.path, parked)));
    cr_assert(zero(int, bugpack_disconnect(session, "main", NULL, NULL, NULL)));
    cr_assert(eq(int, try_report(NULL), BUGPACK_ERR_IO));
    cr_assert(zero(int, rename(parked, dir.path)));
    cr_assert(zero(int, bugpack_disconnect(session, "main", NULL, NULL, NULL)));
    close_and_find();
    cr_assert(holds("disconnect-cause.json", "\"suppressed_before\": 1"));
    cr_assert(holds("manifest.json", "\"count\": 2,\n"));
    cr_assert(holds("manifest.json", "\"reason\": \"a report could not be written"));
}

Test(disconnect, while_another_is_pending_is_suppressed) {
    static auto_gate gate;
    open_session();
    auto_add_gate(&gate);
    cr_assert(zero(int, bugpack_disconnect(session, "main", NULL, NULL, NULL)));
    auto_wait_for_worker(&gate);
    cr_assert(eq(int, bugpack_disconnect(session, "main", NULL, NULL, NULL), BUGPACK_ERR_BUSY));
    atomic_store(&gate.may_go, true);
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
}

Test(disconnect, that_finds_the_queue_full_is_not_pending) {
    static auto_gate gate;
    open_session();
    auto_add_gate(&gate);
    cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
    auto_wait_for_worker(&gate);
    for (unsigned i = 0; i < BUGPACK_REPORT_QUEUE_MAX; i++) {
        cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
    }
    cr_assert(eq(int, bugpack_disconnect(session, "main", NULL, NULL, NULL), BUGPACK_ERR_BUSY));
    atomic_store(&gate.may_go, true);
    (void)bugpack_flush(session, UINT32_MAX, NULL);
    cr_assert(zero(int, bugpack_disconnect(session, "main", NULL, NULL, NULL)));
}

static void remove_reports(void) {
    DIR *listing = opendir(dir.path);
    cr_assert(listing != NULL);
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (entry->d_name[0] != '.') {
            cr_assert(zero(int, unlinkat(dir.fd, entry->d_name, 0)));
        }
    }
    (void)closedir(listing);
}

Test(disconnect, report_tells_of_those_that_came_while_the_one_before_was_taken) {
    static auto_gate gate;
    options.limits.disconnect_cooldown_ms = 1;
    open_session();
    auto_add_gate(&gate);
    cr_assert(zero(int, bugpack_disconnect(session, "main", NULL, NULL, NULL)));
    auto_wait_for_worker(&gate);
    cr_assert(eq(int, bugpack_disconnect(session, "inputs", NULL, NULL, NULL), BUGPACK_ERR_BUSY));
    atomic_store(&gate.may_go, true);
    take(NULL);
    remove_reports();
    (void)usleep(2000);
    cr_assert(zero(int, bugpack_disconnect(session, "later", NULL, NULL, NULL)));
    close_and_find();
    cr_assert(holds("disconnect-cause.json", "\"suppressed_before\": 1"));
}

Test(disconnect, without_a_cool_down_takes_each) {
    options.limits.disconnect_cooldown_ms = BUGPACK_OFF;
    open_session();
    cr_assert(zero(int, bugpack_disconnect(session, "a", NULL, NULL, NULL)));
    cr_assert(zero(int, bugpack_disconnect(session, "b", NULL, NULL, NULL)));
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), 2));
}

/* The order of a session whose link was lost: the loss that says why is the second one. */
Test(disconnect, that_comes_meanwhile_is_listed_with_its_error_and_traffic) {
    static auto_gate gate;
    open_session();
    bugpack_channel *channels[3];
    static const char *const names[] = {"input", "display", "sound"};
    for (size_t i = 0; i < 3; i++) {
        cr_assert(zero(int, bugpack_channel_open(session, names[i], NULL, &channels[i], NULL)));
        bugpack_traffic(channels[i], BUGPACK_SENT, 1, NULL, "hello", 5);
    }
    auto_add_gate(&gate);
    cr_assert(zero(int, bugpack_disconnect(session, "input", "EOF", NULL, NULL)));
    auto_wait_for_worker(&gate);
    cr_assert(eq(int, bugpack_disconnect(session, "display", "ECONNRESET", NULL, NULL),
                 BUGPACK_ERR_BUSY));
    atomic_store(&gate.may_go, true);
    close_and_find();
    static const char *const parts[] = {
        "\"error\": \"EOF\"", "\"others\": [\n",
        "\"channel\": \"display\",\n      \"error\": \"ECONNRESET\""};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        cr_assert(holds("disconnect-cause.json", parts[i]), "%s", parts[i]);
    }
    cr_expect(holds("traffic-index.jsonl", "\"input\""));
    cr_expect(holds("traffic-index.jsonl", "\"display\""));
    cr_expect(not(holds("traffic-index.jsonl", "\"sound\"")));
}

Test(disconnect, beyond_the_cap_is_counted_in_the_ledger) {
    options.limits.disconnect_cooldown_ms = BUGPACK_OFF;
    options.limits.disconnect_cap = 2;
    open_session();
    cr_assert(zero(int, bugpack_disconnect(session, "a", NULL, NULL, NULL)));
    cr_assert(zero(int, bugpack_disconnect(session, "b", NULL, NULL, NULL)));
    cr_assert(eq(int, bugpack_disconnect(session, "c", NULL, NULL, NULL), BUGPACK_ERR_BUSY));
    bp_trigger_entry entry = auto_count(BP_REPORT_DISCONNECT, "c");
    cr_assert(eq(u64, entry.count, 1));
    cr_assert(
        eq(str, entry.reason, "as many disconnect reports as disconnect_cap allows were taken"));
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), 2));
}

Test(disconnect, lists_the_newest_of_too_many_channels) {
    enum { most = 2000 };
    char name[32];
    open_session();
    for (unsigned i = 0; i <= most; i++) {
        (void)snprintf(name, sizeof name, "channel %u", i);
        (void)open_channel(name);
    }
    cr_assert(zero(int, bugpack_disconnect(session, "main", NULL, NULL, NULL)));
    close_and_find();
    cr_expect(not(holds("disconnect-cause.json", "\"channel 0\"")));
    cr_expect(holds("disconnect-cause.json", "\"channel 1\""));
    cr_expect(holds("disconnect-cause.json", name));
}

Test(disconnect, refuses_what_names_no_channel_and_bounds_what_it_counts) {
    open_session();
    char name[BUGPACK_CHANNEL_MAX_BYTES + 2];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    bugpack_error error = BUGPACK_ERROR_INIT;
    const bugpack_disconnect_details details = {.struct_size = 7};
    const int invalid = (int)BUGPACK_ERR_INVALID;
    cr_assert(eq(int, bugpack_disconnect(session, "main", NULL, &details, &error), invalid));
    cr_expect(ne(ptr, strstr(error.message, "struct_size of bugpack_disconnect_details"), NULL));
    cr_assert(eq(int, bugpack_disconnect(session, NULL, NULL, NULL, NULL), invalid));
    cr_assert(eq(int, bugpack_disconnect(session, "", NULL, NULL, NULL), invalid));
    cr_assert(eq(int, bugpack_disconnect(session, name, NULL, NULL, &error), invalid));
    cr_expect(eq(str, error.message, "channel must have at most 64 bytes"));
    cr_assert(eq(int, bugpack_disconnect(NULL, "main", NULL, NULL, NULL), invalid));
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "hostile %u", i);
        (void)bugpack_disconnect(session, name, NULL, NULL, NULL);
    }
    bp_trigger_entry rest = auto_count(BP_REPORT_DISCONNECT, "");
    cr_assert(eq(u64, rest.count, 1000 - 64));
    bugpack_close(session);
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
}
