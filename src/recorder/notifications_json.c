#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/fields.h"
#include "recorder/log_recorder.h"
#include "recorder/notification_record.h"
#include "recorder/notifications.h"
#include "ring/ring_reader.h"
#include "json/json.h"

enum { kept_count = BUGPACK_NOTIFICATION_KEPT };

/* What is known of one, at index `id % kept_count`. */
typedef struct notification {
    bp_notification_header header; /* id 0: none */
    bool has_body;
    char body[BP_NOTIFICATION_BODY_BYTES];
} notification;

typedef struct table {
    uint64_t newest_id;
    notification places[kept_count];
} table;

/* False for a record that this version cannot have written. */
static bool read_header(const bp_ring_record *record, const void *payload,
                        bp_notification_header *header) {
    if (record->payload_bytes < sizeof *header) {
        return false;
    }
    memcpy(header, payload, sizeof *header);
    size_t body_bytes = record->tag == BP_NOTIFICATION_WHOLE
                            ? (size_t)header->source_bytes + header->text_bytes
                            : 0;
    return (record->tag == BP_NOTIFICATION_WHOLE || record->tag == BP_NOTIFICATION_REPEATED) &&
           header->id != 0 && header->count != 0 &&
           header->source_bytes <= BUGPACK_CHANNEL_MAX_BYTES &&
           header->text_bytes <= BUGPACK_NOTIFICATION_MAX_BYTES &&
           record->payload_bytes == sizeof *header + body_bytes;
}

/* Merges one record. Rewritten ones make ids come out of order. */
static void merge(table *all, const bp_ring_record *record, const void *payload) {
    bp_notification_header header;
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
    if (record->tag == BP_NOTIFICATION_WHOLE && !place->has_body) {
        place->has_body = true;
        place->header.source_bytes = header.source_bytes;
        place->header.text_bytes = header.text_bytes;
        memcpy(place->body, (const char *)payload + sizeof header,
               (size_t)header.source_bytes + header.text_bytes);
    }
    all->newest_id = header.id > all->newest_id ? header.id : all->newest_id;
}

static void print_one(bp_json *json, const notification *of, uint64_t wall_offset_ns) {
    const bp_notification_header *header = &of->header;
    bp_json_object_begin(json, NULL);
    bp_model_add_time(json, "first", header->first_ns + wall_offset_ns);
    bp_model_add_time(json, "last", header->last_ns + wall_offset_ns);
    bp_json_add_uint(json, "count", header->count);
    bp_json_add_text(json, "level", bp_level_name((uint8_t)(header->level & ~BP_NOTIFICATION_CUT)));
    if (of->has_body) {
        bp_json_add_bytes(json, "source", header->source_bytes == 0 ? NULL : of->body,
                          header->source_bytes);
        bp_json_add_bytes(json, "text", of->body + header->source_bytes, header->text_bytes);
    }
    if ((header->level & BP_NOTIFICATION_CUT) != 0) {
        bp_json_add_bool(json, "truncated", true);
    }
    bp_json_object_end(json);
}

static bugpack_status print_table(const table *all, uint64_t wall_offset_ns, bp_buffer *out,
                                  uint32_t *ret_count, bugpack_error *error) {
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
    bugpack_status status = bp_json_finish(&json, error);
    if (status == BUGPACK_OK) {
        *ret_count = count;
    }
    return status;
}

/* The reader stops in the same way where it cannot read. */
static bugpack_status check_end(const bp_ring_reader *reader, const bp_temp_file *records,
                                bugpack_error *error) {
    if (reader->window.status != BUGPACK_OK) {
        return bp_fail_memory(error, "write the notifications");
    }
    if (reader->offset != records->size) {
        return bp_fail(error, BUGPACK_ERR_IO, "cannot read the notifications back");
    }
    return BUGPACK_OK;
}

bugpack_status bp_notifications_print(const bp_temp_file *records, uint64_t wall_offset_ns,
                                      bp_buffer *out, uint32_t *ret_count, bugpack_error *error) {
    table *all = calloc(1, sizeof *all);
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
    bugpack_status status = check_end(&reader, records, error);
    bp_ring_reader_release(&reader);
    if (status == BUGPACK_OK) {
        status = print_table(all, wall_offset_ns, out, ret_count, error);
    }
    free(all);
    return status;
}
