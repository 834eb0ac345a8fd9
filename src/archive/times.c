#include "archive/times.h"

#include <string.h>

#include "base/clock.h"

/* Sizes and places in the two headers: APPNOTE.TXT 4.3.7 and 4.3.12. */
enum {
    local_bytes = 30,
    local_time_at = 10,
    central_bytes = 46,
    central_time_at = 12,
    central_name_length_at = 28,
    central_extra_length_at = 30,
    central_comment_length_at = 32,
    time_bytes = 4
};

static const uint32_t dos_first = 1u << 21 | 1u << 16; /* 1980-01-01 00:00:00 */
static const uint32_t dos_last = 127u << 25 | 12u << 21 | 31u << 16 | 23u << 11 | 59u << 5 | 29u;

/* The DOS date (upper half) and time (lower half) in UTC, clamped to 1980 and 2107. */
static uint32_t dos_time(uint64_t wall_ns) {
    bp_civil_time at = bp_clock_civil(wall_ns);
    if (at.year < 1980) {
        return dos_first;
    }
    if (at.year > 1980 + 127) {
        return dos_last;
    }
    return (uint32_t)(at.year - 1980) << 25 | (uint32_t)at.month << 21 | (uint32_t)at.day << 16 |
           (uint32_t)at.hour << 11 | (uint32_t)at.minute << 5 | (uint32_t)at.second >> 1;
}

static void put_le32(unsigned char *out, uint32_t value) {
    for (unsigned i = 0; i < 4; i++) {
        out[i] = (unsigned char)(value >> 8 * i);
    }
}

static unsigned get_le16(const unsigned char *bytes) {
    return bytes[0] | (unsigned)bytes[1] << 8;
}

bool bp_times_extra(uint64_t wall_ns, unsigned char out[BP_TIMES_EXTRA_BYTES]) {
    uint64_t seconds = wall_ns / BP_NS_PER_SEC;
    if (seconds > INT32_MAX) {
        return false;
    }
    out[0] = 1; /* the modification time follows, and nothing else */
    put_le32(out + 1, (uint32_t)seconds);
    return true;
}

/* Reads one header, checks that it is one, and mends its time. */
static bool mend(bp_sink *sink, uint64_t offset, unsigned char *header, size_t header_bytes,
                 const char *magic, size_t time_at, uint32_t dos, bool *ret_is_strange) {
    if (!bp_sink_read_at(sink, offset, header, header_bytes)) {
        return false;
    }
    if (memcmp(header, magic, 4) != 0) {
        *ret_is_strange = true;
        return false;
    }
    unsigned char utc[time_bytes];
    put_le32(utc, dos);
    return memcmp(header + time_at, utc, sizeof utc) == 0 ||
           bp_sink_write_at(sink, offset + time_at, utc, sizeof utc);
}

bool bp_times_write_utc(bp_sink *sink, const bp_entry *first, bool *ret_is_strange) {
    uint64_t central_offset = 0;
    for (const bp_entry *entry = first; entry != NULL; entry = entry->next) {
        unsigned char header[local_bytes];
        if (!mend(sink, entry->header_offset, header, sizeof header, "PK\3\4", local_time_at,
                  dos_time(entry->wall_ns), ret_is_strange)) {
            return false;
        }
        central_offset = entry->end_offset; /* the directory follows the last entry's data */
    }
    for (const bp_entry *entry = first; entry != NULL; entry = entry->next) {
        unsigned char header[central_bytes];
        if (!mend(sink, central_offset, header, sizeof header, "PK\1\2", central_time_at,
                  dos_time(entry->wall_ns), ret_is_strange)) {
            return false;
        }
        central_offset += central_bytes + get_le16(header + central_name_length_at) +
                          get_le16(header + central_extra_length_at) +
                          get_le16(header + central_comment_length_at);
    }
    return true;
}
