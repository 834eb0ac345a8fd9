/*
 * Events that wait until a host's main loop takes them: a bounded queue behind a descriptor.
 */
#ifndef BP_REPORT_EVENT_QUEUE_H
#define BP_REPORT_EVENT_QUEUE_H

#include <stdbool.h>

#include <bugpack/events.h>

/* Any thread may put and take. About 300 KiB: an event holds a whole path. */
typedef struct bp_event_queue bp_event_queue;

/* An empty queue. NO_MEMORY, or IO when there is no descriptor left. */
bugpack_status bp_event_queue_new(bp_event_queue **ret_queue, bugpack_error *error);
void bp_event_queue_free(bp_event_queue *queue);

/* Readable exactly while an event waits; the queue's. */
int bp_event_queue_fd(const bp_event_queue *queue);

/*
 * Adds a copy. Progress that waits already for the same report is brought up to date instead. When
 * BUGPACK_EVENTS_MAX wait, the oldest progress makes room, or else the oldest event; progress that
 * finds only others is dropped itself.
 */
void bp_event_queue_put(bp_event_queue *queue, const bugpack_event *event);

/* Takes the oldest; false when there is none. */
bool bp_event_queue_take(bp_event_queue *queue, bugpack_event *ret_event);

#endif
