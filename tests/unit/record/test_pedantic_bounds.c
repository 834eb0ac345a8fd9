#include <sys/stat.h>

#include "unit/pedantic_session.h"

static size_t count_of(const char *text, const char *needle) {
    size_t count = 0;
    while (text != NULL && (text = strstr(text, needle)) != NULL) {
        count++;
        text++;
    }
    return count;
}

/* The length of a report's metrics window, in milliseconds. */
static unsigned long window_of(const char *path) {
    static const char key[] = "\"sample_window_ms\": ";
    char *metrics = report_read(path, "runtime-metrics.json", NULL);
    const char *found = metrics != NULL ? strstr(metrics, key) : NULL;
    unsigned long window_ms = found != NULL ? strtoul(found + sizeof key - 1, NULL, 10) : 0;
    free(metrics);
    return window_ms;
}

/* 20 keys of each of so many channels. */
static void meet(unsigned channel_count) {
    char key[64];
    for (unsigned i = 0; i < channel_count * 20; i++) {
        (void)snprintf(key, sizeof key, "channel-%u:unimpl:%u", i / 20, i % 20);
        bugpack_gap(session, key);
    }
}

TestSuite(pedantic_bounds, .init = pedantic_setup, .fini = teardown);

Test(pedantic_bounds, fifty_of_sixty_gaps_at_once_are_written_and_ten_are_told_of) {
    open_session();
    meet(3);
    bugpack_pedantic_state state = pedantic_settle();
    cr_expect(eq(uint, state.cap, 50));
    cr_expect(eq(uint, state.written_count, 50));
    cr_expect(eq(uint, state.distinct_count, 60));
    cr_expect(eq(sz, pedantic_count("viewer-pedantic-channel-", ".zip"), 50));
    meet(3);
    take(NULL);
    char *manifest = report_read(taken.path, "manifest.json", NULL);
    char *log = report_read(taken.path, "logs.jsonl", NULL);
    char *notifications = report_read(taken.path, "notifications.json", NULL);
    const char told[] = "has its 50 reports of gaps: further ones are only counted";
    cr_expect(eq(sz, count_of(manifest, "\"report_type\": \"pedantic\""), 60));
    cr_expect(eq(sz, count_of(manifest, "\"written\": false"), 10));
    cr_expect(eq(sz, count_of(manifest, "\"count\": 2,"), 60));
    cr_expect(eq(sz, count_of(manifest, "the session takes at most 50 reports of gaps"), 10));
    cr_expect(eq(sz, count_of(log, told), 1));
    cr_expect(eq(sz, count_of(notifications, told), 1));
    free(manifest);
    free(log);
    free(notifications);
    CLEANUP(free_memory) char *summary = pedantic_close();
    cr_expect(eq(sz, count_of(summary, "\"key\": \"channel-"), 60));
    cr_expect(eq(sz, count_of(summary, "\"written\": true"), 50));
    cr_expect(eq(sz, count_of(summary, "\"suppressed\": 10"), 1));
}

Test(pedantic_bounds, a_reports_own_gap_counts_as_written_in_it) {
    open_session();
    bugpack_gap(session, "a:b");
    (void)pedantic_settle();
    const char *path = pedantic_path("pedantic-a-b", ".zip");
    cr_expect(says(path, "manifest.json", "\"written\": true,\n      \"reports\": 1"));
    cr_expect(not(says(path, "manifest.json", "on its way")));
}

Test(pedantic_bounds, close_writes_what_still_waits) {
    options.sample_window_ms = 600000; /* nobody waits for it at the end */
    open_session();
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.timeout_ms = 200; /* holds the worker until the close has begun */
    cr_assert(zero(int, bugpack_report_async(session, &request, NULL, NULL, NULL)));
    meet(1);
    char *summary = pedantic_close();
    cr_expect(eq(sz, pedantic_count("channel-0-unimpl", ".zip"), 20));
    cr_expect(eq(sz, count_of(summary, "\"written\": true"), 20));
    free(summary);
    /* They shared one window, which was cut. */
    const char *path = pedantic_path("channel-0-unimpl-19", ".zip");
    cr_expect(ge(ulong, window_of(path), 250));
    cr_expect(says(path, "manifest.json", "the session was closed before the window had passed"));
}

/* Each has all of the window, also those that come last: nobody waits for another one. */
Test(pedantic_bounds, gaps_at_once_share_one_window_that_begins_at_their_triggers) {
    options.sample_window_ms = 300;
    open_session();
    meet(1);
    (void)pedantic_settle();
    for (unsigned i = 0; i < 20; i += 19) {
        char part[40];
        (void)snprintf(part, sizeof part, "channel-0-unimpl-%u-", i);
        const char *path = pedantic_path(part, ".zip");
        cr_expect(ge(ulong, window_of(path), 300));
        cr_expect(says(path, "manifest.json", "the window begins ")); /* later on a busy machine */
    }
}

Test(pedantic_bounds, a_person_finds_room_in_the_queue_during_a_storm) {
    options.sample_window_ms = 50;
    open_session();
    meet(2);
    for (int i = 0; i < BUGPACK_REPORT_QUEUE_MAX / 2; i++) {
        cr_expect(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
    }
    bugpack_close(session);
    cr_expect(eq(sz, pedantic_count("viewer-bugreport-", ".zip"), BUGPACK_REPORT_QUEUE_MAX / 2));
    cr_expect(eq(sz, pedantic_count("viewer-pedantic-channel-", ".zip"), 40));
}

Test(pedantic_bounds, a_failed_write_is_tried_again_once_the_directory_can_be_written) {
    char gaps[300];
    char moved[300];
    (void)snprintf(gaps, sizeof gaps, "%s/gaps", dir.path);
    (void)snprintf(moved, sizeof moved, "%s/moved", dir.path);
    cr_assert(zero(int, mkdir(gaps, 0700)));
    options.pedantic.dir = gaps;
    options.pedantic.cap = 1;
    open_session();
    cr_assert(zero(int, rename(gaps, moved))); /* root writes to read-only ones as well */
    bugpack_gap(session, "a:b");
    bugpack_pedantic_state state = pedantic_settle();
    cr_expect(zero(uint, state.written_count));
    bugpack_gap(session, "a:b");
    (void)pedantic_settle();
    cr_assert(zero(int, rename(moved, gaps)));
    bugpack_gap(session, "a:b");
    state = pedantic_settle();
    cr_expect(eq(uint, state.written_count, 1), "failed ones do not use up the cap");
    take(NULL);
    CLEANUP(free_memory) char *log = report_read(taken.path, "logs.jsonl", NULL);
    cr_expect(eq(sz, count_of(log, "no report of gap a:b: "), 2));
}

Test(pedantic_bounds, a_channels_share_is_the_hosts_to_choose) {
    options.pedantic.channel_cap = 5;
    open_session();
    meet(2);
    cr_expect(eq(uint, pedantic_settle().written_count, 10));
    take(NULL);
    cr_expect(says(taken.path, "notifications.json", "channel channel-0 has its 5 reports"));
    CLEANUP(free_memory) char *summary = pedantic_close();
    cr_expect(eq(sz, count_of(summary, "one channel takes at most 5 reports of gaps"), 30));
}

Test(pedantic_bounds, hostile_keys_stay_inside_the_directory_and_the_json) {
    open_session();
    CLEANUP(free_memory) char *longest = malloc(10241);
    memset(longest, '/', 10240);
    longest[10240] = '\0';
    const char *const keys[] = {"../../x", "\xff\xfe", "a\nb\r\x1b[31m", longest,
                                "",        ":",        "%s%n",           "-rf"};
    size_t key_count = sizeof keys / sizeof keys[0];
    for (size_t i = 0; i < key_count; i++) {
        bugpack_gap(session, keys[i]);
    }
    cr_expect(eq(uint, pedantic_settle().written_count, (unsigned)key_count));
    cr_expect(eq(sz, pedantic_count("viewer-pedantic-..-..-x-2", ".zip"), 1));
    cr_expect(eq(sz, pedantic_count("viewer-pedantic-unnamed-2", ".zip"), 1));
    cr_expect(eq(sz, pedantic_count("viewer-pedantic---2", ".zip"), 1));
    CLEANUP(free_memory) char *summary = pedantic_close();
    cr_expect(eq(sz, temp_dir_count(&dir), key_count + 2), "the summary, and the count of reports");
    cr_expect(eq(sz, count_of(summary, "\"key\": \"a\\nb\\r\\u001b[31m\""), 1));
    cr_expect(eq(sz, count_of(summary, "\"key\": \"\xee\xbf\xbf\xee\xbf\xbe\""), 1));
}
