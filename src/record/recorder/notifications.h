/*
 * Notifications: repetitions are counted, records go to a ring of their own, and notifications.json
 * is written from it.
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

/* The time after the first one in which an equal notification is only counted. */
#define BP_NOTIFICATIONS_FOLD_NS 30000000000u

/*
 * Takes ownership of the ring on success; it has at least bp_notifications_ring_bytes. Every
 * bp_notifications_add is a record in it, so the file alone is enough for recovery. Memory, up to
 * 320 KiB, is only for finding repetitions. NO_MEMORY.
 *
 * A notification whose record gets old is written again, so repetitions evict nothing. When more
 * than 250 come between the instant of a snapshot and its copy (thousands when they repeat each
 * other), some appear without their text, or are counted as dropped.
 */
bugpack_status bp_notifications_new(bp_ring *ring, bp_notifications **ret_notifications,
                                    bugpack_error *error);

/* Refuses notifications from now on and frees all memory but a few hundred bytes. Other threads may
 * be inside, or come later. */
void bp_notifications_close(bp_notifications *notifications);

/* Frees the ring too. No other thread may be inside. NULL is fine. */
void bp_notifications_free(bp_notifications *notifications);

/* The ring size for BUGPACK_NOTIFICATION_KEPT of the longest, with repetitions. */
size_t bp_notifications_ring_bytes(void);

/*
 * `now_ns` is monotonic. `source` may be NULL; the text needs no NUL. A level over FATAL counts as
 * FATAL, one under TRACE as INFO. Takes a lock for one to three copies into the ring. Any thread.
 */
void bp_notifications_add(bp_notifications *notifications, uint64_t now_ns, bugpack_level level,
                          const char *source, const char *text, size_t text_bytes);

/*
 * Appends notifications.json from copied or recovered records, newest 500, oldest first:
 * `{"notifications": [{"first": ISO, "last": ISO, "count": n, "level", "source", "text"}…],
 * "dropped": n}`, with `"truncated": true` after a text that was cut. A time is a monotonic one
 * plus `wall_offset_ns`. The records of one notification are merged; one whose text was lost (to
 * damage, never to age) appears without source and text. Invalid records are skipped: they may
 * come from anybody's file.
 *
 * NO_MEMORY, IO (the file cannot be read). Any thread.
 */
bugpack_status bp_notifications_print(const bp_temp_file *records, uint64_t wall_offset_ns,
                                      bp_buffer *out, bugpack_error *error);

#endif
