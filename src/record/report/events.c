#include "report/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

void bp_events_init(bp_events *events, bugpack_event_callback *callback, void *context) {
    *events = (bp_events){.callback = callback, .context = context};
    bp_lock_init(&events->lock, BP_LOCK_EVENTS);
}

void bp_events_release(bp_events *events) {
    if (events->slots != NULL) {
        bp_wake_close(&events->wake);
        free(events->slots);
    }
    bp_lock_destroy(&events->lock);
}

/* The place of the oldest progress, of `ticket` or (0) of any report; `count` when there is none.
 */
static size_t find_progress(const bp_events *events, uint64_t ticket) {
    size_t i = 0;
    while (i < events->count) {
        const bugpack_event *event = &events->slots[i];
        if (event->kind == BUGPACK_EVENT_PROGRESS && (ticket == 0 || event->ticket == ticket)) {
            break;
        }
        i++;
    }
    return i;
}

static void remove_at(bp_events *events, size_t place) {
    events->count--;
    memmove(events->slots + place, events->slots + place + 1,
            (events->count - place) * sizeof events->slots[0]);
}

/* Adds a copy, as events.h says. The lock is held. */
static void put(bp_events *events, const bugpack_event *event) {
    bool is_progress = event->kind == BUGPACK_EVENT_PROGRESS;
    size_t same = is_progress ? find_progress(events, event->ticket) : events->count;
    if (same < events->count) {
        events->slots[same] = *event;
        return;
    }
    if (events->count == BUGPACK_EVENTS_MAX) {
        size_t least = find_progress(events, 0);
        if (least == events->count && is_progress) {
            return;
        }
        remove_at(events, least < events->count ? least : 0);
    }
    events->slots[events->count++] = *event;
    if (events->count == 1) {
        bp_wake_raise(&events->wake);
    }
}

/* Posts an event with what all of them have, where somebody wants it. */
static void post(bp_events *events, bugpack_event *event, bp_report_kind kind, uint64_t ticket) {
    bool has_queue = atomic_load(&events->has_queue);
    if (events->callback == NULL && !has_queue) {
        return;
    }
    event->ticket = ticket;
    (void)snprintf(event->report_type, sizeof event->report_type, "%s", bp_report_kind_name(kind));
    if (has_queue) {
        bp_lock_acquire(&events->lock);
        put(events, event);
        bp_lock_release(&events->lock);
    }
    bp_lock_check_none_held();
    if (events->callback != NULL) {
        events->callback(event, events->context);
    }
}

void bp_events_post_hang_end(bp_events *events, const char *watchdog, uint64_t ticket,
                             uint64_t duration_ms) {
    bugpack_event event = BUGPACK_EVENT_INIT;
    event.kind = BUGPACK_EVENT_HANG_ENDED;
    event.duration_ms = duration_ms;
    (void)snprintf(event.watchdog, sizeof event.watchdog, "%s", watchdog);
    post(events, &event, BP_REPORT_HANG, ticket);
}

void bp_events_post(bp_events *events, bugpack_event_kind kind, bp_report_kind report_kind,
                    uint64_t ticket, uint32_t percent) {
    bugpack_event event = BUGPACK_EVENT_INIT;
    event.kind = kind;
    event.percent = percent;
    post(events, &event, report_kind, ticket);
}

void bp_events_post_result(bp_events *events, bp_report_kind report_kind, uint64_t ticket,
                           uint32_t percent, const bugpack_report_result *result) {
    bugpack_event event = BUGPACK_EVENT_INIT;
    bool is_written = result->status == BUGPACK_OK;
    event.kind = is_written ? BUGPACK_EVENT_WRITTEN : BUGPACK_EVENT_FAILED;
    event.percent = is_written ? 100 : percent;
    event.missing_count = result->missing_count;
    event.error = result->error;
    (void)snprintf(event.path, sizeof event.path, "%s", result->path);
    post(events, &event, report_kind, ticket);
}

/* Makes the queue with its descriptor. The lock is held. */
static void make_queue(bp_events *events, bugpack_error *error) {
    bugpack_event *slots = calloc(BUGPACK_EVENTS_MAX, sizeof *slots);
    if (slots == NULL) {
        (void)bp_fail_memory(error, "queue events");
    } else if (bp_wake_open(&events->wake, error) == BUGPACK_OK) {
        events->slots = slots;
        atomic_store(&events->has_queue, true);
    } else {
        free(slots);
    }
}

int bp_events_fd(bp_events *events, bugpack_error *error) {
    bp_wake anew;
    bp_lock_acquire(&events->lock);
    if (events->slots == NULL) {
        make_queue(events, error);
    }
    bool has_queue = events->slots != NULL;
    /* The host may have closed it, with descriptors that it did not know. */
    bool is_open = has_queue && bp_wake_is_open(&events->wake);
    if (has_queue && !is_open && bp_wake_open(&anew, error) == BUGPACK_OK) {
        bp_wake_close(&events->wake);
        events->wake = anew;
        is_open = true;
        if (events->count > 0) {
            bp_wake_raise(&events->wake);
        }
    }
    int fd = is_open ? events->wake.fd : -1;
    bp_lock_release(&events->lock);
    return fd;
}

bool bp_events_take(bp_events *events, bugpack_event *ret_event) {
    bp_lock_acquire(&events->lock);
    bool has_event = events->count > 0;
    if (has_event) {
        *ret_event = events->slots[0];
        remove_at(events, 0);
        if (events->count == 0) {
            bp_wake_lower(&events->wake);
        }
    }
    bp_lock_release(&events->lock);
    return has_event;
}
