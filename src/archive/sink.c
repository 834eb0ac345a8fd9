#include "archive/sink.h"

#include <errno.h>
#include <unistd.h>

static zip_int64_t fail(bp_sink *sink, int zip_code, int system_errno) {
    if (sink->stop->system_errno == 0) {
        sink->stop->system_errno = system_errno;
    }
    zip_error_set(&sink->zip_error, zip_code, system_errno);
    return -1;
}

bool bp_sink_write_at(bp_sink *sink, uint64_t offset, const void *bytes, uint64_t byte_count) {
    uint64_t done = 0;
    while (done < byte_count) {
        ssize_t count = pwrite(sink->fd, (const char *)bytes + done, (size_t)(byte_count - done),
                               (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            (void)fail(sink, ZIP_ER_WRITE, count == 0 ? ENOSPC : errno);
            return false;
        }
        done += (uint64_t)count;
    }
    if (sink->size < offset + done) {
        sink->size = offset + done;
    }
    return true;
}

bool bp_sink_read_at(bp_sink *sink, uint64_t offset, void *bytes, uint64_t byte_count) {
    uint64_t done = 0;
    while (done < byte_count) {
        ssize_t count = pread(sink->fd, (char *)bytes + done, (size_t)(byte_count - done),
                              (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            (void)fail(sink, ZIP_ER_READ, count == 0 ? EIO : errno);
            return false;
        }
        done += (uint64_t)count;
    }
    return true;
}

/* All of it, or failure: libzip takes a short count for an error, and repeats nothing. */
static zip_int64_t sink_write(bp_sink *sink, const void *bytes, zip_uint64_t byte_count) {
    if (bp_stop_poll(sink->stop)) {
        zip_error_set(&sink->zip_error, ZIP_ER_CANCELLED, 0);
        return -1;
    }
    if (!bp_sink_write_at(sink, sink->write_offset, bytes, byte_count)) {
        return -1;
    }
    sink->write_offset += byte_count;
    return (zip_int64_t)byte_count;
}

/* zip_open_from_source insists on a source that can be read; for a new archive nobody does. */
static zip_int64_t sink_read(bp_sink *sink, void *bytes, zip_uint64_t byte_count) {
    uint64_t left = sink->read_offset < sink->size ? sink->size - sink->read_offset : 0;
    uint64_t count = byte_count < left ? byte_count : left;
    if (!bp_sink_read_at(sink, sink->read_offset, bytes, count)) {
        return -1;
    }
    sink->read_offset += count;
    return (zip_int64_t)count;
}

static zip_int64_t sink_stat(bp_sink *sink, void *data, zip_uint64_t byte_count) {
    if (byte_count < sizeof(zip_stat_t)) {
        return fail(sink, ZIP_ER_INVAL, 0);
    }
    zip_stat_t *info = data;
    zip_stat_init(info);
    info->size = sink->size;
    info->valid = ZIP_STAT_SIZE;
    return 0;
}

static zip_int64_t sink_seek(bp_sink *sink, uint64_t *offset, void *data, zip_uint64_t byte_count) {
    zip_int64_t target =
        zip_source_seek_compute_offset(*offset, sink->size, data, byte_count, &sink->zip_error);
    if (target < 0) {
        return -1;
    }
    *offset = (uint64_t)target;
    return 0;
}

static zip_int64_t call(void *context, void *data, zip_uint64_t byte_count,
                        zip_source_cmd_t command) {
    bp_sink *sink = context;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_WRITABLE;
    case ZIP_SOURCE_STAT:
        return sink_stat(sink, data, byte_count);
    case ZIP_SOURCE_READ:
        return sink_read(sink, data, byte_count);
    case ZIP_SOURCE_WRITE:
        return sink_write(sink, data, byte_count);
    case ZIP_SOURCE_SEEK:
        return sink_seek(sink, &sink->read_offset, data, byte_count);
    case ZIP_SOURCE_SEEK_WRITE:
        return sink_seek(sink, &sink->write_offset, data, byte_count);
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)sink->read_offset;
    case ZIP_SOURCE_TELL_WRITE:
        return (zip_int64_t)sink->write_offset;
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&sink->zip_error, data, byte_count);
    case ZIP_SOURCE_OPEN:
        sink->read_offset = 0;
        return 0;
    case ZIP_SOURCE_BEGIN_WRITE:
        sink->write_offset = 0;
        return 0;
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_COMMIT_WRITE: /* whoever staged the descriptor syncs and publishes it */
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        return fail(sink, ZIP_ER_OPNOTSUPP, 0);
    }
}

zip_source_t *bp_sink_source(bp_sink *sink, int fd, bp_stop *stop) {
    *sink = (bp_sink){.fd = fd, .stop = stop};
    zip_error_init(&sink->zip_error);
    return zip_source_function_create(call, sink, NULL);
}
