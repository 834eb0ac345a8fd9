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
#include "base/temp_file.h"
#include "ring/ring.h"

typedef struct bp_notifications bp_notifications;

/* How long after its first sight an equal notification is only counted. */
#define BP_NOTIFICATIONS_FOLD_NS 30000000000u

/*
 * Takes the ring over, which has at least bp_notifications_ring_bytes; on failure (NO_MEMORY) it
 * stays the caller's. Every call of bp_notifications_add is one record in it (a repetition is a
 * short one that tells the sum so far), so that the file alone tells the whole story. What stands
 * in memory, 320 KiB, is what is needed to fold: the newest 500 with their texts, by hash.
 *
 * A flood of repetitions turns the ring over without pushing anything out: a notification whose
 * record gets old is written again before it goes. A view up to an instant has all of them as long
 * as fewer than 250 notifications came between the instant and the copy (thousands, where they
 * repeat each other); what such a flood overtakes is told without its text, or counted as dropped.
 */
bugpack_status bp_notifications_new(bp_ring *ring, bp_notifications **ret_notifications,
                                    bugpack_error *error);
/* Frees the ring too. No other thread may be inside. NULL is fine. */
void bp_notifications_free(bp_notifications *notifications);

/* Gives all its memory back but what refuses notifications, a few hundred bytes. Others may be
 * inside, or come later. */
void bp_notifications_retire(bp_notifications *notifications);

/* How large the ring has to be for BUGPACK_NOTIFICATION_KEPT of the longest, with repetitions. */
size_t bp_notifications_ring_bytes(void);

/*
 * `now_ns` is monotonic. `source` may be NULL; the text needs no NUL. A level that is none counts
 * as fatal. Takes a lock, for one copy into the ring, or three. Any thread.
 */
void bp_notifications_add(bp_notifications *notifications, uint64_t now_ns, bugpack_level level,
                          const char *source, const char *text, size_t text_bytes);

/* Refuses all that come from now on. Any thread. */
void bp_notifications_close(bp_notifications *notifications);

/* The ring, borrowed: to be copied when a report freezes it. */
bp_ring *bp_notifications_ring(bp_notifications *notifications);

/*
 * Appends notifications.json from copied or salvaged records, newest 500, oldest first:
 * `{"notifications": [{"first": ISO, "last": ISO, "count": n, "level", "source", "text"}…],
 * "dropped": n}`, with `"truncated": true` behind a text that was cut. A time is a monotonic one
 * plus `wall_offset_ns`. What the records tell of one notification is put together again; one whose
 * text was lost (to damage, never to age) is told without source and text. Records that make no
 * sense are passed over: they may come from anybody's file.
 *
 * `ret_count` is how many are told. NO_MEMORY, IO (the spool cannot be read). Any thread.
 */
bugpack_status bp_notifications_print(const bp_temp_file *records, uint64_t wall_offset_ns,
                                      bp_buffer *out, uint32_t *ret_count, bugpack_error *error);

#endif
