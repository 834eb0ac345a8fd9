#include "archive/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <zip.h>
#include <zlib.h>

#include "archive/directory.h"
#include "archive/reader_source.h"
#include "base/status.h"

enum { piece_bytes = 64 * 1024 };

struct bp_archive_reader {
    char *path;
    bp_directory directory;
    bp_reader_source source;
    zip_t *zip;
    char piece[piece_bytes];
};

/* What libzip says, by its code: it may be our memory or our disk, or the archive. */
static bugpack_status fail(const bp_archive_reader *reader, const char *entry, zip_error_t *reason,
                           bugpack_error *error) {
    const char *before = entry != NULL ? "entry \"" : "";
    const char *behind = entry != NULL ? "\": " : "";
    entry = entry != NULL ? entry : "";
    if (reader->source.system_errno != 0) {
        return bp_fail_errno(error, reader->source.system_errno, "cannot read \"%s\"",
                             reader->path);
    }
    int code = zip_error_code_zip(reason);
    bool is_zlib_memory = code == ZIP_ER_ZLIB && zip_error_code_system(reason) == Z_MEM_ERROR;
    if (code == ZIP_ER_MEMORY || is_zlib_memory) {
        return bp_fail_memory(error, "read a zip");
    }
    return bp_fail(error, BUGPACK_ERR_CORRUPT, "\"%s\" is damaged: %s%s%s%s", reader->path, before,
                   entry, behind, zip_error_strerror(reason));
}

/* Two readers of one format may see two archives: what libzip sees must be what was checked. */
static bool sees_the_same(const bp_archive_reader *reader) {
    const bp_directory *directory = &reader->directory;
    const zip_uint64_t needed =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD;
    bool is_same = zip_get_num_entries(reader->zip, 0) == (zip_int64_t)directory->entry_count;
    for (size_t i = 0; is_same && i < directory->entry_count; i++) {
        const bp_directory_entry *entry = &directory->entries[i];
        zip_stat_t info;
        is_same = zip_stat_index(reader->zip, i, ZIP_FL_ENC_RAW, &info) == 0 &&
                  (info.valid & needed) == needed && strcmp(info.name, entry->name) == 0 &&
                  info.size == entry->bytes && info.comp_size == entry->packed_bytes &&
                  info.crc == entry->crc && info.comp_method == entry->method;
    }
    return is_same;
}

static bugpack_status open_zip(bp_archive_reader *reader, int fd, bugpack_error *error) {
    zip_error_t reason;
    zip_source_t *source = bp_reader_source_new(&reader->source, fd, &reader->directory);
    if (source == NULL) {
        return bp_fail_memory(error, "read a zip");
    }
    zip_error_init(&reason);
    reader->zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &reason);
    bugpack_status status = BUGPACK_OK;
    if (reader->zip == NULL) {
        zip_source_free(source);
        status = fail(reader, NULL, &reason, error);
    } else if (!sees_the_same(reader)) {
        status =
            bp_fail(error, BUGPACK_ERR_CORRUPT,
                    "\"%s\" is no report: its directory can be read in two ways", reader->path);
    }
    zip_error_fini(&reason);
    return status;
}

bugpack_status bp_archive_reader_open(int fd, const char *path, bp_archive_reader **ret_reader,
                                      bugpack_error *error) {
    bp_archive_reader *reader = calloc(1, sizeof *reader);
    char *copy = strdup(path);
    bugpack_status status = BUGPACK_OK;
    if (reader == NULL || copy == NULL) {
        status = bp_fail_memory(error, "read a zip");
        goto out;
    }
    reader->path = copy;
    copy = NULL;
    status = bp_directory_read(fd, path, &reader->directory, error);
    if (status == BUGPACK_OK) {
        status = open_zip(reader, fd, error);
    }
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
    zip_discard(reader->zip); /* before the source's storage; NULL is fine */
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

/* Reads on to the end, also when all that was declared is there: only then is the checksum seen. */
static bugpack_status copy(bp_archive_reader *reader, zip_file_t *file,
                           const bp_directory_entry *entry, bp_sink *sink, void *context,
                           bugpack_error *error) {
    uint64_t done = 0;
    for (;;) {
        zip_int64_t count = zip_fread(file, reader->piece, piece_bytes);
        if (count < 0) {
            return fail(reader, entry->name, zip_file_get_error(file), error);
        }
        if (count == 0) {
            break;
        }
        if ((uint64_t)count > entry->bytes - done) {
            return bp_fail(error, BUGPACK_ERR_CORRUPT,
                           "\"%s\" is damaged: entry \"%s\" is longer than it declares",
                           reader->path, entry->name);
        }
        bugpack_status status = sink(context, reader->piece, (size_t)count);
        if (status != BUGPACK_OK) {
            return bp_fail(error, status, "cannot keep \"%s\" of \"%s\": %s", entry->name,
                           reader->path, bugpack_status_name(status));
        }
        done += (uint64_t)count;
    }
    return done == entry->bytes
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_CORRUPT,
                         "\"%s\" is damaged: entry \"%s\" is shorter than it declares",
                         reader->path, entry->name);
}

bugpack_status bp_archive_reader_read(bp_archive_reader *reader, size_t index, uint64_t max_bytes,
                                      bp_sink *sink, void *context, bugpack_error *error) {
    const bp_directory_entry *entry = &reader->directory.entries[index];
    if (entry->bytes > max_bytes) {
        return bp_fail(error, BUGPACK_ERR_LIMIT,
                       "cannot read \"%s\": entry \"%s\" is over the limit of %" PRIu64 " bytes",
                       reader->path, entry->name, max_bytes);
    }
    zip_error_clear(reader->zip);
    reader->source.system_errno = 0;
    zip_file_t *file = zip_fopen_index(reader->zip, index, 0);
    if (file == NULL) {
        return fail(reader, entry->name, zip_get_error(reader->zip), error);
    }
    bugpack_status status = copy(reader, file, entry, sink, context, error);
    (void)zip_fclose(file); /* it was read to its end: nothing more can be found out */
    return status;
}
