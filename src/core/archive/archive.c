/*
 * Written against libzip 1.7.3. Its copy loop takes a source as it is when the source says its
 * method, size, compressed size and CRC (lib/zip_close.c, add_data). An archive counts as read-only
 * unless its source can be removed, and as new when stat fails with ENOENT (lib/zip_open.c).
 */
#include "archive/archive.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include <zip.h>
#include <zlib.h>

#include "archive/deflate.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/fd_mark.h"
#include "base/file.h"
#include "base/pages.h"
#include "base/status.h"
#include "base/temp_file.h"
#include "base/utf8.h"

/* Entries up to one piece are stored where they do not shrink. */
enum { piece_bytes = 256 * 1024 };

enum { id_times = 0x5455, times_bytes = 5 }; /* the extended timestamp */

/* An entry is read back in pieces of this size. */
enum { read_piece_bytes = 64 * 1024 };

/* A source of libzip's: the compressed bytes of one entry. */
typedef struct written_entry {
    char *name; /* NULL: none is open */
    unsigned rank;
    uint16_t method;
    uint32_t crc;
    uint64_t bytes, packed_bytes;
    uint64_t offset; /* in the temporary file */
    uint64_t read_bytes;
    bp_archive *archive;
} written_entry;

struct bp_archive {
    bp_archive_target target;
    bp_fd_mark mark; /* of its descriptor */
    bp_deflater *deflater;
    bp_archive_filter *filter;
    void *filter_context;
    bp_temp_file packed; /* the compressed bytes of all entries, without headers */
    written_entry *entries;
    size_t count, capacity;
    written_entry open;
    struct sha256_ctx sha256; /* of the open entry */
    uint64_t at, size;        /* where libzip writes, and the end of what it has written */
    zip_error_t zip_error;    /* what libzip is told */
    bugpack_status status;
    int system_errno;
    time_t mtime; /* of every entry, as libzip wants it; set at the end */
    bool is_over;
    size_t pending; /* bytes in `piece` */
    unsigned char piece[piece_bytes];
};

/* Readers know no zip64: what is packed leaves 64 MiB of 4 GiB for headers. */
static const uint64_t packed_bytes_max = UINT32_MAX - ((uint64_t)64 << 20);

bugpack_status bp_archive_new(const bp_archive_target *target, bp_archive **ret_archive,
                              bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    bp_archive *archive = bp_pages_new(sizeof *archive);
    if (archive == NULL) {
        return bp_fail_memory(error, "start a zip");
    }
    archive->target = *target;
    archive->mark = bp_fd_mark_of(target->fd);
    zip_error_init(&archive->zip_error);
    status = bp_temp_file_open(&archive->packed, target->dir_fd, packed_bytes_max, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    archive->deflater = bp_deflater_new();
    if (archive->deflater == NULL) {
        status = bp_fail_memory(error, "start a zip");
        goto out;
    }
    *ret_archive = archive;
    archive = NULL;
out:
    bp_archive_free(archive);
    return status;
}

void bp_archive_free(bp_archive *archive) {
    if (archive == NULL) {
        return;
    }
    for (size_t i = 0; i < archive->count; i++) {
        free(archive->entries[i].name);
    }
    free(archive->open.name);
    free(archive->entries);
    bp_temp_file_release(&archive->packed);
    bp_deflater_free(archive->deflater);
    zip_error_fini(&archive->zip_error);
    bp_pages_free(archive);
}

void bp_archive_set_filter(bp_archive *archive, bp_archive_filter *filter, void *context) {
    archive->filter = filter;
    archive->filter_context = context;
}

/* A bp_sink: compressed bytes of the open entry. A failure sticks to it. */
static bugpack_status append(void *context, const void *bytes, size_t byte_count) {
    bp_archive *archive = context;
    return archive->status = bp_temp_file_write(&archive->packed, bytes, byte_count);
}

static bugpack_status refuse_name(const bp_archive *archive, const char *name, const char *why,
                                  bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_INVALID, "cannot add \"%s\" to \"%s\": %s", name,
                   archive->target.name, why);
}

/* The bytes of an entry's local header and of its row in the directory, each with its name and the
 * time (APPNOTE 4.3.7, 4.3.12). */
static uint64_t header_bytes(const char *name) {
    static const uint64_t local_bytes = 30, central_bytes = 46, extra_bytes = 4 + times_bytes;
    return local_bytes + central_bytes + 2 * (extra_bytes + strlen(name));
}

/* There is room for it among the entries. `name` is taken. */
static void open_entry(bp_archive *archive, char *name, unsigned rank) {
    archive->open = (written_entry){.name = name,
                                    .rank = rank,
                                    .method = ZIP_CM_DEFLATE,
                                    .offset = archive->packed.size,
                                    .archive = archive};
    archive->status = BUGPACK_OK;
    archive->pending = 0;
    bp_deflater_reset(archive->deflater);
    sha256_init(&archive->sha256);
}

bugpack_status bp_archive_begin(bp_archive *archive, const char *name, unsigned rank,
                                bugpack_error *error) {
    if (archive->is_over || archive->open.name != NULL) {
        return refuse_name(archive, name, "another entry is open, or it is over", error);
    }
    if (archive->count >= BP_ARCHIVE_ENTRY_MAX) {
        return refuse_name(archive, name, "it has as many entries as a report may have", error);
    }
    if (name[0] == '\0' || strlen(name) > UINT16_MAX || !bp_utf8_is_valid(name, strlen(name))) {
        return refuse_name(archive, name, "not a valid name", error);
    }
    for (size_t i = 0; i < archive->count; i++) {
        if (strcasecmp(archive->entries[i].name, name) == 0) { /* readers would refuse */
            return refuse_name(archive, name, "it is there already", error);
        }
    }
    bool has_room = bp_array_reserve(&archive->entries, archive->count, &archive->capacity);
    char *copy = has_room ? strdup(name) : NULL;
    if (copy == NULL) {
        return bp_fail_memory(error, "add to a zip");
    }
    open_entry(archive, copy, rank);
    return BUGPACK_OK;
}

static bugpack_status deflate_piece(bp_archive *archive, bool is_last) {
    written_entry *entry = &archive->open;
    bugpack_status status = bp_cancel_check(archive->target.token, NULL);
    if (status == BUGPACK_OK && archive->pending > UINT32_MAX - entry->bytes) {
        status = BUGPACK_ERR_LIMIT;
    }
    if (status == BUGPACK_OK) {
        entry->crc = bp_deflate_crc32(entry->crc, archive->piece, archive->pending);
        entry->bytes += archive->pending;
        sha256_update(&archive->sha256, archive->pending, archive->piece);
        status = bp_deflate(archive->deflater, archive->piece, archive->pending, is_last, append,
                            archive);
    }
    return archive->status = status;
}

/* A bp_sink: takes what the filter passes on. */
static bugpack_status take(void *context, const void *bytes, size_t byte_count) {
    bp_archive *archive = context;
    const unsigned char *next = bytes;
    while (archive->status == BUGPACK_OK && byte_count > 0) {
        if (archive->pending == piece_bytes) {
            (void)deflate_piece(archive, false);
            archive->pending = 0;
            continue;
        }
        size_t left = piece_bytes - archive->pending;
        size_t count = byte_count < left ? byte_count : left;
        memcpy(archive->piece + archive->pending, next, count);
        archive->pending += count;
        next += count;
        byte_count -= count;
    }
    return archive->status;
}

static bugpack_status pass(bp_archive *archive, const void *bytes, size_t byte_count) {
    if (archive->status != BUGPACK_OK) {
        return archive->status;
    }
    bugpack_status status = archive->filter != NULL
                                ? archive->filter(archive->filter_context, archive->open.name,
                                                  bytes, byte_count, take, archive)
                                : take(archive, bytes, byte_count);
    return archive->status = archive->status != BUGPACK_OK ? archive->status : status;
}

bugpack_status bp_archive_write(void *archive, const void *bytes, size_t byte_count) {
    return byte_count > 0 ? pass(archive, bytes, byte_count)
                          : ((const bp_archive *)archive)->status;
}

bugpack_status bp_archive_check(const bp_archive *archive, bugpack_error *error) {
    int packed_errno = archive->packed.system_errno;
    switch (archive->status) {
    case BUGPACK_OK:
        return BUGPACK_OK;
    case BUGPACK_ERR_IO:
        return bp_fail_errno(error, packed_errno != 0 ? packed_errno : archive->system_errno,
                             "cannot write \"%s\"", archive->target.name);
    case BUGPACK_ERR_CANCELLED:
    case BUGPACK_ERR_TIMEOUT:
        return bp_cancel_check(archive->target.token, error);
    default:
        return bp_fail(error, archive->status, "cannot write \"%s\": %s", archive->target.name,
                       bugpack_status_name(archive->status));
    }
}

bugpack_status bp_archive_end(bp_archive *archive, uint64_t *ret_bytes, bugpack_error *error) {
    written_entry *entry = &archive->open;
    if (entry->name == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "\"%s\" has no open entry",
                       archive->target.name);
    }
    if (archive->filter != NULL) {
        (void)pass(archive, NULL, 0);
    }
    if (archive->status == BUGPACK_OK && deflate_piece(archive, true) == BUGPACK_OK &&
        entry->bytes <= piece_bytes && archive->packed.size - entry->offset >= entry->bytes) {
        /* Data that did not shrink, and is still all in `piece`, is stored instead. */
        bp_temp_file_cut(&archive->packed, entry->offset);
        entry->method = ZIP_CM_STORE;
        (void)append(archive, archive->piece, (size_t)entry->bytes);
    }
    if (archive->status == BUGPACK_OK) {
        archive->status = bp_temp_file_flush(&archive->packed, NULL);
    }
    if (archive->status != BUGPACK_OK) {
        bugpack_status status = bp_archive_check(archive, error);
        bp_archive_roll_back(archive);
        return status;
    }
    entry->packed_bytes = archive->packed.size - entry->offset;
    archive->entries[archive->count++] = *entry;
    *ret_bytes = entry->bytes;
    entry->name = NULL;
    return BUGPACK_OK;
}

void bp_archive_take_sha256(bp_archive *archive, char ret_text[BP_SHA256_TEXT_BYTES]) {
    bp_sha256_print(&archive->sha256, ret_text);
}

void bp_archive_roll_back(bp_archive *archive) {
    if (archive->open.name != NULL) {
        bp_temp_file_cut(&archive->packed, archive->open.offset);
        free(archive->open.name);
        archive->open.name = NULL;
        archive->status = BUGPACK_OK;
    }
}

size_t bp_archive_count(const bp_archive *archive) {
    return archive->count;
}

bp_archive_written bp_archive_get(const bp_archive *archive, size_t index) {
    const written_entry *entry = &archive->entries[index];
    return (bp_archive_written){.name = entry->name,
                                .bytes = entry->bytes,
                                .zip_bytes = header_bytes(entry->name) + entry->packed_bytes};
}

void bp_archive_remove(bp_archive *archive, size_t index) {
    free(archive->entries[index].name);
    archive->count--;
    memmove(&archive->entries[index], &archive->entries[index + 1],
            (archive->count - index) * sizeof archive->entries[0]);
}

/* Inflates what was read of an entry into the open one. */
static bugpack_status inflate_piece(bp_archive *archive, z_stream *stream, unsigned char *out) {
    int result = Z_OK;
    bugpack_status status = BUGPACK_OK;
    do {
        stream->next_out = out;
        stream->avail_out = read_piece_bytes;
        result = inflate(stream, Z_NO_FLUSH);
        size_t made = read_piece_bytes - stream->avail_out;
        status = made > 0 ? pass(archive, out, made) : archive->status;
    } while (status == BUGPACK_OK && result == Z_OK && stream->avail_out == 0);
    bool is_sound = result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
    return status == BUGPACK_OK && !is_sound ? BUGPACK_ERR_IO : status;
}

/* Passes the bytes of an entry that was ended to the open one. A failure sticks to that. */
static void copy_entry(bp_archive *archive, const written_entry *entry) {
    unsigned char *pieces = malloc((size_t)2 * read_piece_bytes);
    z_stream stream = {.next_in = NULL};
    if (pieces == NULL || inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        free(pieces);
        archive->status = BUGPACK_ERR_NO_MEMORY;
        return;
    }
    for (uint64_t at = 0; archive->status == BUGPACK_OK && at < entry->packed_bytes;) {
        uint64_t left = entry->packed_bytes - at;
        size_t wanted = left < read_piece_bytes ? (size_t)left : (size_t)read_piece_bytes;
        int64_t count = bp_temp_file_read(&archive->packed, entry->offset + at, pieces, wanted);
        if (count != (int64_t)wanted) { /* somebody has cut it */
            archive->status = BUGPACK_ERR_IO;
            archive->system_errno = count < 0 ? errno : EIO;
        } else if (entry->method == ZIP_CM_STORE) {
            (void)pass(archive, pieces, wanted);
        } else {
            stream.next_in = pieces;
            stream.avail_in = (uInt)wanted;
            archive->status = inflate_piece(archive, &stream, pieces + read_piece_bytes);
        }
        at += wanted;
    }
    (void)inflateEnd(&stream);
    free(pieces);
}

bugpack_status bp_archive_change(bp_archive *archive, size_t index, bp_archive_filter *change,
                                 void *context, bugpack_error *error) {
    bp_archive_filter *filter = archive->filter;
    void *filter_context = archive->filter_context;
    uint64_t byte_count = 0;
    bool has_room = bp_array_reserve(&archive->entries, archive->count, &archive->capacity);
    char *name = has_room ? strdup(archive->entries[index].name) : NULL;
    if (name == NULL) {
        return bp_fail_memory(error, "write an entry again");
    }
    open_entry(archive, name, archive->entries[index].rank);
    bp_archive_set_filter(archive, change, context);
    copy_entry(archive, &archive->entries[index]);
    bugpack_status status = bp_archive_end(archive, &byte_count, error);
    bp_archive_set_filter(archive, filter, filter_context);
    if (status == BUGPACK_OK) {
        free(archive->entries[index].name);
        archive->entries[index] = archive->entries[--archive->count];
    }
    return status;
}

/* Keeps the first failure, which libzip's own code would hide, and tells libzip that there is one.
 */
static zip_int64_t fail_call(bp_archive *archive, bugpack_status status, int system_errno) {
    if (archive->status == BUGPACK_OK) {
        archive->status = status;
        archive->system_errno = system_errno;
    }
    zip_error_set(&archive->zip_error, ZIP_ER_WRITE, system_errno);
    return -1;
}

static zip_int64_t write_zip(bp_archive *archive, const void *bytes, uint64_t byte_count) {
    int result = EBADF; /* the host may have closed it */
    if (bp_fd_is_ours(archive->target.fd, archive->mark)) {
        result = bp_file_write_range(archive->target.fd, bytes, (size_t)byte_count, archive->at);
    }
    if (result != 0) {
        return fail_call(archive, BUGPACK_ERR_IO, result);
    }
    archive->at += byte_count;
    archive->size = archive->at > archive->size ? archive->at : archive->size;
    return (zip_int64_t)byte_count;
}

static zip_int64_t seek_zip(bp_archive *archive, void *data, zip_uint64_t byte_count) {
    zip_int64_t at = zip_source_seek_compute_offset(archive->at, archive->size, data, byte_count,
                                                    &archive->zip_error);
    if (at >= 0) {
        archive->at = (uint64_t)at;
    }
    return at < 0 ? -1 : 0;
}

/* The zip, which libzip writes: a new file that it may not read. */
static zip_int64_t call_zip(void *context, void *data, zip_uint64_t byte_count,
                            zip_source_cmd_t command) {
    bp_archive *archive = context;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE,
            ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_WRITE,
            ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_STAT:
        zip_error_set(&archive->zip_error, ZIP_ER_READ, ENOENT);
        return -1;
    case ZIP_SOURCE_WRITE:
        return write_zip(archive, data, byte_count);
    case ZIP_SOURCE_SEEK_WRITE:
        return seek_zip(archive, data, byte_count);
    case ZIP_SOURCE_TELL_WRITE:
        return (zip_int64_t)archive->at;
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&archive->zip_error, data, byte_count);
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE: /* what was written of it is discarded by the caller */
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        return fail_call(archive, BUGPACK_ERR_INVALID, 0);
    }
}

static zip_int64_t describe_entry(const written_entry *entry, zip_stat_t *info) {
    zip_stat_init(info);
    info->valid = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD;
    info->size = entry->bytes;
    info->comp_size = entry->packed_bytes;
    info->crc = entry->crc;
    info->comp_method = entry->method;
    return sizeof *info;
}

static zip_int64_t read_entry(written_entry *entry, void *bytes, zip_uint64_t byte_count) {
    bp_archive *archive = entry->archive;
    uint64_t left = entry->packed_bytes - entry->read_bytes;
    uint64_t wanted = byte_count < left ? byte_count : left;
    bugpack_status status = bp_cancel_check(archive->target.token, NULL);
    if (status != BUGPACK_OK) {
        return fail_call(archive, status, 0);
    }
    int64_t count = bp_temp_file_read(&archive->packed, entry->offset + entry->read_bytes, bytes,
                                      (size_t)wanted);
    if (count != (int64_t)wanted) { /* somebody has cut it */
        return fail_call(archive, BUGPACK_ERR_IO, count < 0 ? errno : EIO);
    }
    entry->read_bytes += wanted;
    return count;
}

static zip_int64_t call_entry(void *context, void *data, zip_uint64_t byte_count,
                              zip_source_cmd_t command) {
    written_entry *entry = context;
    switch (command) {
    case ZIP_SOURCE_STAT:
        return describe_entry(entry, data);
    case ZIP_SOURCE_OPEN:
        entry->read_bytes = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return read_entry(entry, data, byte_count);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&entry->archive->zip_error, data, byte_count);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        zip_error_set(&entry->archive->zip_error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

/* How far the local clock is ahead of UTC at `secs`. localtime_r(3) leaves TZ alone once it is
 * known, which mktime(3), behind zip_file_set_dostime, does not. */
static int64_t local_offset_secs(int64_t secs) {
    struct tm local;
    time_t at = (time_t)secs;
    if (localtime_r(&at, &local) == NULL) {
        return 0;
    }
    const bp_civil_time shown = {(unsigned)local.tm_year + 1900, (unsigned)local.tm_mon + 1,
                                 (unsigned)local.tm_mday,        (unsigned)local.tm_hour,
                                 (unsigned)local.tm_min,         (unsigned)local.tm_sec};
    return (int64_t)bp_clock_secs(shown) - secs; /* not tm_gmtoff: a zone may count leap seconds */
}

/*
 * The time for which libzip, which writes local times, writes the DOS date and time of `wall_ns` in
 * UTC, clamped to what they can say: 1980 to 2107. In the hour that a local clock skips there is
 * none, and it is an hour off.
 */
static time_t dos_mtime(uint64_t wall_ns) {
    static const int64_t first_secs = 315532800, last_secs = 4354819198; /* 2107-12-31 23:59:58 */
    int64_t secs = (int64_t)(wall_ns / BP_NS_PER_SEC);
    secs = secs < first_secs ? first_secs : secs;
    secs = secs > last_secs ? last_secs : secs;
    if (sizeof(time_t) < sizeof secs && secs > INT32_MAX) {
        secs = INT32_MAX;
    }
    int64_t near = secs - local_offset_secs(secs);
    return (time_t)(secs - local_offset_secs(near));
}

/* Entries are regular files of mode 0600. False when libzip has no memory. */
static bool set_attributes(const bp_archive *archive, zip_t *zip, zip_uint64_t index,
                           uint16_t method) {
    uint64_t wall_secs = archive->target.wall_ns / BP_NS_PER_SEC;
    unsigned char times[times_bytes] = {1}; /* the modification time alone */
    for (unsigned i = 0; i < 4; i++) {
        times[i + 1] = (unsigned char)(wall_secs >> 8 * i);
    }
    if (method == ZIP_CM_STORE && zip_set_file_compression(zip, index, ZIP_CM_STORE, 0) != 0) {
        return false;
    }
    if (wall_secs <= INT32_MAX && /* its 32 bits cannot say more */
        zip_file_extra_field_set(zip, index, id_times, ZIP_EXTRA_FIELD_NEW, times, times_bytes,
                                 ZIP_FL_LOCAL | ZIP_FL_CENTRAL) != 0) {
        return false;
    }
    return zip_file_set_external_attributes(zip, index, 0, ZIP_OPSYS_UNIX,
                                            (uint32_t)(S_IFREG | 0600) << 16) == 0 &&
           zip_file_set_mtime(zip, index, archive->mtime, 0) == 0;
}

static bool add_entry(bp_archive *archive, zip_t *zip, written_entry *entry) {
    zip_source_t *source = zip_source_function_create(call_entry, entry, NULL);
    if (source == NULL) {
        return false;
    }
    zip_int64_t index = zip_file_add(zip, entry->name, source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
        zip_source_free(source);
        return false;
    }
    return set_attributes(archive, zip, (zip_uint64_t)index, entry->method);
}

/* Sorts a few by insertion, because those of one rank stay in the order of writing. */
static void sort_entries(bp_archive *archive) {
    for (size_t i = 1; i < archive->count; i++) {
        written_entry entry = archive->entries[i];
        size_t at = i;
        for (; at > 0 && archive->entries[at - 1].rank > entry.rank; at--) {
            archive->entries[at] = archive->entries[at - 1];
        }
        archive->entries[at] = entry;
    }
}

/*
 * Has libzip write everything. Where none of our calls has failed, libzip's allocations have: one
 * of them sets no error.
 */
static bugpack_status write_all(bp_archive *archive) {
    bool is_written = false;
    zip_source_t *source = zip_source_function_create(call_zip, archive, NULL);
    zip_t *zip =
        source != NULL ? zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, NULL) : NULL;
    if (zip == NULL) {
        zip_source_free(source); /* NULL is fine */
        goto out;
    }
    for (size_t i = 0; i < archive->count; i++) {
        if (!add_entry(archive, zip, &archive->entries[i])) {
            zip_discard(zip);
            goto out;
        }
    }
    is_written = zip_close(zip) == 0;
    if (!is_written) {
        zip_discard(zip);
    }
out:
    if (!is_written && archive->status == BUGPACK_OK) {
        archive->status = BUGPACK_ERR_NO_MEMORY;
    }
    return archive->status;
}

bugpack_status bp_archive_finish(bp_archive *archive, uint64_t *ret_bytes, bugpack_error *error) {
    if (archive->is_over || archive->count == 0 || archive->open.name != NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot write \"%s\": %s", archive->target.name,
                       archive->is_over      ? "it is over already"
                       : archive->count == 0 ? "it has no entries"
                                             : "an entry is open");
    }
    archive->is_over = true;
    archive->status = BUGPACK_OK;
    archive->mtime = dos_mtime(archive->target.wall_ns);
    sort_entries(archive);
    if (write_all(archive) != BUGPACK_OK) {
        return bp_archive_check(archive, error);
    }
    *ret_bytes = archive->size;
    return BUGPACK_OK;
}
