/*
 * Events: what happens to reports, for a host's main loop, by a callback or a descriptor to poll.
 * And cancelling.
 *
 * A report has a ticket: its number in the session, which is the `sequence` of its metadata. All
 * reports raise events, also those that the library triggers (pedantic, auto-snapshot, disconnect).
 * A `crash` report of an earlier session raises only its last event, with ticket 0.
 */
#ifndef BUGPACK_EVENTS_H
#define BUGPACK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/log.h>
#include <bugpack/report.h>

BUGPACK_BEGIN_DECLS

/* Later versions may add kinds: ignore those that you do not know. */
typedef enum bugpack_event_kind {
    BUGPACK_EVENT_STARTED = 0,  /* the worker began the report */
    BUGPACK_EVENT_PROGRESS = 1, /* `percent` has grown */
    BUGPACK_EVENT_WRITTEN = 2,  /* the zip is complete and on disk under `path` */
    BUGPACK_EVENT_FAILED = 3,   /* there is no zip; `error` says why, for example CANCELLED */
    /* A thread beats again (bugpack/watchdog.h). `ticket` is that of the report of its hang, 0 if
     * there was none. */
    BUGPACK_EVENT_HANG_ENDED = 4
} bugpack_event_kind;

/* One event. */
typedef struct bugpack_event {
    size_t struct_size;
    bugpack_event_kind kind;
    uint64_t ticket;
    char report_type[24];   /* "bugreport", "pedantic", … */
    uint32_t percent;       /* 0 to 100; never decreases for a report */
    uint32_t missing_count; /* of WRITTEN, as in bugpack_report_result */
    bugpack_error error;    /* of FAILED */
    char path[BUGPACK_REPORT_PATH_BYTES];
    char watchdog[BUGPACK_CHANNEL_MAX_BYTES + 1]; /* of HANG_ENDED: its name */
    uint64_t duration_ms; /* of HANG_ENDED: from the last beat before it to the first after it */
} bugpack_event;

#define BUGPACK_EVENT_INIT BUGPACK_INIT(bugpack_event)

/*
 * The callback of the option `on_event`, on the worker thread. `event` is valid during the call. It
 * may call whatever a report callback may. Return soon: the report waits for it.
 */
typedef void bugpack_event_callback(const bugpack_event *event, void *context);

/* The most events that wait for bugpack_next_event. */
#define BUGPACK_EVENTS_MAX 64

/*
 * A descriptor that polls readable while an event waits for bugpack_next_event. For poll, epoll and
 * main loops; the host must not read, write or close it. It is close-on-exec. If it was closed all
 * the same, the next call gives another one. Events are queued from the first call on. -1 on
 * failure (IO, NO_MEMORY, INVALID, INERT, CLOSED); then use the callback. Any thread.
 */
BUGPACK_API int bugpack_events_fd(bugpack_session *session, bugpack_error *error);

/*
 * Removes the oldest waiting event and fills `*ret_event`, as far as its struct_size reaches. False
 * if none waits. When BUGPACK_EVENTS_MAX wait, PROGRESS events are dropped first, then the oldest.
 * Any thread.
 */
BUGPACK_API bool bugpack_next_event(bugpack_session *session, bugpack_event *ret_event);

/*
 * Cancels a report that waits or runs; ticket 0 cancels all, including those of gaps that wait in
 * their queue (bugpack/gap.h). The report ends within 100 ms with BUGPACK_ERR_CANCELLED and leaves
 * nothing behind, unless the disk blocks the worker in an fsync. A provider that is running is left
 * alone; bugpack_close waits for it until its time limit. Everybody who shares the report
 * (BUGPACK_WHEN_BUSY_COALESCE) gets the same result. A report that is already being renamed to its
 * final name completes. Returns at once.
 *
 * Errors: NO_TICKET (no such report waits or runs), INVALID, INERT, CLOSED. Any thread.
 */
BUGPACK_API bugpack_status bugpack_cancel(bugpack_session *session, uint64_t ticket,
                                          bugpack_error *error);

BUGPACK_END_DECLS

#endif
