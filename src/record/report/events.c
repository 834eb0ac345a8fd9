#include "report/events.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/status.h"
#include "platform/wake.h"

struct bp_events {
    bugpack_event_callback *callback;
    void *context;
    atomic_bool has_queue; /* the host has asked for the descriptor */
    bp_lock lock;          /* of what follows: the queue */
    bp_wake wake;
    size_t count;
    unsigned char order[BUGPACK_EVENTS_MAX]; /* every slot once; the first `count` hold an event */
    bugpack_event *slots; /* about 300 KiB, as an event holds a whole path; NULL without a queue */
};

bugpack_status bp_events_new(bugpack_event_callback *callback, void *context,
                             bp_events **ret_events, bugpack_error *error) {
    bp_events *events = calloc(1, sizeof *events);
    if (events == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    bp_lock_init(&events->lock, BP_LOCK_EVENTS);
    events->callback = callback;
    events->context = context;
    *ret_events = events;
    return BUGPACK_OK;
}

void bp_events_free(bp_events *events) {
    if (events != NULL) {
        if (events->slots != NULL) {
            bp_wake_close(&events->wake);
            free(events->slots);
        }
        bp_lock_destroy(&events->lock);
        free(events);
    }
}

/* The place of the oldest progress, of `ticket` or (0) of any report; `count` when there is none.
 */
static size_t find_progress(const bp_events *events, uint64_t ticket) {
    size_t i = 0;
    while (i < events->count) {
        const bugpack_event *event = &events->slots[events->order[i]];
        if (event->kind == BUGPACK_EVENT_PROGRESS && (ticket == 0 || event->ticket == ticket)) {
            break;
        }
        i++;
    }
    return i;
}

/* Its slot becomes the last of the free ones. */
static void remove_at(bp_events *events, size_t place) {
    unsigned char slot = events->order[place];
    memmove(events->order + place, events->order + place + 1, BUGPACK_EVENTS_MAX - 1 - place);
    events->order[BUGPACK_EVENTS_MAX - 1] = slot;
    events->count--;
}

/* Adds a copy, as events.h says. The lock is held. */
static void put(bp_events *events, const bugpack_event *event) {
    bool is_progress = event->kind == BUGPACK_EVENT_PROGRESS;
    size_t same = is_progress ? find_progress(events, event->ticket) : events->count;
    if (same < events->count) {
        events->slots[events->order[same]] = *event;
        return;
    }
    if (events->count == BUGPACK_EVENTS_MAX) {
        size_t least = find_progress(events, 0);
        if (least == events->count && is_progress) {
            return;
        }
        remove_at(events, least < events->count ? least : 0);
    }
    events->slots[events->order[events->count++]] = *event;
    if (events->count == 1) {
        bp_wake_raise(&events->wake);
    }
}

static void post(bp_events *events, const bugpack_event *event) {
    if (atomic_load(&events->has_queue)) {
        bp_lock_acquire(&events->lock);
        put(events, event);
        bp_lock_release(&events->lock);
    }
    bp_lock_check_none_held();
    if (events->callback != NULL) {
        events->callback(event, events->context);
    }
}

/* False where nobody wants it. */
static bool begin_event(const bp_events *events, bugpack_event_kind kind,
                        bp_report_kind report_kind, uint64_t ticket, bugpack_event *ret_event) {
    if (events->callback == NULL && !atomic_load(&events->has_queue)) {
        return false;
    }
    *ret_event = (bugpack_event)BUGPACK_EVENT_INIT;
    ret_event->kind = kind;
    ret_event->ticket = ticket;
    (void)snprintf(ret_event->report_type, sizeof ret_event->report_type, "%s",
                   bp_report_kind_name(report_kind));
    return true;
}

static void post_new(bp_events *events, bugpack_event_kind kind, bp_report_kind report_kind,
                     uint64_t ticket, uint32_t percent, const bugpack_report_result *result) {
    bugpack_event event;
    if (!begin_event(events, kind, report_kind, ticket, &event)) {
        return;
    }
    event.percent = percent;
    if (result != NULL) {
        event.missing_count = result->missing_count;
        event.error = result->error;
        (void)snprintf(event.path, sizeof event.path, "%s", result->path);
    }
    post(events, &event);
}

void bp_events_post_hang_end(bp_events *events, const char *watchdog, uint64_t ticket,
                             uint64_t duration_ms) {
    bugpack_event event;
    if (begin_event(events, BUGPACK_EVENT_HANG_ENDED, BP_REPORT_HANG, ticket, &event)) {
        event.duration_ms = duration_ms;
        (void)snprintf(event.watchdog, sizeof event.watchdog, "%s", watchdog);
        post(events, &event);
    }
}

void bp_events_post(bp_events *events, bugpack_event_kind kind, bp_report_kind report_kind,
                    uint64_t ticket, uint32_t percent) {
    post_new(events, kind, report_kind, ticket, percent, NULL);
}

void bp_events_post_result(bp_events *events, bp_report_kind report_kind, uint64_t ticket,
                           uint32_t percent, const bugpack_report_result *result) {
    bool is_written = result->status == BUGPACK_OK;
    post_new(events, is_written ? BUGPACK_EVENT_WRITTEN : BUGPACK_EVENT_FAILED, report_kind, ticket,
             is_written ? 100 : percent, result);
}

/* The lock is held. False where there is no memory, or no descriptor left. */
static bool make_queue(bp_events *events) {
    bugpack_event *slots = calloc(BUGPACK_EVENTS_MAX, sizeof *slots);
    if (slots == NULL || bp_wake_open(&events->wake, NULL) != BUGPACK_OK) {
        free(slots);
        return false;
    }
    for (size_t i = 0; i < BUGPACK_EVENTS_MAX; i++) {
        events->order[i] = (unsigned char)i;
    }
    events->slots = slots;
    atomic_store(&events->has_queue, true);
    return true;
}

int bp_events_fd(bp_events *events) {
    bp_wake anew;
    bp_lock_acquire(&events->lock);
    bool has_queue = events->slots != NULL || make_queue(events);
    /* The host may have closed it, with descriptors that it did not know. */
    bool is_open = has_queue && bp_wake_is_open(&events->wake);
    if (has_queue && !is_open && bp_wake_open(&anew, NULL) == BUGPACK_OK) {
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
        *ret_event = events->slots[events->order[0]];
        remove_at(events, 0);
        if (events->count == 0) {
            bp_wake_lower(&events->wake);
        }
    }
    bp_lock_release(&events->lock);
    return has_event;
}
