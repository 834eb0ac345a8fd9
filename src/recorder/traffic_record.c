#include "recorder/traffic_record.h"

#include <errno.h>
#include <string.h>

#include "ring/ring.h"

const void *bp_traffic_window_see(bp_traffic_window *window, uint64_t offset, size_t byte_count) {
    uint64_t skipped = offset - window->start;
    if (offset < window->start || skipped > window->size || byte_count > window->size - skipped) {
        window->start = offset;
        window->size = 0;
        skipped = 0;
        while (window->size < byte_count && byte_count <= sizeof window->bytes) {
            int64_t got = bp_temp_file_read(window->temp_file, offset + window->size,
                                            window->bytes + window->size,
                                            sizeof window->bytes - window->size);
            if (got < 0 && window->system_errno == 0) {
                window->system_errno = errno;
            }
            if (got <= 0) {
                break;
            }
            window->size += (size_t)got;
        }
        if (window->size < byte_count) {
            return NULL;
        }
    }
    return window->bytes + skipped;
}

/*
 * Validates everything: the record may come from anybody's file. `payload` is all of it, or as many
 * bytes as a header with the longest name has.
 */
static bool parse(const bp_ring_record *record, const unsigned char *payload, uint64_t offset,
                  bp_traffic_record *ret_record) {
    bp_traffic_header header;
    bool is_pin = record->tag == BP_TRAFFIC_TAG_PIN;
    size_t prefix_bytes = is_pin ? sizeof(uint64_t) : 0;
    uint64_t sequence = record->sequence;
    if ((!is_pin && record->tag != BP_TRAFFIC_TAG_MESSAGE) ||
        record->payload_bytes < prefix_bytes + sizeof header) {
        return false;
    }
    if (is_pin) {
        memcpy(&sequence, payload, sizeof sequence);
    }
    memcpy(&header, payload + prefix_bytes, sizeof header);
    size_t before_bytes = prefix_bytes + sizeof header + header.name_bytes;
    if (header.direction > 1 || header.name_bytes > BP_TRAFFIC_NAME_MAX_BYTES ||
        record->payload_bytes < before_bytes) {
        return false;
    }
    uint64_t byte_count = record->payload_bytes - before_bytes;
    *ret_record = (bp_traffic_record){
        .sequence = sequence,
        .monotonic_ns = record->monotonic_ns,
        .original_bytes = header.original_bytes > byte_count ? header.original_bytes : byte_count,
        .direction = header.direction,
        .type = header.type,
        .cuts = byte_count < header.original_bytes ? header.cuts : 0,
        .name_bytes = header.name_bytes,
        .bytes_offset = offset + sizeof *record + before_bytes,
        .byte_count = byte_count};
    memcpy(ret_record->name, payload + prefix_bytes + sizeof header, header.name_bytes);
    return true;
}

bool bp_traffic_record_next(bp_traffic_window *window, bp_traffic_part *left,
                            bp_traffic_record *ret_record) {
    const size_t header_max =
        sizeof(uint64_t) + sizeof(bp_traffic_header) + BP_TRAFFIC_NAME_MAX_BYTES;
    bp_ring_record record;
    while (left->to - left->from >= sizeof record) {
        uint64_t at = left->from;
        const void *seen = bp_traffic_window_see(window, at, sizeof record);
        if (seen == NULL) {
            return false;
        }
        memcpy(&record, seen, sizeof record);
        uint64_t padded = ((uint64_t)record.payload_bytes + 7) & ~(uint64_t)7;
        if (padded > left->to - at - sizeof record) {
            return false;
        }
        size_t wanted = padded < header_max ? (size_t)padded : header_max;
        seen = bp_traffic_window_see(window, at, sizeof record + wanted);
        if (seen == NULL) {
            return false;
        }
        left->from = at + sizeof record + padded;
        if (parse(&record, (const unsigned char *)seen + sizeof record, at, ret_record)) {
            return true;
        }
    }
    return false;
}
