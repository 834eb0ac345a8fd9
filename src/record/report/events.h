/*
 * Events about report jobs for the host: a callback, and a bounded queue with a descriptor for its
 * main loop.
 */
#ifndef BP_REPORT_EVENTS_H
#define BP_REPORT_EVENTS_H

#include <stdatomic.h>
#include <stdbool.h>

#include <bugpack/events.h>
#include <bugpack/report.h>

#include "base/lock.h"
#include "model/metadata.h"
#include "platform/wake.h"

typedef struct bp_events {
    bugpack_event_callback *callback; /* NULL: none */
    void *context;
    atomic_bool has_queue; /* the host has asked for the descriptor */
    bp_lock lock;          /* of what follows: the queue */
    bp_wake wake;
    size_t count;
    bugpack_event *slots; /* the oldest first. 300 KiB, for whole paths; NULL without a queue */
} bp_events;

void bp_events_init(bp_events *events, bugpack_event_callback *callback, void *context);
void bp_events_release(bp_events *events);

/*
 * Posts the start or the progress of a report. The queue gets a copy, or updates progress of the
 * same report that waits already. When it is full, the oldest progress is dropped, or else the
 * oldest event; new progress never drops another event. Worker: the host's callback runs here.
 */
void bp_events_post(bp_events *events, bugpack_event_kind kind, bp_report_kind report_kind,
                    uint64_t ticket, uint32_t percent);

/* Posts the end of a report: WRITTEN or FAILED, as the result says. Worker. */
void bp_events_post_result(bp_events *events, bp_report_kind report_kind, uint64_t ticket,
                           uint32_t percent, const bugpack_report_result *result);

/* Posts that a thread beats again (bugpack/watchdog.h). Worker. */
void bp_events_post_hang_end(bp_events *events, const char *watchdog, uint64_t ticket,
                             uint64_t duration_ms);

/* The descriptor that is readable exactly while an event waits; made by the first call, with the
 * queue, and again after the host has closed it. -1 on failure. Any thread. */
int bp_events_fd(bp_events *events, bugpack_error *error);

/* Takes the oldest event; false when there is none. Any thread. */
bool bp_events_take(bp_events *events, bugpack_event *ret_event);

#endif
