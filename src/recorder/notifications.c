#include "recorder/notifications.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/lock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "recorder/notification_record.h"

enum { kept_count = BUGPACK_NOTIFICATION_KEPT };

/* The longest record with the ring's frame, and as many as are kept. */
enum {
    frame_bytes = BP_RING_FRAME_BYTES,
    record_bytes = frame_bytes + sizeof(bp_notification_header) + BP_NOTIFICATION_BODY_BYTES,
    live_bytes = kept_count * record_bytes
};

/*
 * A notification is written again when its record is `old_bytes` older than the newest one. Each
 * call checks `look_count` slots and rewrites at most `rewrite_count` of them. When all are due at
 * once, the last waits for 500 / rewrite_count = 250 calls, which write at most three of the
 * longest records each: 1.5 times live_bytes. So no record is further back than 3.5 times
 * live_bytes; the ring has 5 times live_bytes, so that a copy that begins a little late finds all.
 */
enum { old_bytes = 2 * live_bytes, look_count = 8, rewrite_count = 2 };

/* One of the newest. */
typedef struct slot {
    bp_notification_header header; /* id 0: the slot is free */
    uint64_t hash;
    uint64_t written_at; /* position of the newest record with the text */
    char body[BP_NOTIFICATION_BODY_BYTES];
} slot;

/* All of them, at index `id % kept_count`. The hashes are apart, so that a search reads 4 KiB. */
typedef struct table {
    uint64_t hashes[kept_count];
    slot slots[kept_count];
} table;

struct bp_notifications {
    bp_ring *ring;
    /* Of what follows. Held while appending, which takes the ring's lock, so that the ring never
     * has a repetition without what it repeats; nobody else waits for that lock. */
    bp_lock lock;
    uint64_t newest_id;
    uint64_t position; /* bytes appended so far */
    size_t hand;       /* the slot to be checked next for its age */
    table *newest;     /* NULL: closed */
};

bugpack_status bp_notifications_new(bp_ring *ring, bp_notifications **ret_notifications,
                                    bugpack_error *error) {
    bp_notifications *notifications = calloc(1, sizeof *notifications);
    table *newest = calloc(1, sizeof *newest);
    if (notifications == NULL || newest == NULL ||
        !bp_lock_init(&notifications->lock, BP_LOCK_NOTIFICATIONS)) {
        free(newest);
        free(notifications);
        return bp_fail_memory(error, "record notifications");
    }
    notifications->newest = newest;
    notifications->ring = ring;
    *ret_notifications = notifications;
    return BUGPACK_OK;
}

void bp_notifications_close(bp_notifications *notifications) {
    bp_lock_acquire(&notifications->lock);
    table *newest = notifications->newest;
    notifications->newest = NULL;
    bp_lock_release(&notifications->lock);
    bp_ring_close(notifications->ring);
    free(newest);
}

void bp_notifications_free(bp_notifications *notifications) {
    if (notifications != NULL) {
        bp_notifications_close(notifications);
        bp_ring_free(notifications->ring);
        bp_lock_destroy(&notifications->lock);
        free(notifications);
    }
}

size_t bp_notifications_ring_bytes(void) {
    return 5 * (size_t)live_bytes;
}

bp_ring *bp_notifications_ring(bp_notifications *notifications) {
    return notifications->ring;
}

/* FNV-1a (Fowler, Noll, Vo), 64 bits. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t byte_count) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < byte_count; i++) {
        hash = (hash ^ at[i]) * 0x100000001B3u;
    }
    return hash;
}

/* Fills a slot. Without a lock: `made` is the caller's own. */
static void fill(slot *made, uint64_t now_ns, bugpack_level level, const char *source,
                 const char *text, size_t text_bytes) {
    size_t source_bytes = source == NULL ? 0 : strnlen(source, BUGPACK_CHANNEL_MAX_BYTES + 1);
    size_t source_kept =
        source_bytes == 0 ? 0 : bp_utf8_cut(source, source_bytes, BUGPACK_CHANNEL_MAX_BYTES);
    size_t text_kept =
        text_bytes == 0 ? 0 : bp_utf8_cut(text, text_bytes, BUGPACK_NOTIFICATION_MAX_BYTES);
    unsigned known_level = level > BUGPACK_LEVEL_FATAL   ? BUGPACK_LEVEL_FATAL
                           : level < BUGPACK_LEVEL_TRACE ? BUGPACK_LEVEL_INFO
                                                         : level;
    bool is_cut = source_kept < source_bytes || text_kept < text_bytes;
    made->header = (bp_notification_header){
        .first_ns = now_ns,
        .last_ns = now_ns,
        .count = 1,
        .text_bytes = (uint16_t)text_kept,
        .source_bytes = (uint8_t)source_kept,
        .level = (uint8_t)(known_level | (is_cut ? BP_NOTIFICATION_CUT : 0))};
    if (source_kept > 0) {
        memcpy(made->body, source, source_kept);
    }
    if (text_kept > 0) {
        memcpy(made->body + source_kept, text, text_kept);
    }
    uint64_t hash = hash_bytes(0xCBF29CE484222325u, &made->header.level, 1);
    hash = hash_bytes(hash, &made->header.source_bytes, 1);
    made->hash = hash_bytes(hash, made->body, source_kept + text_kept);
}

static size_t body_bytes(const slot *of) {
    return (size_t)of->header.source_bytes + of->header.text_bytes;
}

static bool is_equal(const slot *one, const slot *other) {
    return other->header.id != 0 && one->header.level == other->header.level &&
           one->header.source_bytes == other->header.source_bytes &&
           one->header.text_bytes == other->header.text_bytes &&
           memcmp(one->body, other->body, body_bytes(one)) == 0;
}

/* The one that `made` repeats, or NULL. Times of several threads may arrive out of order. */
static slot *find(table *newest, const slot *made) {
    for (size_t i = 0; i < kept_count; i++) {
        if (newest->hashes[i] != made->hash) {
            continue;
        }
        slot *other = &newest->slots[i];
        bool is_recent = made->header.first_ns <= other->header.first_ns ||
                         made->header.first_ns - other->header.first_ns <= BP_NOTIFICATIONS_FOLD_NS;
        if (is_recent && is_equal(made, other)) {
            return other;
        }
    }
    return NULL;
}

/* Replaces the oldest. */
static slot *insert(bp_notifications *notifications, const slot *made) {
    uint64_t id = ++notifications->newest_id;
    slot *place = &notifications->newest->slots[id % kept_count];
    notifications->newest->hashes[id % kept_count] = made->hash;
    place->header = made->header;
    place->header.id = id;
    memcpy(place->body, made->body, body_bytes(made));
    return place;
}

static void append(bp_notifications *notifications, slot *of, bool whole) {
    const struct iovec parts[] = {{.iov_base = &of->header, .iov_len = sizeof of->header},
                                  {.iov_base = of->body, .iov_len = whole ? body_bytes(of) : 0}};
    (void)bp_ring_append(notifications->ring,
                         whole ? BP_NOTIFICATION_WHOLE : BP_NOTIFICATION_REPEATED, parts, 2);
    if (whole) {
        of->written_at = notifications->position;
    }
    size_t payload_bytes = parts[0].iov_len + parts[1].iov_len;
    notifications->position += frame_bytes + ((payload_bytes + 7) & ~(size_t)7);
}

static void rewrite_old(bp_notifications *notifications) {
    unsigned rewritten = 0;
    for (unsigned i = 0; i < look_count && rewritten < rewrite_count; i++) {
        slot *at = &notifications->newest->slots[notifications->hand];
        notifications->hand = (notifications->hand + 1) % kept_count;
        if (at->header.id != 0 && notifications->position - at->written_at > old_bytes) {
            append(notifications, at, true);
            rewritten++;
        }
    }
}

void bp_notifications_add(bp_notifications *notifications, uint64_t now_ns, bugpack_level level,
                          const char *source, const char *text, size_t text_bytes) {
    slot made;
    fill(&made, now_ns, level, source, text, text_bytes);
    bp_lock_acquire(&notifications->lock);
    if (notifications->newest != NULL) {
        slot *repeated = find(notifications->newest, &made);
        if (repeated == NULL) {
            append(notifications, insert(notifications, &made), true);
        } else {
            bp_notification_header *header = &repeated->header;
            header->count += header->count < UINT32_MAX;
            header->last_ns = now_ns > header->last_ns ? now_ns : header->last_ns;
            append(notifications, repeated, false);
        }
        rewrite_old(notifications);
    }
    bp_lock_release(&notifications->lock);
}
