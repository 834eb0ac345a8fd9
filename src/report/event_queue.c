#include "report/event_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/status.h"
#include "platform/wake.h"

struct bp_event_queue {
    bp_lock lock;
    bp_wake wake;
    size_t count;
    unsigned char order[BUGPACK_EVENTS_MAX]; /* every slot once; the first `count` hold an event */
    bugpack_event slots[BUGPACK_EVENTS_MAX];
};

bugpack_status bp_event_queue_new(bp_event_queue **ret_queue, bugpack_error *error) {
    bp_event_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL || !bp_lock_init(&queue->lock, BP_LOCK_EVENT_QUEUE)) {
        free(queue);
        return bp_fail_memory(error, "keep events");
    }
    bugpack_status status = bp_wake_open(&queue->wake, error);
    if (status != BUGPACK_OK) {
        bp_lock_destroy(&queue->lock);
        free(queue);
        return status;
    }
    for (size_t i = 0; i < BUGPACK_EVENTS_MAX; i++) {
        queue->order[i] = (unsigned char)i;
    }
    *ret_queue = queue;
    return BUGPACK_OK;
}

void bp_event_queue_free(bp_event_queue *queue) {
    if (queue != NULL) {
        bp_wake_close(&queue->wake);
        bp_lock_destroy(&queue->lock);
        free(queue);
    }
}

int bp_event_queue_fd(bp_event_queue *queue) {
    bp_wake anew;
    bp_lock_acquire(&queue->lock);
    /* The host may have closed it, with descriptors that it did not know. */
    bool is_open = bp_wake_is_open(&queue->wake);
    if (!is_open && bp_wake_open(&anew, NULL) == BUGPACK_OK) {
        bp_wake_close(&queue->wake);
        queue->wake = anew;
        is_open = true;
        if (queue->count > 0) {
            bp_wake_raise(&queue->wake);
        }
    }
    bp_lock_release(&queue->lock);
    return is_open ? queue->wake.fd : -1;
}

/* The place of the oldest progress, of `ticket` or (0) of any report; `count` when there is none.
 */
static size_t find_progress(const bp_event_queue *queue, uint64_t ticket) {
    size_t i = 0;
    while (i < queue->count) {
        const bugpack_event *event = &queue->slots[queue->order[i]];
        if (event->kind == BUGPACK_EVENT_PROGRESS && (ticket == 0 || event->ticket == ticket)) {
            break;
        }
        i++;
    }
    return i;
}

/* Its slot becomes the last of the free ones. */
static void remove_at(bp_event_queue *queue, size_t place) {
    unsigned char slot = queue->order[place];
    memmove(queue->order + place, queue->order + place + 1, BUGPACK_EVENTS_MAX - 1 - place);
    queue->order[BUGPACK_EVENTS_MAX - 1] = slot;
    queue->count--;
}

static void put(bp_event_queue *queue, const bugpack_event *event) {
    bool is_progress = event->kind == BUGPACK_EVENT_PROGRESS;
    size_t same = is_progress ? find_progress(queue, event->ticket) : queue->count;
    if (same < queue->count) {
        queue->slots[queue->order[same]] = *event;
        return;
    }
    if (queue->count == BUGPACK_EVENTS_MAX) {
        size_t least = find_progress(queue, 0);
        if (least == queue->count && is_progress) {
            return;
        }
        remove_at(queue, least < queue->count ? least : 0);
    }
    queue->slots[queue->order[queue->count++]] = *event;
    if (queue->count == 1) {
        bp_wake_raise(&queue->wake);
    }
}

void bp_event_queue_put(bp_event_queue *queue, const bugpack_event *event) {
    bp_lock_acquire(&queue->lock);
    put(queue, event);
    bp_lock_release(&queue->lock);
}

bool bp_event_queue_take(bp_event_queue *queue, bugpack_event *ret_event) {
    bp_lock_acquire(&queue->lock);
    bool has_event = queue->count > 0;
    if (has_event) {
        *ret_event = queue->slots[queue->order[0]];
        remove_at(queue, 0);
        if (queue->count == 0) {
            bp_wake_lower(&queue->wake);
        }
    }
    bp_lock_release(&queue->lock);
    return has_event;
}
