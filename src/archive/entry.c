#include "archive/entry.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

static zip_int64_t fail(bp_entry *entry, int zip_code) {
    zip_error_set(&entry->zip_error, zip_code, 0);
    return -1;
}

/*
 * With the method, both sizes and the checksum in here, libzip copies the data as they are. Without
 * a size it would force zip64 records, on whose way it writes through an allocation that failed
 * (_zip_dirent_write, 1.7.3).
 */
static zip_int64_t entry_stat(bp_entry *entry, void *data, zip_uint64_t byte_count) {
    if (byte_count < sizeof(zip_stat_t)) {
        return fail(entry, ZIP_ER_INVAL);
    }
    zip_stat_t *info = data;
    zip_stat_init(info);
    info->size = entry->plain.byte_count;
    info->comp_size = entry->packed.stored.byte_count;
    info->comp_method = entry->packed.is_deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    info->crc = entry->packed.crc;
    info->mtime = (time_t)(entry->wall_ns / BP_NS_PER_SEC);
    info->valid =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_CRC | ZIP_STAT_MTIME;
    return 0;
}

static zip_int64_t entry_read(bp_entry *entry, void *out, zip_uint64_t byte_count) {
    const bp_bytes *stored = &entry->packed.stored;
    uint64_t left = stored->byte_count - entry->position;
    size_t count = byte_count < left ? (size_t)byte_count : (size_t)left;
    if (!bp_bytes_read(stored, entry->position, out, count, entry->sink->stop)) {
        return fail(entry, ZIP_ER_READ);
    }
    entry->position += count;
    return (zip_int64_t)count;
}

static zip_int64_t call(void *context, void *data, zip_uint64_t byte_count,
                        zip_source_cmd_t command) {
    bp_entry *entry = context;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_READABLE;
    case ZIP_SOURCE_STAT:
        /* zip_close asks once before it writes the local header, and once more behind the data. */
        if (entry->end_offset == 0) {
            entry->header_offset = entry->sink->write_offset;
        }
        return entry_stat(entry, data, byte_count);
    case ZIP_SOURCE_OPEN:
        if (entry->end_offset != 0) {
            return fail(entry, ZIP_ER_INVAL); /* a second reading: the bytes are gone */
        }
        return 0;
    case ZIP_SOURCE_READ:
        return entry_read(entry, data, byte_count);
    case ZIP_SOURCE_CLOSE:
        entry->end_offset = entry->sink->write_offset;
        bp_buffer_release(&entry->packed.deflated);
        return 0;
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&entry->zip_error, data, byte_count);
    case ZIP_SOURCE_FREE: /* the archive frees the entry */
        return 0;
    default:
        return fail(entry, ZIP_ER_OPNOTSUPP);
    }
}

zip_source_t *bp_entry_source(bp_entry *entry) {
    zip_error_init(&entry->zip_error);
    return zip_source_function_create(call, entry, NULL);
}

void bp_entry_free(bp_entry *entry) {
    if (entry != NULL) {
        bp_buffer_release(&entry->packed.deflated);
        free(entry);
    }
}
