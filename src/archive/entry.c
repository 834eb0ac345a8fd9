#include "archive/entry.h"

#include <errno.h>

#include "archive/deflate.h"
#include "archive/header.h"
#include "archive/zip_format.h"
#include "base/file.h"
#include "base/status.h"

static bugpack_status damaged(bp_entry_reading *reading, const char *how) {
    reading->is_told = true;
    return bp_fail(reading->error, BUGPACK_ERR_CORRUPT, "\"%s\" is damaged: entry \"%s\" %s",
                   reading->path, reading->entry->name, how);
}

/* A bp_sink: counts what comes out before anybody else gets it. */
static bugpack_status pass_on(void *context, const void *bytes, size_t byte_count) {
    bp_entry_reading *reading = context;
    if (byte_count > reading->entry->bytes - reading->done) {
        return damaged(reading, "is longer than it declares");
    }
    reading->done += byte_count;
    reading->crc = bp_deflate_crc32(reading->crc, bytes, byte_count);
    bugpack_status status = reading->sink(reading->context, bytes, byte_count);
    reading->is_told = status != BUGPACK_OK;
    return status == BUGPACK_OK
               ? BUGPACK_OK
               : bp_fail(reading->error, status, "cannot keep \"%s\" of \"%s\": %s",
                         reading->entry->name, reading->path, bugpack_status_name(status));
}

/* Reads bytes of an entry, which may be fewer only if the file has been cut since it was opened. */
static bugpack_status read_bytes(bp_entry_reading *reading, void *bytes, size_t byte_count,
                                 uint64_t offset) {
    int64_t count = bp_file_read_range(reading->fd, bytes, byte_count, offset);
    if (count < 0) {
        reading->is_told = true;
        return bp_fail_errno(reading->error, errno, "cannot read \"%s\"", reading->path);
    }
    return (size_t)count == byte_count ? BUGPACK_OK : damaged(reading, "ends too soon");
}

bugpack_status bp_entry_begin(bp_entry_reading *reading) {
    const bp_directory_entry *entry = reading->entry;
    unsigned char header[BP_ZIP_LOCAL_BYTES];
    bugpack_status status = read_bytes(reading, header, sizeof header, entry->header_offset);
    if (status == BUGPACK_OK) {
        reading->at = entry->header_offset + bp_header_local_length(header);
        reading->left = entry->packed_bytes;
        reading->is_over = entry->method == BP_ZIP_STORED;
        bp_inflater_reset(reading->inflater);
    }
    return status;
}

bugpack_status bp_entry_step(bp_entry_reading *reading, char *piece, size_t max_bytes) {
    bool is_stored = reading->entry->method == BP_ZIP_STORED;
    size_t count = reading->left < max_bytes ? (size_t)reading->left : max_bytes;
    if (!is_stored && reading->is_over) {
        return damaged(reading, "has bytes behind its end");
    }
    bugpack_status status = read_bytes(reading, piece, count, reading->at);
    if (status == BUGPACK_OK) {
        status = is_stored ? pass_on(reading, piece, count)
                           : bp_inflate(reading->inflater, piece, count, &reading->is_over, pass_on,
                                        reading);
    }
    reading->at += count;
    reading->left -= count;
    if (status == BUGPACK_OK || reading->is_told) {
        return status;
    }
    return status == BUGPACK_ERR_CORRUPT ? damaged(reading, "is not deflated right")
                                         : bp_fail_memory(reading->error, "read a zip");
}

bugpack_status bp_entry_check(bp_entry_reading *reading) {
    if (!reading->is_over || reading->done != reading->entry->bytes) {
        return damaged(reading, "is shorter than it declares");
    }
    return reading->crc == reading->entry->crc ? BUGPACK_OK
                                               : damaged(reading, "has a wrong checksum");
}
