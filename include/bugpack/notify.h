/*
 * Notifications: what the host told its user, kept so that a report shows what the user saw.
 */
#ifndef BUGPACK_NOTIFY_H
#define BUGPACK_NOTIFY_H

#include <stdint.h>

#include <bugpack/export.h>
#include <bugpack/log.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

/*
 * Keeps one notification: how severe, where it came from (NULL for none, cut at
 * BUGPACK_CHANNEL_MAX_BYTES) and its text (cut at BUGPACK_NOTIFICATION_MAX_BYTES). One that is
 * equal in all three to one that was kept in the last 30 seconds is counted there, with the time of
 * its last sight, and not kept again. The 30 seconds begin with the first sight and not anew with
 * each repetition, so that what goes on for an hour is told 120 times, with a count each.
 *
 * The newest BUGPACK_NOTIFICATION_KEPT are kept, however often each is repeated. Never fails. Any
 * thread; not a signal handler. Since 0.1.0.
 */
BUGPACK_API void bugpack_notify(struct bugpack *session, bugpack_level level, const char *source,
                                const char *format, ...) BUGPACK_PRINTF(4, 5);

/*
 * The same, and asks that the rings be kept as they are now, for a person who reads the
 * notification and only then files a report: bugpack_report_request.retained takes the number that
 * this returns. The copy lies in nameless files in the report directory (as large as the rings are
 * full), begins at once on a thread of bugpack's, and is dropped after BUGPACK_RETAINED_SECONDS or
 * when BUGPACK_RETAINED_MAX newer ones were asked for. 0 when nothing could be kept: the
 * notification is there all the same. Any thread; not a signal handler. Since 0.1.0.
 */
BUGPACK_API uint64_t bugpack_notify_retain(struct bugpack *session, bugpack_level level,
                                           const char *source, const char *format, ...)
    BUGPACK_PRINTF(4, 5);

#define BUGPACK_RETAINED_MAX 5
#define BUGPACK_RETAINED_SECONDS 60

#define BUGPACK_NOTIFICATION_KEPT 500
#define BUGPACK_NOTIFICATION_MAX_BYTES 512

BUGPACK_END_DECLS

#endif
