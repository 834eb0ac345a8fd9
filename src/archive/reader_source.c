#include "archive/reader_source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static zip_int64_t fail(bp_reader_source *source, int zip_code, int system_errno) {
    if (source->system_errno == 0) {
        source->system_errno = system_errno;
    }
    zip_error_set(&source->zip_error, zip_code, system_errno);
    return -1;
}

static zip_int64_t read_file(bp_reader_source *source, void *bytes, uint64_t byte_count) {
    ssize_t count;
    do {
        count = pread(source->fd, bytes, (size_t)byte_count, (off_t)source->offset);
    } while (count < 0 && errno == EINTR);
    return count < 0 ? fail(source, ZIP_ER_READ, errno) : (zip_int64_t)count;
}

/* One piece: from the file, or from memory. 0 at the end. */
static zip_int64_t read_piece(bp_reader_source *source, void *bytes, uint64_t byte_count) {
    const bp_directory *directory = source->directory;
    if (source->offset >= directory->file_bytes) {
        return 0;
    }
    if (source->offset < directory->tail_offset) {
        uint64_t left = directory->tail_offset - source->offset;
        return read_file(source, bytes, byte_count < left ? byte_count : left);
    }
    uint64_t left = directory->file_bytes - source->offset;
    uint64_t given = byte_count < left ? byte_count : left;
    memcpy(bytes, directory->tail + (source->offset - directory->tail_offset), (size_t)given);
    return (zip_int64_t)given;
}

/* All that there is, because libzip takes a short count for the end of the file. */
static zip_int64_t read_all(bp_reader_source *source, char *bytes, uint64_t byte_count) {
    uint64_t done = 0;
    while (done < byte_count) {
        zip_int64_t given = read_piece(source, bytes + done, byte_count - done);
        if (given < 0) {
            return -1;
        }
        if (given == 0) {
            break;
        }
        source->offset += (uint64_t)given;
        done += (uint64_t)given;
    }
    return (zip_int64_t)done;
}

static zip_int64_t tell_size(bp_reader_source *source, void *data, zip_uint64_t byte_count) {
    if (byte_count < sizeof(zip_stat_t)) {
        return fail(source, ZIP_ER_INVAL, 0);
    }
    zip_stat_t *info = data;
    zip_stat_init(info);
    info->size = source->directory->file_bytes;
    info->valid = ZIP_STAT_SIZE;
    return 0;
}

static zip_int64_t seek(bp_reader_source *source, void *data, zip_uint64_t byte_count) {
    zip_int64_t target = zip_source_seek_compute_offset(
        source->offset, source->directory->file_bytes, data, byte_count, &source->zip_error);
    if (target < 0) {
        return -1;
    }
    source->offset = (uint64_t)target;
    return 0;
}

static zip_int64_t call(void *context, void *data, zip_uint64_t byte_count,
                        zip_source_cmd_t command) {
    bp_reader_source *source = context;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_SEEKABLE;
    case ZIP_SOURCE_STAT:
        return tell_size(source, data, byte_count);
    case ZIP_SOURCE_OPEN:
        source->offset = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return read_all(source, data, byte_count);
    case ZIP_SOURCE_SEEK:
        return seek(source, data, byte_count);
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)source->offset;
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&source->zip_error, data, byte_count);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        return fail(source, ZIP_ER_OPNOTSUPP, 0);
    }
}

zip_source_t *bp_reader_source_new(bp_reader_source *source, int fd,
                                   const bp_directory *directory) {
    *source = (bp_reader_source){.fd = fd, .directory = directory};
    zip_error_init(&source->zip_error);
    return zip_source_function_create(call, source, NULL);
}
