#include "archive/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/error.h>

#include "archive/deflate.h"
#include "archive/directory.h"
#include "archive/inflate.h"
#include "base/file.h"
#include "base/sink.h"
#include "base/status.h"

/*
 * Reads one entry of a zip, step by step. Every byte that comes out is counted before anybody gets
 * it.
 */

/* The caller fills in the first seven; what they point to is the caller's. */
typedef struct entry_reading {
    int fd;
    const char *path; /* for sentences */
    const bp_directory_entry *entry;
    bp_inflater *inflater;
    bp_sink *sink;
    void *context;
    bugpack_error *error;
    uint64_t at, left; /* what is still to be read of the zip */
    uint64_t done;
    uint32_t crc;
    bool is_over;
    bool is_told; /* the failure has its sentence */
} entry_reading;

static bugpack_status damaged(entry_reading *reading, const char *how) {
    reading->is_told = true;
    return bp_fail(reading->error, BUGPACK_ERR_CORRUPT, "\"%s\" is damaged: entry \"%s\" %s",
                   reading->path, reading->entry->name, how);
}

/* A bp_sink: counts what comes out before anybody else gets it. */
static bugpack_status pass_on(void *context, const void *bytes, size_t byte_count) {
    entry_reading *reading = context;
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
static bugpack_status read_bytes(entry_reading *reading, void *bytes, size_t byte_count,
                                 uint64_t offset) {
    int64_t count = bp_file_read_range(reading->fd, bytes, byte_count, offset);
    if (count < 0) {
        reading->is_told = true;
        return bp_fail_errno(reading->error, errno, "cannot read \"%s\"", reading->path);
    }
    return (size_t)count == byte_count ? BUGPACK_OK : damaged(reading, "ends too soon");
}

/*
 * In turn, the second while there is something left: finds the bytes of the entry; passes on what
 * the next of them hold, at most `max_bytes`, which are read to `piece`; checks the end. Errors:
 * those of bp_archive_reader_read.
 */
static bugpack_status entry_begin(entry_reading *reading) {
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

static bugpack_status entry_step(entry_reading *reading, char *piece, size_t max_bytes) {
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

static bugpack_status entry_check(entry_reading *reading) {
    if (!reading->is_over || reading->done != reading->entry->bytes) {
        return damaged(reading, "is shorter than it declares");
    }
    return reading->crc == reading->entry->crc ? BUGPACK_OK
                                               : damaged(reading, "has a wrong checksum");
}

struct bp_archive_reader {
    int fd; /* borrowed */
    char *path;
    bp_directory directory;
};

struct bp_archive_stream {
    entry_reading reading;
    size_t piece_bytes;
    char piece[];
};

bugpack_status bp_archive_reader_open(int fd, const char *path, bp_archive_reader **ret_reader,
                                      bugpack_error *error) {
    bp_archive_reader *reader = calloc(1, sizeof *reader);
    char *copy = strdup(path);
    bugpack_status status = BUGPACK_OK;
    if (reader == NULL || copy == NULL) {
        status = bp_fail_memory(error, "read a zip");
        goto out;
    }
    reader->fd = fd;
    reader->path = copy;
    copy = NULL;
    status = bp_directory_read(fd, path, &reader->directory, error);
    if (status == BUGPACK_OK) {
        *ret_reader = reader;
        reader = NULL;
    }
out:
    bp_archive_reader_free(reader);
    free(copy);
    return status;
}

void bp_archive_reader_free(bp_archive_reader *reader) {
    if (reader == NULL) {
        return;
    }
    bp_directory_release(&reader->directory);
    free(reader->path);
    free(reader);
}

size_t bp_archive_reader_count(const bp_archive_reader *reader) {
    return reader->directory.entry_count;
}

bp_archive_member bp_archive_reader_member(const bp_archive_reader *reader, size_t index) {
    const bp_directory_entry *entry = &reader->directory.entries[index];
    return (bp_archive_member){entry->name, entry->bytes, entry->packed_bytes};
}

bool bp_archive_reader_find(const bp_archive_reader *reader, const char *name, size_t *ret_index) {
    for (size_t i = 0; i < reader->directory.entry_count; i++) {
        if (strcmp(reader->directory.entries[i].name, name) == 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

/* What reads `piece_bytes` of the zip at a time. */
static bugpack_status open_stream(const bp_archive_reader *reader, size_t index, size_t piece_bytes,
                                  bp_archive_stream **ret_stream, bugpack_error *error) {
    bp_archive_stream *stream = malloc(sizeof *stream + piece_bytes);
    bp_inflater *inflater = bp_inflater_new();
    if (stream == NULL || inflater == NULL) {
        bp_inflater_free(inflater);
        free(stream);
        return bp_fail_memory(error, "read a zip");
    }
    stream->piece_bytes = piece_bytes;
    stream->reading = (entry_reading){.fd = reader->fd,
                                      .path = reader->path,
                                      .entry = &reader->directory.entries[index],
                                      .inflater = inflater,
                                      .error = error};
    bugpack_status status = entry_begin(&stream->reading);
    if (status != BUGPACK_OK) {
        bp_archive_stream_close(stream);
        return status;
    }
    *ret_stream = stream;
    return BUGPACK_OK;
}

bugpack_status bp_archive_stream_open(const bp_archive_reader *reader, size_t index,
                                      bp_archive_stream **ret_stream, bugpack_error *error) {
    return open_stream(reader, index, 256, ret_stream, error);
}

bugpack_status bp_archive_reader_read(const bp_archive_reader *reader, size_t index,
                                      uint64_t max_bytes, bp_sink *sink, void *context,
                                      bugpack_error *error) {
    const bp_directory_entry *entry = &reader->directory.entries[index];
    if (entry->bytes > max_bytes) {
        return bp_fail(error, BUGPACK_ERR_LIMIT,
                       "cannot read \"%s\": entry \"%s\" is over the limit of %" PRIu64 " bytes",
                       reader->path, entry->name, max_bytes);
    }
    bp_archive_stream *stream = NULL;
    bool is_over = false;
    bugpack_status status = open_stream(reader, index, (size_t)64 << 10, &stream, error);
    while (status == BUGPACK_OK && !is_over) {
        status = bp_archive_stream_next(stream, sink, context, &is_over, error);
    }
    bp_archive_stream_close(stream);
    return status;
}

void bp_archive_stream_close(bp_archive_stream *stream) {
    if (stream != NULL) {
        bp_inflater_free(stream->reading.inflater);
        free(stream);
    }
}

bugpack_status bp_archive_stream_next(bp_archive_stream *stream, bp_sink *sink, void *context,
                                      bool *ret_is_over, bugpack_error *error) {
    entry_reading *reading = &stream->reading;
    reading->sink = sink;
    reading->context = context;
    reading->error = error;
    bugpack_status status = BUGPACK_OK;
    if (reading->left > 0) {
        status = entry_step(reading, stream->piece, stream->piece_bytes);
    }
    if (status == BUGPACK_OK && reading->left == 0) {
        status = entry_check(reading);
    }
    *ret_is_over = status == BUGPACK_OK && reading->left == 0;
    return status;
}
