#include "session/events.h"

#include <stdio.h>
#include <string.h>

#include "session/session.h"
#include "trigger/event_queue.h"

static bp_event_queue *queue_of(bugpack *session) {
    return atomic_load_explicit(&session->event_queue, memory_order_acquire);
}

bool bp_events_are_heard(bugpack *session) {
    return session->options.on_event != NULL || queue_of(session) != NULL;
}

static void tell(bugpack *session, const bugpack_event *event) {
    bp_event_queue *queue = queue_of(session);
    if (queue != NULL) {
        bp_event_queue_put(queue, event);
    }
    if (session->options.on_event != NULL) {
        session->options.on_event(event, session->options.on_event_context);
    }
}

static void add_result(bugpack_event *event, const bugpack_report_result *result) {
    if (event->kind == BUGPACK_EVENT_WRITTEN) {
        event->percent = 100;
    }
    event->missing_count = result->missing_count;
    event->error = result->error;
    (void)snprintf(event->path, sizeof event->path, "%s", result->path);
}

void bp_events_tell(bugpack *session, const bp_order *order, bugpack_event_kind kind,
                    const bugpack_report_result *result) {
    if (!bp_events_are_heard(session)) {
        return;
    }
    bugpack_event event = BUGPACK_EVENT_INIT;
    event.kind = kind;
    event.ticket = order->ticket;
    event.percent = order->percent;
    (void)snprintf(event.report_type, sizeof event.report_type, "%s",
                   bp_report_kind_name(order->kind));
    if (result != NULL) {
        add_result(&event, result);
    }
    tell(session, &event);
}

void bp_events_tell_recovered(bugpack *session, const bugpack_report_result *result) {
    const bp_order order = {.kind = BP_REPORT_CRASH};
    bp_events_tell(session, &order,
                   result->status == BUGPACK_OK ? BUGPACK_EVENT_WRITTEN : BUGPACK_EVENT_FAILED,
                   result);
}

void bp_events_release(bugpack *session) {
    bp_event_queue_free(queue_of(session));
}

int bugpack_events_fd(bugpack *session) {
    bp_guard_entry entry;
    if (bp_session_enter(session, &entry) != BUGPACK_OK) {
        return -1;
    }
    (void)pthread_mutex_lock(&session->orders_mutex);
    bp_event_queue *queue = queue_of(session);
    if (queue == NULL && bp_event_queue_new(&queue, NULL) == BUGPACK_OK) {
        atomic_store_explicit(&session->event_queue, queue, memory_order_release);
    }
    (void)pthread_mutex_unlock(&session->orders_mutex);
    int fd = queue == NULL ? -1 : bp_event_queue_fd(queue);
    bp_session_leave(&entry);
    return fd;
}

bool bugpack_next_event(bugpack *session, bugpack_event *ret_event) {
    bugpack_event event;
    bp_guard_entry entry;
    const size_t first_version_bytes = offsetof(bugpack_event, path) + sizeof event.path;
    if (ret_event == NULL || ret_event->struct_size < first_version_bytes ||
        bp_session_enter(session, &entry) != BUGPACK_OK) {
        return false;
    }
    bp_event_queue *queue = queue_of(session);
    bool is_taken = queue != NULL && bp_event_queue_take(queue, &event);
    bp_session_leave(&entry);
    if (is_taken) {
        size_t known_bytes = ret_event->struct_size;
        memcpy(ret_event, &event, known_bytes < sizeof event ? known_bytes : sizeof event);
        ret_event->struct_size = known_bytes;
    }
    return is_taken;
}
