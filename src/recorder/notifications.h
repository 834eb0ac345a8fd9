/*
 * Notifications: folded as they come, kept in a ring of their own so that they outlive the host,
 * and written as notifications.json.
 */
#ifndef BP_RECORDER_NOTIFICATIONS_H
#define BP_RECORDER_NOTIFICATIONS_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/notify.h>

#include "base/buffer.h"
#include "base/spool.h"
#include "ring/ring.h"

typedef struct bp_notifications bp_notifications;

/*
 * Takes the ring over. Every call of bp_notifications_add is one record in it (a repetition is a
 * short one that points at what it repeats), so that the file alone tells the whole story; what
 * stands in memory is what is needed to fold: a table of the newest 500 by hash.
 */
bugpack_status bp_notifications_new(bp_ring *ring, bp_notifications **ret_notifications,
                                    bugpack_error *error);
void bp_notifications_free(bp_notifications *notifications);

/* How large the ring has to be for BUGPACK_NOTIFICATION_KEPT of the longest, with repetitions. */
size_t bp_notifications_ring_bytes(void);

/* Any thread. `now_ns` is monotonic. The text needs no NUL. */
void bp_notifications_add(bp_notifications *notifications, uint64_t now_ns, bugpack_level level,
                          const char *source, const char *text, size_t text_bytes);
void bp_notifications_close(bp_notifications *notifications);

/* The ring, borrowed: to be copied when a report freezes it. */
bp_ring *bp_notifications_ring(bp_notifications *notifications);

/*
 * Appends notifications.json from copied or salvaged records, newest 500, oldest first:
 * `{"notifications": [{"first": ISO, "last": ISO, "count": n, "level", "source", "text"}…],
 * "dropped": n}`. Folds again what two records tell of one notification; a repetition whose
 * original was evicted is told with count and times but the text it carries.
 */
bugpack_status bp_notifications_print(const bp_spool *records, uint64_t wall_offset_ns,
                                      bp_buffer *out, uint32_t *ret_count, bugpack_error *error);

#endif
