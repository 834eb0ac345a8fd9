/*
 * Events that wait until a host's main loop takes them: a bounded queue with a descriptor.
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

/* Readable exactly while an event waits; the queue's. Another one after the host has closed it; -1
 * where there is none. */
int bp_event_queue_fd(bp_event_queue *queue);

/*
 * Adds a copy, or updates progress of the same report that waits already. When the queue is full,
 * the oldest progress is dropped, or else the oldest event; new progress never drops another event.
 */
void bp_event_queue_put(bp_event_queue *queue, const bugpack_event *event);

/* Takes the oldest; false when there is none. */
bool bp_event_queue_take(bp_event_queue *queue, bugpack_event *ret_event);

#endif
