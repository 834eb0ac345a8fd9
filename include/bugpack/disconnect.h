/*
 * Disconnect reports: a channel of the host's protocol was lost, and a report says what was known
 * about it.
 */
#ifndef BUGPACK_DISCONNECT_H
#define BUGPACK_DISCONNECT_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/* Further facts about a lost channel. */
typedef struct bugpack_disconnect_details {
    size_t struct_size;
    bool keepalive_fired;   /* the host itself gave up on the peer */
    const char *error_kind; /* the host's word for its class: "io", "tls"; NULL if unknown */
} bugpack_disconnect_details;

#define BUGPACK_DISCONNECT_DETAILS_INIT BUGPACK_INIT(bugpack_disconnect_details)

/*
 * Takes a report of the kind `disconnect` about `channel`, 1 to BUGPACK_CHANNEL_MAX_BYTES bytes.
 * `error_text` is the error as the host would show it, "ECONNRESET"; NULL if it is not known.
 * `details` may be NULL. Its disconnect-cause.json has the cause and, for every
 * channel of the session, its last activity and totals in each direction. Returns in microseconds,
 * as bugpack_report_async does.
 *
 * A lost link takes all channels with it. So while one such report waits or runs, and for
 * limits.disconnect_cooldown_ms after it was written, no other is taken: the report lists the
 * causes that come until it is written, and has the traffic of all these channels; a report that
 * fails starts no cool-down. A session takes at most limits.disconnect_cap of them
 * (bugpack/session.h). The manifest of later reports counts those that were suppressed.
 *
 * Errors: BUSY (cool-down, limits.disconnect_cap, or the queue is full), INVALID, NO_MEMORY, INERT,
 * CLOSED. Any thread.
 */
BUGPACK_API bugpack_status bugpack_disconnect(bugpack_session *session, const char *channel,
                                              const char *error_text,
                                              const bugpack_disconnect_details *details,
                                              bugpack_error *error);

BUGPACK_END_DECLS

#endif
