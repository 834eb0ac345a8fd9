/*
 * Notifications: messages that the host showed its user, so that a report shows what the user saw.
 */
#ifndef BUGPACK_NOTIFY_H
#define BUGPACK_NOTIFY_H

#include <stdint.h>

#include <bugpack/common.h>
#include <bugpack/export.h>
#include <bugpack/log.h>

BUGPACK_BEGIN_DECLS

/* A session holds the newest so many; a longer text is cut. */
#define BUGPACK_NOTIFICATION_KEPT 500
#define BUGPACK_NOTIFICATION_MAX_BYTES 512

/* The most snapshots that are retained at a time, and for how long. */
#define BUGPACK_RETAINED_MAX 5
#define BUGPACK_RETAINED_SECONDS 60

/*
 * Records a notification: its severity, source (NULL for none, cut at BUGPACK_CHANNEL_MAX_BYTES)
 * and text. A notification equal to one of the last 30 seconds in all three is not recorded again:
 * the earlier one counts it, with the time of its last occurrence. The 30 seconds start at the
 * first occurrence, so one that repeats for an hour appears 120 times, each with a count.
 *
 * `ret_retained`, which may be NULL, also retains a snapshot of the rings, for a user who reads the
 * notification and files a report later. It receives a ticket for bugpack_report_request.retained,
 * or 0 if no snapshot could be started. A background thread copies the rings to unnamed files in
 * the report directory, as large as the rings are full. The snapshot is dropped after
 * BUGPACK_RETAINED_SECONDS, or when BUGPACK_RETAINED_MAX newer ones exist.
 *
 * Never fails, and returns in microseconds. Any thread. A NULL session is ignored.
 */
BUGPACK_API void bugpack_notify(bugpack_session *session, bugpack_level level, const char *source,
                                uint64_t *ret_retained, const char *format, ...)
    BUGPACK_PRINTF(5, 6);

BUGPACK_END_DECLS

#endif
