/*
 * Disconnect reports: a channel of the host's protocol went away, and the report says what was
 * known about it.
 */
#ifndef BUGPACK_DISCONNECT_H
#define BUGPACK_DISCONNECT_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

/*
 * Why a channel went away. Start from BUGPACK_DISCONNECT_CAUSE_INIT; strings are copied. Since
 * 0.1.0.
 */
typedef struct bugpack_disconnect_cause {
    size_t struct_size;
    const char *channel;    /* its name, 1 to BUGPACK_CHANNEL_MAX_BYTES bytes */
    const char *error_text; /* what the host would show: "ECONNRESET"; NULL when it knows nothing */
    const char *error_kind; /* the host's own word for the class of it: "io", "tls"; NULL */
    bool keepalive_fired;   /* the host itself gave the peer up */
} bugpack_disconnect_cause;

#define BUGPACK_DISCONNECT_CAUSE_INIT                                                              \
    { sizeof(bugpack_disconnect_cause), NULL, NULL, NULL, false }

/*
 * Takes a report of the kind `disconnect`, whose disconnect-cause.json holds the cause and, for
 * every channel of the session, when it was last active in each direction and how much went over
 * it. Returns in microseconds, as bugpack_report_async does.
 *
 * After a report was written, and while one waits or is being taken, none is taken for
 * disconnect_cooldown_ms, whichever channel it is about: a lost link takes all channels with it. A
 * report that could not be written starts no cool-down. What is suppressed is counted in the ledger
 * of later reports.
 *
 * Errors: BUSY (cool-down, or the queue is full), INVALID, NO_MEMORY, INERT, CLOSED. Any thread;
 * not a signal handler. Since 0.1.0.
 */
BUGPACK_API bugpack_status bugpack_disconnect(struct bugpack *session, const char *channel,
                                              const char *error_text);
BUGPACK_API bugpack_status bugpack_disconnect_because(struct bugpack *session,
                                                      const bugpack_disconnect_cause *cause);

BUGPACK_END_DECLS

#endif
