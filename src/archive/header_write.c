/*
 * APPNOTE.TXT, 4.3.7 (local header), 4.3.12 (directory), 4.3.14 to 4.3.16 (end), 4.5 (extra
 * fields).
 */
#include "archive/header_write.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/zip_format.h"
#include "base/clock.h"

enum {
    version_plain = 20,
    version_zip64 = 45,
    version_made = 63,     /* of the specification */
    made_on_unix = 3 << 8, /* so that the mode is in the upper half of the external attributes */
    id_times = 0x5455,
    id_padding = 0xA220, /* "Growth Hint": readers skip it (4.6.10) */
    padding_signature = 0xA028,
    sizes_bytes = 4 + 16, /* an extra field with two sizes of 64 bits */
    times_bytes = 4 + 5
};

static void put(bp_buffer *out, uint64_t value, unsigned byte_count) {
    unsigned char bytes[8];
    for (unsigned i = 0; i < byte_count; i++) {
        bytes[i] = (unsigned char)(value >> 8 * i);
    }
    (void)bp_buffer_append(out, bytes, byte_count);
}

/* The DOS date (upper half) and time (lower half) in UTC, clamped to 1980 and 2107. */
static uint32_t dos_time(uint64_t wall_ns) {
    bp_civil_time at = bp_clock_civil(wall_ns);
    if (at.year < 1980) {
        return 1u << 21 | 1u << 16;
    }
    if (at.year > 1980 + 127) {
        return 127u << 25 | 12u << 21 | 31u << 16 | 23u << 11 | 59u << 5 | 29u;
    }
    return (uint32_t)(at.year - 1980) << 25 | (uint32_t)at.month << 21 | (uint32_t)at.day << 16 |
           (uint32_t)at.hour << 11 | (uint32_t)at.minute << 5 | (uint32_t)at.second >> 1;
}

static size_t times_field_bytes(const bp_entry_header *header) {
    return header->wall_ns / BP_NS_PER_SEC <= INT32_MAX ? times_bytes : 0;
}

static bool is_large(const bp_entry_header *header) {
    return header->bytes >= BP_ZIP_ELSEWHERE_32 || header->packed_bytes >= BP_ZIP_ELSEWHERE_32;
}

/* What both headers have in common: from the version to the length of the extra fields. */
static void put_common(const bp_entry_header *header, bool is_zip64, size_t extra_bytes,
                       bp_buffer *out) {
    put(out, is_zip64 ? version_zip64 : version_plain, 2);
    put(out, bp_zip_is_ascii(header->name, strlen(header->name)) ? 0 : BP_ZIP_FLAG_UTF8, 2);
    put(out, header->method, 2);
    put(out, dos_time(header->wall_ns), 4);
    put(out, header->crc, 4);
    put(out, is_large(header) ? BP_ZIP_ELSEWHERE_32 : header->packed_bytes, 4);
    put(out, is_large(header) ? BP_ZIP_ELSEWHERE_32 : header->bytes, 4);
    put(out, strlen(header->name), 2);
    put(out, extra_bytes, 2);
}

static void put_times(const bp_entry_header *header, bp_buffer *out) {
    if (times_field_bytes(header) > 0) {
        put(out, id_times, 2);
        put(out, times_bytes - 4, 2);
        put(out, 1, 1); /* the modification time alone */
        put(out, header->wall_ns / BP_NS_PER_SEC, 4);
    }
}

size_t bp_header_local_bytes(const bp_entry_header *header) {
    return BP_ZIP_LOCAL_BYTES + strlen(header->name) + sizes_bytes + times_field_bytes(header);
}

void bp_header_write_local(const bp_entry_header *header, bp_buffer *out) {
    (void)bp_buffer_append(out, "PK\3\4", 4);
    put_common(header, is_large(header), sizes_bytes + times_field_bytes(header), out);
    (void)bp_buffer_append_text(out, header->name);
    /* The place for a zip64 field is always there; padding fills it where none is needed. */
    put(out, is_large(header) ? BP_ZIP_EXTRA_ZIP64 : id_padding, 2);
    put(out, sizes_bytes - 4, 2);
    put(out, is_large(header) ? header->bytes : padding_signature, 8);
    put(out, is_large(header) ? header->packed_bytes : 0, 8);
    put_times(header, out);
}

void bp_header_write_central(const bp_entry_header *header, bp_buffer *out) {
    bool is_far = header->offset >= BP_ZIP_ELSEWHERE_32;
    size_t zip64_bytes = (is_large(header) ? 16 : 0) + (is_far ? 8 : 0);
    size_t zip64_field_bytes = zip64_bytes > 0 ? 4 + zip64_bytes : 0;
    (void)bp_buffer_append(out, "PK\1\2", 4);
    put(out, made_on_unix | version_made, 2);
    put_common(header, zip64_bytes > 0, zip64_field_bytes + times_field_bytes(header), out);
    put(out, 0, 6); /* no comment, first disk, no internal attributes */
    put(out, (uint64_t)(S_IFREG | 0600) << 16, 4);
    put(out, is_far ? BP_ZIP_ELSEWHERE_32 : header->offset, 4);
    (void)bp_buffer_append_text(out, header->name);
    if (zip64_bytes > 0) {
        put(out, BP_ZIP_EXTRA_ZIP64, 2);
        put(out, zip64_bytes, 2);
    }
    if (is_large(header)) {
        put(out, header->bytes, 8);
        put(out, header->packed_bytes, 8);
    }
    if (is_far) {
        put(out, header->offset, 8);
    }
    put_times(header, out);
}

void bp_header_write_end(uint16_t entry_count, uint64_t offset, uint32_t directory_bytes,
                         bp_buffer *out) {
    bool is_far = offset >= BP_ZIP_ELSEWHERE_32;
    if (is_far) {
        (void)bp_buffer_append(out, "PK\6\6", 4);
        put(out, BP_ZIP64_END_BYTES - 12, 8); /* does not count itself and the signature */
        put(out, made_on_unix | version_made, 2);
        put(out, version_zip64, 2);
        put(out, 0, 8); /* this disk, and the directory's */
        put(out, entry_count, 8);
        put(out, entry_count, 8);
        put(out, directory_bytes, 8);
        put(out, offset, 8);
        (void)bp_buffer_append(out, "PK\6\7", 4);
        put(out, 0, 4);
        put(out, offset + directory_bytes, 8);
        put(out, 1, 4);
    }
    (void)bp_buffer_append(out, "PK\5\6", 4);
    put(out, 0, 4);
    put(out, entry_count, 2);
    put(out, entry_count, 2);
    put(out, directory_bytes, 4);
    put(out, is_far ? BP_ZIP_ELSEWHERE_32 : offset, 4);
    put(out, 0, 2);
}
