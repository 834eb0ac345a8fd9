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

/*
 * Records a notification: its severity, source (NULL for none, cut at BUGPACK_CHANNEL_MAX_BYTES)
 * and text. A notification equal to one of the last 30 seconds in all three is not recorded again:
 * the earlier one counts it, with the time of its last occurrence. The 30 seconds start at the
 * first occurrence, so one that repeats for an hour appears 120 times, each with a count.
 *
 * Never fails. Any thread. A NULL session is ignored. Since 0.1.0.
 */
BUGPACK_API void bugpack_notify(bugpack_session *session, bugpack_level level, const char *source,
                                const char *format, ...) BUGPACK_PRINTF(4, 5);

/* bugpack_notify with a finished text, in which '%' means nothing. NULL: "". Since 0.1.0. */
BUGPACK_API void bugpack_notify_text(bugpack_session *session, bugpack_level level,
                                     const char *source, const char *text);

/* So many snapshots are retained at a time, each for so long. */
#define BUGPACK_RETAINED_MAX 5
#define BUGPACK_RETAINED_SECONDS 60

/*
 * bugpack_notify, which also takes a snapshot of the rings, for a user who reads the notification
 * and files a report later. Returns a ticket for bugpack_report_request.retained, or 0 if no
 * snapshot could be started; the notification is recorded in either case.
 *
 * A background thread copies the rings to unnamed files in the report directory, as large as the
 * rings are full. The snapshot is dropped after BUGPACK_RETAINED_SECONDS, or when
 * BUGPACK_RETAINED_MAX newer ones exist. Returns in microseconds. Any thread. Since 0.1.0.
 */
BUGPACK_API uint64_t bugpack_notify_retain(bugpack_session *session, bugpack_level level,
                                           const char *source, const char *format, ...)
    BUGPACK_PRINTF(4, 5);

/* bugpack_notify_retain with a finished text. NULL: "". Since 0.1.0. */
BUGPACK_API uint64_t bugpack_notify_retain_text(bugpack_session *session, bugpack_level level,
                                                const char *source, const char *text);

BUGPACK_END_DECLS

#endif
