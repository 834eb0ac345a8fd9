/*
 * What becomes of reports, told to a host's main loop: by a callback, or by a descriptor to poll.
 * And taking a trigger back.
 *
 * A report has a ticket: its number in the session, the `sequence` of its metadata. Reports that
 * bugpack takes by itself (pedantic, auto-snapshot, disconnect) tell events like any other; one
 * that was made of a session that died (crash) is told when it has ended, with ticket 0.
 */
#ifndef BUGPACK_EVENTS_H
#define BUGPACK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/report.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

/* New kinds may be added: pass over what you do not know. Since 0.1.0. */
typedef enum bugpack_event_kind {
    BUGPACK_EVENT_STARTED = 0,  /* the worker took the report up */
    BUGPACK_EVENT_PROGRESS = 1, /* `percent` has grown */
    BUGPACK_EVENT_WRITTEN = 2,  /* the zip is whole and on disk under `path` */
    BUGPACK_EVENT_FAILED = 3    /* there is none: `error` says why; CANCELLED is one reason */
} bugpack_event_kind;

/* One thing that became of a report. Start from BUGPACK_EVENT_INIT. Since 0.1.0. */
typedef struct bugpack_event {
    size_t struct_size;
    bugpack_event_kind kind;
    uint64_t ticket;
    char report_type[24];   /* "bugreport", "pedantic", … */
    uint32_t percent;       /* 0 to 100, never less than before for the same report */
    uint32_t missing_count; /* of WRITTEN, as in bugpack_report_result */
    bugpack_error error;
    char path[BUGPACK_REPORT_PATH_BYTES];
} bugpack_event;

#define BUGPACK_EVENT_INIT                                                                         \
    { sizeof(bugpack_event), BUGPACK_EVENT_STARTED, 0u, "", 0u, 0u, BUGPACK_ERROR_INIT, "" }

/*
 * The callback of the option `on_event`, on bugpack's worker thread; `event` is valid during the
 * call. Return soon: the report waits meanwhile. It may call anything that a report callback may.
 */
typedef void bugpack_event_callback(const bugpack_event *event, void *context);

/*
 * A descriptor that polls readable while an event waits to be taken with bugpack_next_event; for
 * poll, epoll and main loops, not to be read, written or closed by the host. It is close-on-exec
 * and the session's. Events wait from the first call on. -1 when there can be none (then the
 * callback is what is left). Any thread. Since 0.1.0.
 */
BUGPACK_API int bugpack_events_fd(struct bugpack *session);

/*
 * Takes the oldest event that waits; false when there is none. At most BUGPACK_EVENTS_MAX wait:
 * beyond that, progress of a report gives way first, then the oldest. Any thread. Since 0.1.0.
 */
BUGPACK_API bool bugpack_next_event(struct bugpack *session, bugpack_event *ret_event);

#define BUGPACK_EVENTS_MAX 64

/*
 * Takes back a report that waits or is being taken; ticket 0: all of them, also of gaps that wait
 * in a line of their own (bugpack/gap.h) and have no ticket yet. The report ends within 100 ms with
 * BUGPACK_ERR_CANCELLED and leaves nothing behind, unless the disk keeps the worker waiting in an
 * fsync; one that waits is not begun. A provider that is being asked is left to itself, and
 * bugpack_close waits for it until its time limit. Whoever shares the report
 * (BUGPACK_WHEN_BUSY_COALESCE) gets the same end. One whose zip is already being given its name is
 * not stopped any more. Returns at once. Errors: INVALID when no such report waits or runs; INERT,
 * CLOSED. Any thread; not a signal handler. Since 0.1.0.
 */
BUGPACK_API bugpack_status bugpack_cancel(struct bugpack *session, uint64_t ticket);

BUGPACK_END_DECLS

#endif
