#include <poll.h>
#include <stdatomic.h>

#include "unit/quick_session.h"

/* No test waits for as long as this: it is what a cancel gets a report out of. */
static const uint32_t for_ever_ms = 600000;

/* The rings of these are of no interest. */
static void setup_in_memory(void) {
    setup();
    options.recorder.is_in_memory = true;
}

static bugpack_event next_event(void) {
    struct pollfd waited = {.fd = bugpack_events_fd(session, NULL), .events = POLLIN};
    cr_assert(eq(int, poll(&waited, 1, -1), 1));
    bugpack_event event = BUGPACK_EVENT_INIT;
    cr_assert(bugpack_next_event(session, &event));
    return event;
}

/* Reads on until the report has ended. */
static bugpack_event last_event(uint64_t ticket) {
    bugpack_event event;
    do {
        event = next_event();
    } while (event.ticket != ticket || event.kind < BUGPACK_EVENT_WRITTEN);
    return event;
}

static uint64_t trigger(void) {
    uint64_t ticket = 0;
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.ret_ticket = &ticket;
    cr_assert(zero(int, bugpack_report_async(session, &request, NULL, NULL, NULL)));
    cr_assert(gt(u64, ticket, 0));
    return ticket;
}

TestSuite(events, .init = setup_in_memory, .fini = teardown);

Test(events, tell_a_report_from_its_start_to_its_path) {
    open_session();
    cr_assert(ge(int, bugpack_events_fd(session, NULL), 0));
    cr_assert(eq(int, bugpack_events_fd(session, NULL), bugpack_events_fd(session, NULL)));
    uint64_t ticket = trigger();
    bugpack_event event = next_event();
    cr_assert(eq(int, event.kind, BUGPACK_EVENT_STARTED));
    cr_assert(eq(u64, event.ticket, ticket));
    cr_assert(eq(str, event.report_type, "bugreport"));
    uint32_t percent = 0, progress_count = 0;
    for (event = next_event(); event.kind == BUGPACK_EVENT_PROGRESS;
         event = next_event(), progress_count++) {
        cr_assert(gt(u32, event.percent, percent));
        percent = event.percent;
    }
    cr_assert(eq(int, event.kind, BUGPACK_EVENT_WRITTEN), "%s", event.error.message);
    cr_assert(gt(u32, progress_count, 0));
    cr_assert(eq(u32, event.percent, 100));
    cr_assert(zero(int, access(event.path, R_OK)));
}

Test(events, before_the_first_call_for_the_descriptor_are_dropped) {
    open_session();
    bugpack_event event = BUGPACK_EVENT_INIT;
    cr_assert(zero(int, bugpack_report(session, NULL, NULL, NULL)));
    cr_assert(not(bugpack_next_event(session, &event)));
    cr_assert(ge(int, bugpack_events_fd(session, NULL), 0));
    cr_assert(not(bugpack_next_event(session, &event)));
    cr_assert(zero(int, bugpack_report(session, NULL, NULL, NULL)));
    cr_assert(bugpack_next_event(session, &event));
    event.struct_size = 7;
    cr_assert(not(bugpack_next_event(session, &event)));
    cr_assert(eq(int, bugpack_events_fd(NULL, NULL), -1));
    cr_assert(not(bugpack_next_event(NULL, &event)));
}

/* What the callback saw. Read after bugpack_close, or after the report was waited for. */
struct heard {
    bugpack_session *session;
    bugpack_event last;
    unsigned started_count, progress_count, ended_count;
    bool runs_backwards, must_cancel;
    bugpack_status cancelled; /* of the bugpack_cancel in the callback */
};

static void hear(const bugpack_event *event, void *context) {
    struct heard *heard = context;
    heard->runs_backwards = heard->runs_backwards || (heard->last.ticket == event->ticket &&
                                                      event->percent < heard->last.percent);
    heard->started_count += event->kind == BUGPACK_EVENT_STARTED;
    heard->progress_count += event->kind == BUGPACK_EVENT_PROGRESS;
    heard->ended_count += event->kind >= BUGPACK_EVENT_WRITTEN;
    heard->last = *event;
    if (heard->must_cancel && event->kind == BUGPACK_EVENT_PROGRESS) {
        heard->cancelled = bugpack_cancel(heard->session, event->ticket, NULL);
    }
}

Test(events, reach_the_callback_in_order_and_end_once) {
    struct heard heard = {0};
    options.on_event = hear;
    options.on_event_context = &heard;
    options.sample_window_ms = 200;
    open_session();
    cr_assert(zero(int, bugpack_report(session, NULL, NULL, NULL)));
    bugpack_close(session);
    cr_assert(eq(uint, heard.started_count, 1));
    cr_assert(eq(uint, heard.ended_count, 1));
    cr_assert(ge(uint, heard.progress_count, 4));
    cr_assert(not(heard.runs_backwards));
    cr_assert(eq(int, heard.last.kind, BUGPACK_EVENT_WRITTEN));
}

Test(events, tell_of_a_failure_with_its_sentence) {
    struct heard heard = {0};
    options.on_event = hear;
    options.on_event_context = &heard;
    open_session();
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.output_path = "/nonexistent/report.zip";
    cr_assert(eq(int, bugpack_report(session, &request, NULL, NULL), BUGPACK_ERR_IO));
    bugpack_close(session);
    cr_assert(eq(int, heard.last.kind, BUGPACK_EVENT_FAILED));
    cr_assert(eq(int, heard.last.error.status, BUGPACK_ERR_IO));
    cr_assert(not(zero(ptr, strstr(heard.last.error.message, "/nonexistent"))));
    cr_assert(eq(str, heard.last.path, ""));
}

TestSuite(cancel, .init = setup_in_memory, .fini = teardown);

Test(cancel, takes_a_report_back_in_its_window_and_leaves_nothing_behind) {
    options.sample_window_ms = for_ever_ms;
    open_session();
    (void)bugpack_events_fd(session, NULL);
    uint64_t ticket = trigger();
    cr_assert(eq(int, next_event().kind, BUGPACK_EVENT_STARTED));
    cr_assert(zero(int, bugpack_cancel(session, ticket, NULL)));
    bugpack_event event = last_event(ticket);
    cr_assert(eq(int, event.kind, BUGPACK_EVENT_FAILED));
    cr_assert(eq(int, event.error.status, BUGPACK_ERR_CANCELLED));
    cr_assert(eq(str, event.error.message, "the report was cancelled"));
    cr_assert(zero(sz, temp_dir_count(&dir)));
}

Test(cancel, works_from_within_the_callback) {
    struct heard heard = {.must_cancel = true};
    options.sample_window_ms = for_ever_ms;
    options.on_event = hear;
    options.on_event_context = &heard;
    open_session();
    heard.session = session;
    cr_assert(eq(int, try_report(NULL), BUGPACK_ERR_CANCELLED));
    cr_assert(eq(str, taken.error.message, "the report was cancelled"));
    bugpack_close(session);
    cr_assert(zero(int, heard.cancelled));
    cr_assert(eq(uint, heard.progress_count, 1));
    cr_assert(zero(sz, temp_dir_count(&dir)));
}

/* A provider that says when it is inside, and stays until it is told to go. */
struct stay {
    atomic_bool is_inside, may_go, has_left;
};

static int stay_inside(bugpack_writer *writer, void *context) {
    struct stay *stay = context;
    atomic_store(&stay->is_inside, true);
    while (!atomic_load(&stay->may_go)) {
        (void)poll(NULL, 0, 1);
    }
    atomic_store(&stay->has_left, true);
    return (int)bugpack_printf(writer, "late");
}

Test(cancel, leaves_a_provider_to_itself_which_close_waits_for) {
    struct stay stay = {false, false, false};
    options.limits.provider_timeout_ms = for_ever_ms;
    open_session();
    (void)bugpack_events_fd(session, NULL);
    provide("a.txt", BUGPACK_PROVIDE_TEXT, stay_inside, &stay);
    uint64_t ticket = trigger();
    uint64_t behind = trigger();
    while (!atomic_load(&stay.is_inside)) {
        (void)poll(NULL, 0, 1);
    }
    /* One that waits ends first, and was never begun; the provider is inside all the time. */
    cr_assert(zero(int, bugpack_cancel(session, behind, NULL)));
    for (bugpack_event event = next_event(); event.kind != BUGPACK_EVENT_FAILED;
         event = next_event()) {
        cr_assert(eq(u64, event.ticket, ticket));
    }
    cr_assert(eq(int, bugpack_cancel(session, behind, NULL), BUGPACK_ERR_NO_TICKET));
    cr_assert(zero(int, bugpack_cancel(session, 0, NULL)));
    cr_assert(eq(int, last_event(ticket).error.status, BUGPACK_ERR_CANCELLED));
    cr_assert(not(atomic_load(&stay.has_left)));
    atomic_store(&stay.may_go, true);
    bugpack_close(session);
    cr_assert(atomic_load(&stay.has_left));
    cr_assert(zero(sz, temp_dir_count(&dir)));
}

Test(cancel, refuses_a_ticket_that_is_not_on_its_way) {
    open_session();
    cr_assert(eq(int, bugpack_cancel(session, 0, NULL), BUGPACK_ERR_NO_TICKET));
    cr_assert(eq(int, bugpack_cancel(session, 1, NULL), BUGPACK_ERR_NO_TICKET));
    cr_assert(zero(int, bugpack_report(session, NULL, NULL, NULL)));
    cr_assert(eq(int, bugpack_cancel(session, 1, NULL), BUGPACK_ERR_NO_TICKET));
    cr_assert(ne(int, bugpack_cancel(NULL, 0, NULL), BUGPACK_OK));
}
