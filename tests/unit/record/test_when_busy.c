#include <poll.h>
#include <stdatomic.h>

#include "unit/quick_session.h"

/* A session whose first report stays inside a provider until it may go on. */
static struct {
    uint64_t ticket; /* of the report that is held */
    atomic_bool is_inside, may_go;
} held;

static int hold(bugpack_writer *writer, void *context) {
    atomic_store(&held.is_inside, true);
    while (!atomic_load(&held.may_go)) {
        (void)poll(NULL, 0, 1);
    }
    return (int)bugpack_printf(writer, "held");
}

/* What a report callback was told. */
struct told {
    unsigned count;
    bugpack_report_result result;
};

static void tell(const bugpack_report_result *result, void *context) {
    struct told *told = context;
    told->count++;
    told->result = *result;
}

static void hold_first(struct told *told) {
    options.recorder.is_in_memory = true;
    options.limits.provider_timeout_ms = 600000;
    open_session();
    provide("a.txt", BUGPACK_PROVIDE_TEXT, hold, NULL);
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.ret_ticket = &held.ticket;
    cr_assert(zero(int, bugpack_report_async(session, &request, tell, told, NULL)));
    while (!atomic_load(&held.is_inside)) {
        (void)poll(NULL, 0, 1);
    }
}

static void open_held(bugpack_when_busy when_busy, struct told *told) {
    options.when_busy = when_busy;
    hold_first(told);
}

/* Lets it go on; all reports have ended when it returns. */
static void close_held(void) {
    atomic_store(&held.may_go, true);
    bugpack_close(session);
}

SESSION_SUITE(when_busy);

Test(when_busy, queues_and_says_busy_when_the_queue_is_full) {
    struct told first = {0}, others = {0};
    open_held(BUGPACK_WHEN_BUSY_QUEUE, &first);
    for (unsigned i = 0; i < BUGPACK_REPORT_QUEUE_MAX; i++) {
        cr_assert(zero(int, bugpack_report_async(session, NULL, tell, &others, NULL)));
    }
    cr_assert(eq(int, try_report(NULL), BUGPACK_ERR_BUSY));
    cr_assert(eq(str, taken.error.message, "no report was taken: 8 wait already"));
    close_held();
    cr_assert(eq(uint, others.count, BUGPACK_REPORT_QUEUE_MAX));
    cr_assert(eq(sz, temp_dir_count(&dir), 1 + BUGPACK_REPORT_QUEUE_MAX));
}

Test(when_busy, refuses_a_second_one_and_takes_the_next) {
    struct told first = {0}, second = {0};
    open_held(BUGPACK_WHEN_BUSY_REFUSE, &first);
    cr_assert(eq(int, try_report(NULL), BUGPACK_ERR_BUSY));
    cr_assert(eq(str, taken.error.message, "no report was taken: another one is under way"));
    cr_assert(eq(int, bugpack_report_async(session, NULL, tell, &second, NULL), BUGPACK_ERR_BUSY));
    cr_assert(zero(int, bugpack_cancel(session, held.ticket, NULL)));
    bugpack_status status;
    do { /* refused until the first has ended */
        (void)poll(NULL, 0, 1);
        status = bugpack_report_async(session, NULL, tell, &second, NULL);
    } while (status == BUGPACK_ERR_BUSY);
    cr_assert(zero(int, status));
    close_held();
    cr_assert(eq(int, first.result.status, BUGPACK_ERR_CANCELLED));
    cr_assert(eq(uint, second.count, 1));
    cr_assert(zero(int, second.result.status));
}

Test(when_busy, coalesces_into_the_one_under_way_and_tells_each_caller_once) {
    struct told first = {0}, second = {0}, third = {0};
    open_held(BUGPACK_WHEN_BUSY_COALESCE, &first);
    uint64_t ticket = 0;
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.ret_ticket = &ticket;
    cr_assert(zero(int, bugpack_report_async(session, &request, tell, &second, NULL)));
    cr_assert(zero(int, bugpack_report_async(session, NULL, tell, &third, NULL)));
    cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
    cr_assert(eq(u64, ticket, held.ticket));
    close_held();
    cr_assert(eq(uint, first.count, 1));
    cr_assert(eq(uint, second.count, 1));
    cr_assert(eq(uint, third.count, 1));
    cr_assert(zero(int, second.result.status), "%s", second.result.error.message);
    cr_assert(eq(str, second.result.path, first.result.path));
    cr_assert(eq(str, third.result.path, first.result.path));
    cr_assert(eq(sz, temp_dir_count(&dir), 1));
}

Test(when_busy, never_coalesces_what_has_a_place_or_a_time_of_its_own) {
    struct told first = {0}, own = {0}, timed = {0}, shared = {0};
    char path[300];
    open_held(BUGPACK_WHEN_BUSY_COALESCE, &first);
    (void)snprintf(path, sizeof path, "%s/own.zip", dir.path);
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    uint64_t ticket = 0;
    request.ret_ticket = &ticket;
    request.output_path = path;
    cr_assert(zero(int, bugpack_report_async(session, &request, tell, &own, NULL)));
    cr_assert(ne(u64, ticket, held.ticket));
    request.output_path = NULL;
    request.timeout_ms = 600000;
    cr_assert(zero(int, bugpack_report_async(session, &request, tell, &timed, NULL)));
    cr_assert(ne(u64, ticket, held.ticket));
    /* One that was cancelled is joined by nobody any more. */
    cr_assert(zero(int, bugpack_cancel(session, held.ticket, NULL)));
    cr_assert(zero(int, bugpack_report_async(session, NULL, tell, &shared, NULL)));
    close_held();
    cr_assert(eq(str, own.result.path, path));
    cr_assert(ne(str, timed.result.path, own.result.path));
    cr_assert(eq(int, first.result.status, BUGPACK_ERR_CANCELLED));
    cr_assert(zero(int, shared.result.status));
    cr_assert(eq(sz, temp_dir_count(&dir), 3));
}

Test(when_busy, cancels_all_that_share_a_report) {
    struct told first = {0}, second = {0};
    open_held(BUGPACK_WHEN_BUSY_COALESCE, &first);
    cr_assert(zero(int, bugpack_report_async(session, NULL, tell, &second, NULL)));
    cr_assert(zero(int, bugpack_cancel(session, held.ticket, NULL)));
    close_held();
    cr_assert(eq(int, first.result.status, BUGPACK_ERR_CANCELLED));
    cr_assert(eq(int, second.result.status, BUGPACK_ERR_CANCELLED));
    cr_assert(zero(sz, temp_dir_count(&dir)));
}

Test(when_busy, does_not_coalesce_into_a_cancelled_one) {
    struct told first = {0}, second = {0};
    open_held(BUGPACK_WHEN_BUSY_COALESCE, &first);
    cr_assert(zero(int, bugpack_cancel(session, held.ticket, NULL)));
    cr_assert(zero(int, bugpack_report_async(session, NULL, tell, &second, NULL)));
    close_held();
    cr_expect(eq(int, first.result.status, BUGPACK_ERR_CANCELLED));
    cr_expect(zero(int, second.result.status), "%s", second.result.error.message);
}

enum { types_bytes = 128 };

/* The types of the reports in the order in which they were written. */
static void note_type(const bugpack_event *event, void *context) {
    char *types = context;
    size_t used = strlen(types);
    if (event->kind == BUGPACK_EVENT_WRITTEN) {
        (void)snprintf(types + used, types_bytes - used, "%s ", event->report_type);
    }
}

Test(when_busy, a_gap_waits_behind_what_a_person_asked_for) {
    struct told others = {0};
    char types[types_bytes] = "";
    options.pedantic.is_enabled = true;
    options.on_event = note_type;
    options.on_event_context = types;
    hold_first(&others);
    bugpack_gap(session, "a:b:c");
    cr_assert(zero(int, bugpack_report_async(session, NULL, tell, &others, NULL)));
    close_held();
    cr_expect(eq(uint, others.count, 2));
    cr_expect(eq(str, types, "bugreport bugreport pedantic "));
}
