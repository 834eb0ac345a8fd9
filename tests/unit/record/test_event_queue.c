#include "report/events.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <poll.h>

static bp_events *new_queue(void) {
    static bp_events events;
    bp_events_init(&events, NULL, NULL);
    cr_assert(ge(int, bp_events_fd(&events, NULL), 0));
    return &events;
}

static void put(bp_events *queue, bugpack_event_kind kind, uint64_t ticket, uint32_t percent) {
    bp_events_post(queue, kind, BP_REPORT_BUGREPORT, ticket, percent);
}

static void expect(bp_events *queue, bugpack_event_kind kind, uint64_t ticket, uint32_t percent) {
    bugpack_event event = BUGPACK_EVENT_INIT;
    cr_assert(bp_events_take(queue, &event));
    cr_assert(eq(int, event.kind, (int)kind));
    cr_assert(eq(u64, event.ticket, ticket));
    cr_assert(eq(u32, event.percent, percent));
}

static bool is_readable(bp_events *queue) {
    struct pollfd waited = {.fd = bp_events_fd(queue, NULL), .events = POLLIN};
    return poll(&waited, 1, 0) == 1;
}

Test(event_queue, is_readable_exactly_while_events_wait) {
    bp_events *queue = new_queue();
    cr_assert(not(is_readable(queue)));
    put(queue, BUGPACK_EVENT_STARTED, 1, 0);
    cr_assert(is_readable(queue));
    put(queue, BUGPACK_EVENT_WRITTEN, 1, 100);
    expect(queue, BUGPACK_EVENT_STARTED, 1, 0);
    cr_assert(is_readable(queue));
    expect(queue, BUGPACK_EVENT_WRITTEN, 1, 100);
    cr_assert(not(is_readable(queue)));
    put(queue, BUGPACK_EVENT_STARTED, 2, 0);
    cr_assert(is_readable(queue));
    bp_events_release(queue);
}

Test(event_queue, has_a_descriptor_that_neither_blocks_nor_outlives_an_exec) {
    bp_events *queue = new_queue();
    int fd = bp_events_fd(queue, NULL);
    cr_assert(gt(int, fd, 2));
    cr_assert(ne(int, fcntl(fd, F_GETFD) & FD_CLOEXEC, 0));
    cr_assert(ne(int, fcntl(fd, F_GETFL) & O_NONBLOCK, 0));
    bp_events_release(queue);
}

Test(event_queue, gives_nothing_when_it_is_empty_and_leaves_output_alone) {
    bp_events *queue = new_queue();
    bugpack_event event = BUGPACK_EVENT_INIT;
    event.ticket = 7;
    cr_assert(not(bp_events_take(queue, &event)));
    cr_assert(eq(u64, event.ticket, 7));
    bp_events_release(queue);
}

Test(event_queue, keeps_only_the_newest_progress_of_each_report) {
    bp_events *queue = new_queue();
    put(queue, BUGPACK_EVENT_STARTED, 1, 0);
    for (uint32_t percent = 1; percent <= 90; percent++) {
        put(queue, BUGPACK_EVENT_PROGRESS, 1, percent);
        put(queue, BUGPACK_EVENT_PROGRESS, 2, percent / 2);
    }
    put(queue, BUGPACK_EVENT_WRITTEN, 1, 100);
    expect(queue, BUGPACK_EVENT_STARTED, 1, 0);
    expect(queue, BUGPACK_EVENT_PROGRESS, 1, 90);
    expect(queue, BUGPACK_EVENT_PROGRESS, 2, 45);
    expect(queue, BUGPACK_EVENT_WRITTEN, 1, 100);
    bp_events_release(queue);
}

Test(event_queue, gives_up_progress_first_and_then_the_oldest) {
    bp_events *queue = new_queue();
    put(queue, BUGPACK_EVENT_STARTED, 1, 0);
    put(queue, BUGPACK_EVENT_PROGRESS, 1, 10);
    for (uint64_t ticket = 2; ticket < BUGPACK_EVENTS_MAX; ticket++) {
        put(queue, BUGPACK_EVENT_WRITTEN, ticket, 100);
    }
    put(queue, BUGPACK_EVENT_WRITTEN, 100, 100); /* in the place of the progress */
    put(queue, BUGPACK_EVENT_PROGRESS, 101, 5);  /* finds no room, and takes none */
    put(queue, BUGPACK_EVENT_WRITTEN, 102, 100); /* in the place of the oldest */
    for (uint64_t ticket = 2; ticket < BUGPACK_EVENTS_MAX; ticket++) {
        expect(queue, BUGPACK_EVENT_WRITTEN, ticket, 100);
    }
    expect(queue, BUGPACK_EVENT_WRITTEN, 100, 100);
    expect(queue, BUGPACK_EVENT_WRITTEN, 102, 100);
    cr_assert(not(is_readable(queue)));
    bp_events_release(queue);
}
