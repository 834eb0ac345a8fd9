/*
 * What a handle is good for when its session is closed, or being closed. With threads at work:
 * tests/stress/close_threads.c.
 */
#include <stdatomic.h>
#include <time.h>

#include "unit/quick_session.h"

static void setup_in_memory(void) {
    setup();
    options.recorder.is_in_memory = true;
    options.sample_window_ms = BUGPACK_OFF;
}

TestSuite(close, .init = setup_in_memory, .fini = teardown, .timeout = 60);

static int provide_nothing(bugpack_writer *writer, void *context) {
    return bugpack_printf(writer, "text");
}

Test(close, refuses_every_call_afterwards) {
    open_session();
    bugpack_channel *channel = NULL;
    bugpack_channel *late = NULL;
    cr_assert(zero(int, bugpack_channel_open(session, "display", NULL, &channel, NULL)));
    bugpack_close(session);
    bugpack_error error = BUGPACK_ERROR_INIT;
    const int closed = BUGPACK_ERR_CLOSED;
    cr_expect(eq(int, try_report(NULL), closed));
    cr_expect(eq(int, taken.status, closed));
    cr_expect(eq(int, bugpack_report_async(session, NULL, NULL, NULL, NULL), closed));
    cr_expect(eq(
        int, bugpack_provide(session, "a.txt", BUGPACK_PROVIDE_TEXT, provide_nothing, NULL, &error),
        closed));
    cr_expect(eq(int, error.status, closed));
    cr_expect(eq(
        int, (int)bugpack_provide_file(session, "b.txt", "/dev/null", BUGPACK_FILE_WHOLE, 0, NULL),
        closed));
    cr_expect(not(bugpack_unprovide(session, "a.txt")));
    cr_expect(eq(int, bugpack_channel_open(session, "late", NULL, &late, NULL), closed));
    cr_expect(zero(ptr, late));
    cr_expect(zero(ptr, bugpack_log_stream(session, BUGPACK_LEVEL_INFO, NULL, NULL)));
    bugpack_log(session, BUGPACK_LEVEL_FATAL, "late", "%s", "nowhere");
    bugpack_notify(session, BUGPACK_LEVEL_ERROR, "late", NULL, "nowhere");
    bugpack_traffic(channel, BUGPACK_SENT, 1, NULL, "nowhere", 7);
    bugpack_close(session);
    cr_expect(zero(sz, temp_dir_count(&dir)), "no report was taken");
}

/* The table of gaps must still be there: the address sanitizer sees when it is not. */
Test(close, lets_new_gaps_come_afterwards) {
    options.recorder.is_in_memory = true;
    options.sample_window_ms = BUGPACK_OFF;
    open_session();
    bugpack_close(session);
    bugpack_gap(session, "display:unimpl:never_seen_before");
    bugpack_gap_unknown(session, "inputs", 77, NULL, 0);
    cr_expect(zero(sz, temp_dir_count(&dir)), "no report was taken");
}

static size_t count_and_keep(bugpack_direction direction, uint32_t type, void *bytes,
                             size_t byte_count, void *context) {
    ++*(unsigned *)context;
    return byte_count;
}

Test(close, ends_the_calls_of_a_filter) {
    static char message[3 * BUGPACK_TRAFFIC_FILTER_STACK_BYTES];
    open_session();
    CLEANUP(free_memory) unsigned *call_count = calloc(1, sizeof *call_count);
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    with.filter = count_and_keep;
    with.filter_context = call_count;
    bugpack_channel *channel = NULL;
    cr_assert(zero(int, bugpack_channel_open(session, "display", &with, &channel, NULL)));
    bugpack_traffic(channel, BUGPACK_SENT, 1, NULL, message, 64);
    bugpack_traffic(channel, BUGPACK_SENT, 1, NULL, message, sizeof message);
    cr_expect(eq(u32, *call_count, 2));
    bugpack_close(session);
    bugpack_traffic(channel, BUGPACK_SENT, 1, NULL, message, 64);
    bugpack_traffic(channel, BUGPACK_SENT, 1, NULL, message, sizeof message);
    cr_expect(eq(u32, *call_count, 2));
}

static size_t close_in_filter(bugpack_direction direction, uint32_t type, void *bytes,
                              size_t byte_count, void *context) {
    bugpack_close(context);
    return byte_count;
}

Test(close, does_nothing_inside_a_filter_of_the_session) {
    open_session();
    bugpack_channel_options with = BUGPACK_CHANNEL_OPTIONS_INIT;
    with.filter = close_in_filter;
    with.filter_context = session;
    bugpack_channel *channel = NULL;
    cr_assert(zero(int, bugpack_channel_open(session, "display", &with, &channel, NULL)));
    bugpack_traffic(channel, BUGPACK_SENT, 1, NULL, "message", 7);
    cr_expect(zero(int, bugpack_report(session, NULL, NULL, NULL)), "it is still open");
    bugpack_close(session);
}

/* Two sessions, of which one is closed while a callback of each waits for the other's. */
struct knot {
    bugpack_session *closed, *other;
    atomic_bool is_untied;
};

static void pause_briefly(void) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void wait_for_other(const bugpack_report_result *result, void *context) {
    struct knot *knot = context;
    while (!atomic_load(&knot->is_untied)) {
        pause_briefly();
    }
}

static void close_a_second_time(const bugpack_report_result *result, void *context) {
    struct knot *knot = context;
    while (bugpack_provide(knot->closed, NULL, BUGPACK_PROVIDE_TEXT, provide_nothing, NULL, NULL) !=
           BUGPACK_ERR_CLOSED) {
        pause_briefly(); /* INVALID until the first close has begun */
    }
    bugpack_close(knot->closed); /* the first close waits for what only we can untie */
    atomic_store(&knot->is_untied, true);
}

Test(close, does_not_wait_for_another_close_in_a_callback) {
    struct knot knot;
    open_session();
    knot.closed = session;
    open_session();
    knot.other = session;
    knot.is_untied = false;
    cr_assert(zero(int, bugpack_report_async(knot.closed, NULL, wait_for_other, &knot, NULL)));
    cr_assert(zero(int, bugpack_report_async(knot.other, NULL, close_a_second_time, &knot, NULL)));
    bugpack_close(knot.closed);
    cr_expect(atomic_load(&knot.is_untied));
    bugpack_close(knot.other);
    cr_expect(eq(sz, temp_dir_count(&dir), 2));
}
