#include "recorder/notifications.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/lock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "json/json.h"
#include "model/fields.h"
#include "ring/ring_reader.h"

enum { kept_count = BUGPACK_NOTIFICATION_KEPT };

/* The tags of records, which later versions read too: a whole notification, or its header alone,
 * for a repetition. */
#define TAG_WHOLE 1u
#define TAG_REPEATED 2u

/*
 * Every record has the sum so far, so the newest one of an id is enough. A whole one is followed by
 * source and text, without a NUL.
 */
typedef struct record_header {
    uint64_t id; /* from 1, in the order of the first occurrence */
    uint64_t first_ns, last_ns;
    uint32_t count;
    uint16_t text_bytes;
    uint8_t source_bytes;
    uint8_t level; /* with LEVEL_CUT when source or text were longer */
} record_header;

#define LEVEL_CUT 0x80u

enum { body_max_bytes = BUGPACK_CHANNEL_MAX_BYTES + BUGPACK_NOTIFICATION_MAX_BYTES };

/* The longest record with the ring's frame, and as many as are kept. */
enum {
    frame_bytes = BP_RING_FRAME_BYTES,
    record_bytes = frame_bytes + sizeof(record_header) + body_max_bytes,
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
    record_header header; /* id 0: the slot is free */
    uint64_t hash;
    uint64_t written_at; /* position of the newest record with the text */
    char body[body_max_bytes];
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
    if (notifications == NULL || newest == NULL) {
        free(newest);
        free(notifications);
        return bp_fail_memory(error, "record notifications");
    }
    bp_lock_init(&notifications->lock, BP_LOCK_NOTIFICATIONS);
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

/* Fills a slot. Without a lock: `made` is the caller's own. */
static void fill(slot *made, uint64_t now_ns, bugpack_level level, const char *source,
                 const char *text, size_t text_bytes) {
    size_t source_bytes = source == NULL ? 0 : strnlen(source, BUGPACK_CHANNEL_MAX_BYTES + 1);
    size_t source_kept = bp_utf8_cut(source, source_bytes, BUGPACK_CHANNEL_MAX_BYTES);
    size_t text_kept = bp_utf8_cut(text, text_bytes, BUGPACK_NOTIFICATION_MAX_BYTES);
    unsigned known_level = level > BUGPACK_LEVEL_FATAL   ? BUGPACK_LEVEL_FATAL
                           : level < BUGPACK_LEVEL_TRACE ? BUGPACK_LEVEL_INFO
                                                         : level;
    bool is_cut = source_kept < source_bytes || text_kept < text_bytes;
    made->header = (record_header){.first_ns = now_ns,
                                   .last_ns = now_ns,
                                   .count = 1,
                                   .text_bytes = (uint16_t)text_kept,
                                   .source_bytes = (uint8_t)source_kept,
                                   .level = (uint8_t)(known_level | (is_cut ? LEVEL_CUT : 0))};
    if (source_kept > 0) {
        memcpy(made->body, source, source_kept);
    }
    if (text_kept > 0) {
        memcpy(made->body + source_kept, text, text_kept);
    }
    made->hash = XXH3_64bits_withSeed(made->body, source_kept + text_kept,
                                      (uint64_t)made->header.level << 8 | source_kept);
}

static size_t body_bytes(const slot *of) {
    return (size_t)of->header.source_bytes + of->header.text_bytes;
}

/* The one that `made` repeats, or NULL. Times of several threads may arrive out of order. */
static slot *find(table *newest, const slot *made) {
    for (size_t i = 0; i < kept_count; i++) {
        slot *other = &newest->slots[i];
        const record_header *is = &made->header, *was = &other->header;
        if (newest->hashes[i] == made->hash && was->id != 0 &&
            (is->first_ns <= was->first_ns ||
             is->first_ns - was->first_ns <= BP_NOTIFICATIONS_FOLD_NS) &&
            is->level == was->level && is->source_bytes == was->source_bytes &&
            is->text_bytes == was->text_bytes &&
            memcmp(made->body, other->body, body_bytes(made)) == 0) {
            return other;
        }
    }
    return NULL;
}

static void append(bp_notifications *notifications, slot *of, bool whole) {
    const struct iovec parts[] = {{.iov_base = &of->header, .iov_len = sizeof of->header},
                                  {.iov_base = of->body, .iov_len = whole ? body_bytes(of) : 0}};
    (void)bp_ring_append(notifications->ring, whole ? TAG_WHOLE : TAG_REPEATED, parts, 2);
    if (whole) {
        of->written_at = notifications->position;
    }
    size_t payload_bytes = parts[0].iov_len + parts[1].iov_len;
    notifications->position += frame_bytes + ((payload_bytes + 7) & ~(size_t)7);
}

void bp_notifications_add(bp_notifications *notifications, uint64_t now_ns, bugpack_level level,
                          const char *source, const char *text, size_t text_bytes) {
    slot made;
    fill(&made, now_ns, level, source, text, text_bytes);
    bp_lock_acquire(&notifications->lock);
    if (notifications->newest != NULL) {
        slot *repeated = find(notifications->newest, &made);
        if (repeated == NULL) { /* it replaces the oldest */
            uint64_t id = ++notifications->newest_id;
            slot *place = &notifications->newest->slots[id % kept_count];
            notifications->newest->hashes[id % kept_count] = made.hash;
            place->header = made.header;
            place->header.id = id;
            memcpy(place->body, made.body, body_bytes(&made));
            append(notifications, place, true);
        } else {
            record_header *header = &repeated->header;
            header->count += header->count < UINT32_MAX;
            header->last_ns = now_ns > header->last_ns ? now_ns : header->last_ns;
            append(notifications, repeated, false);
        }
        for (unsigned i = 0, rewritten = 0; i < look_count && rewritten < rewrite_count; i++) {
            slot *at = &notifications->newest->slots[notifications->hand];
            notifications->hand = (notifications->hand + 1) % kept_count;
            if (at->header.id != 0 && notifications->position - at->written_at > old_bytes) {
                append(notifications, at, true);
                rewritten++;
            }
        }
    }
    bp_lock_release(&notifications->lock);
}

/* One notification, at index `id % kept_count`. */
typedef struct notification {
    record_header header; /* id 0: none */
    bool has_body;
    char body[body_max_bytes];
} notification;

typedef struct merged {
    uint64_t newest_id;
    notification places[kept_count];
} merged;

/* False for a record that this version cannot have written. */
static bool read_header(const bp_ring_record *record, const void *payload, record_header *header) {
    if (record->payload_bytes < sizeof *header) {
        return false;
    }
    memcpy(header, payload, sizeof *header);
    size_t body_bytes =
        record->tag == TAG_WHOLE ? (size_t)header->source_bytes + header->text_bytes : 0;
    return (record->tag == TAG_WHOLE || record->tag == TAG_REPEATED) && header->id != 0 &&
           header->count != 0 && header->source_bytes <= BUGPACK_CHANNEL_MAX_BYTES &&
           header->text_bytes <= BUGPACK_NOTIFICATION_MAX_BYTES &&
           record->payload_bytes == sizeof *header + body_bytes;
}

/* Merges one record. Rewritten ones make ids come out of order. */
static void merge(merged *all, const bp_ring_record *record, const void *payload) {
    record_header header;
    if (!read_header(record, payload, &header)) {
        return;
    }
    notification *place = &all->places[header.id % kept_count];
    if (header.id < place->header.id) {
        return;
    }
    if (header.id > place->header.id) {
        place->has_body = false;
        place->header = header;
    }
    if (header.count > place->header.count) {
        place->header.count = header.count;
    }
    if (header.last_ns > place->header.last_ns) {
        place->header.last_ns = header.last_ns;
    }
    if (record->tag == TAG_WHOLE && !place->has_body) {
        place->has_body = true;
        place->header.source_bytes = header.source_bytes;
        place->header.text_bytes = header.text_bytes;
        memcpy(place->body, (const char *)payload + sizeof header,
               (size_t)header.source_bytes + header.text_bytes);
    }
    all->newest_id = header.id > all->newest_id ? header.id : all->newest_id;
}

static void print_one(bp_json *json, const notification *of, uint64_t wall_offset_ns) {
    const record_header *header = &of->header;
    bp_json_object_begin(json, NULL);
    bp_model_add_time(json, "first", header->first_ns + wall_offset_ns);
    bp_model_add_time(json, "last", header->last_ns + wall_offset_ns);
    bp_json_add_uint(json, "count", header->count);
    bp_json_add_text(json, "level", bp_level_name((uint8_t)(header->level & ~LEVEL_CUT)));
    if (of->has_body) {
        bp_json_add_bytes(json, "source", header->source_bytes == 0 ? NULL : of->body,
                          header->source_bytes);
        bp_json_add_bytes(json, "text", of->body + header->source_bytes, header->text_bytes);
    }
    if ((header->level & LEVEL_CUT) != 0) {
        bp_json_add_bool(json, "truncated", true);
    }
    bp_json_object_end(json);
}

static bugpack_status print_table(const merged *all, uint64_t wall_offset_ns, bp_buffer *out,
                                  bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    uint32_t count = 0;
    uint64_t oldest_id =
        all->newest_id < kept_count ? 1 : all->newest_id - (uint64_t)kept_count + 1;
    bp_json_array_begin(&json, "notifications");
    for (uint64_t i = 0; i < kept_count; i++) {
        const notification *place = &all->places[(oldest_id + i) % kept_count];
        if (place->header.id == oldest_id + i) {
            print_one(&json, place, wall_offset_ns);
            count++;
        }
    }
    bp_json_array_end(&json);
    bp_json_add_uint(&json, "dropped", all->newest_id - count);
    return bp_json_finish(&json, error);
}

bugpack_status bp_notifications_print(const bp_temp_file *records, uint64_t wall_offset_ns,
                                      bp_buffer *out, bugpack_error *error) {
    merged *all = calloc(1, sizeof *all);
    if (all == NULL) {
        return bp_fail_memory(error, "write the notifications");
    }
    bp_ring_reader reader;
    bp_ring_reader_init(&reader, records);
    const bp_ring_record *record;
    const void *payload = NULL;
    while ((record = bp_ring_reader_next(&reader, &payload)) != NULL) {
        merge(all, record, payload);
    }
    bugpack_status status = BUGPACK_OK; /* the reader stops in the same way where it cannot read */
    if (reader.window.status != BUGPACK_OK) {
        status = bp_fail_memory(error, "write the notifications");
    } else if (reader.offset != records->size) {
        status = bp_fail(error, BUGPACK_ERR_IO, "cannot read the notifications back");
    }
    bp_ring_reader_release(&reader);
    if (status == BUGPACK_OK) {
        status = print_table(all, wall_offset_ns, out, error);
    }
    free(all);
    return status;
}
