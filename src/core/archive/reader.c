#include "archive/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>
#include <zlib.h>

#include "archive/directory.h"
#include "base/file.h"
#include "base/status.h"

static const char damaged[] = "damaged";

struct bp_archive_reader {
    char *path; /* for sentences; NULL: the caller says which file it is */
    bp_directory directory;
    zip_t *zip;           /* under `lock`, with all its entries */
    pthread_mutex_t lock; /* held while at most 64 KiB are read */
};

struct bp_archive_stream {
    const bp_archive_reader *reader;
    const bp_directory_entry *entry;
    zip_file_t *file;
    uint64_t done;
    size_t piece_bytes;
    char piece[];
};

static void lock(const bp_archive_reader *reader) {
    (void)pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&reader->lock);
}

static void unlock(const bp_archive_reader *reader) {
    (void)pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&reader->lock);
}

/* Fails with libzip's reason: by its code our memory, our disk, or the archive. `name` is of the
 * entry, or NULL. */
static bugpack_status fail(const bp_archive_reader *reader, const char *name, zip_error_t *reason,
                           bugpack_error *error) {
    int code = zip_error_code_zip(reason), system_code = zip_error_code_system(reason);
    if (code == ZIP_ER_MEMORY || (code == ZIP_ER_ZLIB && system_code == Z_MEM_ERROR)) {
        return bp_fail_memory(error, "read a zip");
    }
    if (zip_error_system_type(reason) == ZIP_ET_SYS && system_code != 0) {
        return bp_fail_errno(error, system_code, "cannot read \"%s\"",
                             bp_archive_name(reader->path));
    }
    if (name == NULL) {
        return bp_archive_refuse(reader->path, damaged, error, "%s", zip_error_strerror(reason));
    }
    return code == ZIP_ER_CRC ? bp_archive_refuse(reader->path, damaged, error,
                                                  "entry \"%s\" has a wrong checksum", name)
                              : bp_archive_refuse(reader->path, damaged, error, "entry \"%s\": %s",
                                                  name, zip_error_strerror(reason));
}

/* Two readers of one format may see two archives: what libzip sees must be what was checked. */
static bool sees_the_same(zip_t *zip, const bp_directory *directory) {
    const zip_uint64_t needed =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD;
    bool is_same = zip_get_num_entries(zip, 0) == (zip_int64_t)directory->entry_count;
    for (size_t i = 0; is_same && i < directory->entry_count; i++) {
        const bp_directory_entry *entry = &directory->entries[i];
        zip_stat_t info;
        is_same = zip_stat_index(zip, i, ZIP_FL_ENC_RAW, &info) == 0 &&
                  (info.valid & needed) == needed && strcmp(info.name, entry->name) == 0 &&
                  info.size == entry->bytes && info.comp_size == entry->packed_bytes &&
                  info.crc == entry->crc && info.comp_method == entry->method;
    }
    return is_same;
}

/* Opens a duplicate, which libzip closes. */
static bugpack_status open_zip(bp_archive_reader *reader, int fd, bugpack_error *error) {
    zip_error_t reason;
    bugpack_status status = BUGPACK_OK;
    int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *file = own_fd >= 0 ? fdopen(own_fd, "rb") : NULL;
    zip_source_t *source = NULL;
    zip_error_init(&reason);
    if (file == NULL) {
        status = bp_fail_errno(error, errno, "cannot read \"%s\"", bp_archive_name(reader->path));
        bp_file_close(own_fd);
        goto out;
    }
    source = zip_source_filep_create(file, 0, -1, &reason);
    if (source == NULL) {
        (void)fclose(file);
        status = fail(reader, NULL, &reason, error);
        goto out;
    }
    reader->zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &reason);
    if (reader->zip == NULL) {
        zip_source_free(source);
        status = fail(reader, NULL, &reason, error);
    } else if (!sees_the_same(reader->zip, &reader->directory)) {
        status = bp_archive_refuse(reader->path, "no report", error,
                                   "its directory can be read in two ways");
    }
out:
    zip_error_fini(&reason);
    return status;
}

bugpack_status bp_archive_reader_open(int fd, const char *path, bp_archive_reader **ret_reader,
                                      bugpack_error *error) {
    bp_archive_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return bp_fail_memory(error, "read a zip");
    }
    (void)pthread_mutex_init(&reader->lock, NULL);
    reader->path = path != NULL ? strdup(path) : NULL;
    bugpack_status status = path != NULL && reader->path == NULL
                                ? bp_fail_memory(error, "read a zip")
                                : bp_directory_read(fd, path, &reader->directory, error);
    if (status == BUGPACK_OK) {
        status = open_zip(reader, fd, error);
    }
    if (status != BUGPACK_OK) {
        bp_archive_reader_free(reader);
        return status;
    }
    *ret_reader = reader;
    return BUGPACK_OK;
}

void bp_archive_reader_free(bp_archive_reader *reader) {
    if (reader == NULL) {
        return;
    }
    zip_discard(reader->zip); /* NULL is fine */
    bp_directory_release(&reader->directory);
    (void)pthread_mutex_destroy(&reader->lock);
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

static bugpack_status open_stream(const bp_archive_reader *reader, size_t index, size_t piece_bytes,
                                  bp_archive_stream **ret_stream, bugpack_error *error) {
    bp_archive_stream *stream = malloc(sizeof *stream + piece_bytes);
    if (stream == NULL) {
        return bp_fail_memory(error, "read a zip");
    }
    *stream = (bp_archive_stream){
        .reader = reader, .entry = &reader->directory.entries[index], .piece_bytes = piece_bytes};
    lock(reader);
    stream->file = zip_fopen_index(reader->zip, index, 0);
    bugpack_status status =
        stream->file != NULL ? BUGPACK_OK
                             : fail(reader, stream->entry->name, zip_get_error(reader->zip), error);
    unlock(reader);
    if (status != BUGPACK_OK) {
        free(stream);
        return status;
    }
    *ret_stream = stream;
    return BUGPACK_OK;
}

bugpack_status bp_archive_stream_open(const bp_archive_reader *reader, size_t index,
                                      bp_archive_stream **ret_stream, bugpack_error *error) {
    return open_stream(reader, index, (size_t)4 << 10, ret_stream, error);
}

bugpack_status bp_archive_reader_read(const bp_archive_reader *reader, size_t index,
                                      uint64_t max_bytes, bp_sink *sink, void *context,
                                      bugpack_error *error) {
    const bp_directory_entry *entry = &reader->directory.entries[index];
    if (entry->bytes > max_bytes) {
        return bp_fail(error, BUGPACK_ERR_LIMIT,
                       "cannot read \"%s\": entry \"%s\" is over the limit of %" PRIu64 " bytes",
                       bp_archive_name(reader->path), entry->name, max_bytes);
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
        lock(stream->reader);
        (void)zip_fclose(stream->file);
        unlock(stream->reader);
        free(stream);
    }
}

bugpack_status bp_archive_stream_next(bp_archive_stream *stream, bp_sink *sink, void *context,
                                      bool *ret_is_over, bugpack_error *error) {
    const bp_archive_reader *reader = stream->reader;
    const bp_directory_entry *entry = stream->entry;
    lock(reader);
    zip_int64_t count = zip_fread(stream->file, stream->piece, stream->piece_bytes);
    bugpack_status status =
        count < 0 ? fail(reader, entry->name, zip_file_get_error(stream->file), error) : BUGPACK_OK;
    unlock(reader);
    if (status != BUGPACK_OK) {
        return status;
    }
    *ret_is_over = count == 0;
    /* libzip compares sizes only at the end, and a few bytes can hold gigabytes. */
    if ((uint64_t)count > entry->bytes - stream->done ||
        (*ret_is_over && stream->done != entry->bytes)) {
        return bp_archive_refuse(reader->path, damaged, error,
                                 "entry \"%s\" is %s than it declares", entry->name,
                                 count > 0 ? "longer" : "shorter");
    }
    stream->done += (uint64_t)count;
    status = count > 0 ? sink(context, stream->piece, (size_t)count) : BUGPACK_OK;
    return status == BUGPACK_OK
               ? BUGPACK_OK
               : bp_fail(error, status, "cannot keep \"%s\" of \"%s\": %s", entry->name,
                         bp_archive_name(reader->path), bugpack_status_name(status));
}
