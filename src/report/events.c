#include "report/events.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/status.h"
#include "report/event_queue.h"

struct bp_events {
    bugpack_event_callback *callback;
    void *context;
    bp_lock lock;                    /* held while the queue is made */
    _Atomic(bp_event_queue *) queue; /* NULL until the host asks for its descriptor */
};

bugpack_status bp_events_new(bugpack_event_callback *callback, void *context,
                             bp_events **ret_events, bugpack_error *error) {
    bp_events *events = calloc(1, sizeof *events);
    if (events == NULL || !bp_lock_init(&events->lock, BP_LOCK_EVENTS)) {
        free(events);
        return bp_fail_memory(error, "open a session");
    }
    events->callback = callback;
    events->context = context;
    *ret_events = events;
    return BUGPACK_OK;
}

static bp_event_queue *queue_of(bp_events *events) {
    return atomic_load_explicit(&events->queue, memory_order_acquire);
}

void bp_events_free(bp_events *events) {
    if (events != NULL) {
        bp_event_queue_free(queue_of(events));
        bp_lock_destroy(&events->lock);
        free(events);
    }
}

static void post(bp_events *events, const bugpack_event *event) {
    bp_event_queue *queue = queue_of(events);
    if (queue != NULL) {
        bp_event_queue_put(queue, event);
    }
    bp_lock_check_none_held();
    if (events->callback != NULL) {
        events->callback(event, events->context);
    }
}

static bugpack_event make_event(bugpack_event_kind kind, bp_report_kind report_kind,
                                uint64_t ticket, uint32_t percent) {
    bugpack_event event = BUGPACK_EVENT_INIT;
    event.kind = kind;
    event.ticket = ticket;
    event.percent = percent;
    (void)snprintf(event.report_type, sizeof event.report_type, "%s",
                   bp_report_kind_name(report_kind));
    return event;
}

static bool has_listener(bp_events *events) {
    return events->callback != NULL || queue_of(events) != NULL;
}

void bp_events_post(bp_events *events, bugpack_event_kind kind, bp_report_kind report_kind,
                    uint64_t ticket, uint32_t percent) {
    if (has_listener(events)) {
        bugpack_event event = make_event(kind, report_kind, ticket, percent);
        post(events, &event);
    }
}

void bp_events_post_result(bp_events *events, bp_report_kind report_kind, uint64_t ticket,
                           uint32_t percent, const bugpack_report_result *result) {
    if (!has_listener(events)) {
        return;
    }
    bool is_written = result->status == BUGPACK_OK;
    bugpack_event event = make_event(is_written ? BUGPACK_EVENT_WRITTEN : BUGPACK_EVENT_FAILED,
                                     report_kind, ticket, is_written ? 100 : percent);
    event.missing_count = result->missing_count;
    event.error = result->error;
    (void)snprintf(event.path, sizeof event.path, "%s", result->path);
    post(events, &event);
}

int bp_events_fd(bp_events *events) {
    bp_lock_acquire(&events->lock);
    bp_event_queue *queue = queue_of(events);
    if (queue == NULL && bp_event_queue_new(&queue, NULL) == BUGPACK_OK) {
        atomic_store_explicit(&events->queue, queue, memory_order_release);
    }
    bp_lock_release(&events->lock);
    return queue == NULL ? -1 : bp_event_queue_fd(queue);
}

bool bp_events_take(bp_events *events, bugpack_event *ret_event) {
    bp_event_queue *queue = queue_of(events);
    return queue != NULL && bp_event_queue_take(queue, ret_event);
}
