#include "archive/archive.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "archive/deflate.h"
#include "archive/header_write.h"
#include "archive/sha256.h"
#include "archive/zip_format.h"
#include "base/fd_mark.h"
#include "base/status.h"
#include "base/utf8.h"

/* Entries up to one piece are stored where they do not shrink. */
enum { piece_bytes = 256 * 1024 };

typedef struct written_entry {
    bp_entry_header header; /* its name is ours */
    unsigned rank;
} written_entry;

struct bp_archive {
    bp_archive_target target;
    bp_fd_mark mark; /* of its descriptor */
    bp_deflater *deflater;
    bp_archive_filter *filter;
    void *filter_context;
    uint64_t size;     /* the end of what is written */
    uint64_t max_size; /* the end of what was ever written */
    written_entry *entries;
    size_t count, capacity;
    written_entry open;       /* `name` is NULL where no entry is open */
    struct sha256_ctx sha256; /* of the open entry */
    bugpack_status status;
    int system_errno;
    bool is_over;
    size_t pending; /* bytes in `piece` */
    unsigned char piece[piece_bytes];
};

bugpack_status bp_archive_new(const bp_archive_target *target, bp_archive **ret_archive,
                              bugpack_error *error) {
    bp_archive *archive = calloc(1, sizeof *archive);
    bp_deflater *deflater = bp_deflater_new();
    if (archive == NULL || deflater == NULL) {
        bp_deflater_free(deflater);
        free(archive);
        return bp_fail_memory(error, "start a zip");
    }
    archive->target = *target;
    archive->mark = bp_fd_mark_of(target->fd);
    archive->deflater = deflater;
    *ret_archive = archive;
    return BUGPACK_OK;
}

static void free_name(written_entry *entry) {
    free((char *)(uintptr_t)entry->header.name);
    entry->header.name = NULL;
}

void bp_archive_free(bp_archive *archive) {
    if (archive == NULL) {
        return;
    }
    for (size_t i = 0; i < archive->count; i++) {
        free_name(&archive->entries[i]);
    }
    free_name(&archive->open);
    free(archive->entries);
    bp_deflater_free(archive->deflater);
    free(archive);
}

void bp_archive_set_filter(bp_archive *archive, bp_archive_filter *filter, void *context) {
    archive->filter = filter;
    archive->filter_context = context;
}

/* All of it, whatever signals arrive. A failure sticks to the open entry. */
static bugpack_status write_at(bp_archive *archive, uint64_t offset, const char *bytes,
                               size_t byte_count) {
    while (byte_count > 0) {
        ssize_t count = -1;
        errno = EBADF; /* the host may have closed it */
        if (bp_fd_is_ours(archive->target.fd, archive->mark)) {
            count = pwrite(archive->target.fd, bytes, byte_count, (off_t)offset);
        }
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            archive->system_errno = count == 0 ? ENOSPC : errno;
            return archive->status = BUGPACK_ERR_IO;
        }
        bytes += count;
        byte_count -= (size_t)count;
        offset += (uint64_t)count;
        archive->max_size = offset > archive->max_size ? offset : archive->max_size;
    }
    return BUGPACK_OK;
}

/* A bp_sink: after what is written already. */
static bugpack_status append(void *context, const void *bytes, size_t byte_count) {
    bp_archive *archive = context;
    bugpack_status status = write_at(archive, archive->size, bytes, byte_count);
    if (status == BUGPACK_OK) {
        archive->size += byte_count;
    }
    return status;
}

static bugpack_status refuse_name(const bp_archive *archive, const char *name, const char *why,
                                  bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_INVALID, "cannot add \"%s\" to \"%s\": %s", name,
                   archive->target.name, why);
}

static bool make_room(bp_archive *archive) {
    if (archive->count < archive->capacity) {
        return true;
    }
    size_t capacity = archive->capacity == 0 ? 32 : archive->capacity * 2;
    written_entry *entries = realloc(archive->entries, capacity * sizeof *entries);
    if (entries != NULL) {
        archive->entries = entries;
        archive->capacity = capacity;
    }
    return entries != NULL;
}

bugpack_status bp_archive_begin(bp_archive *archive, const char *name, unsigned rank,
                                bugpack_error *error) {
    if (archive->is_over || archive->open.header.name != NULL) {
        return refuse_name(archive, name, "another entry is open, or it is over", error);
    }
    if (name[0] == '\0' || strlen(name) > UINT16_MAX || archive->count >= BP_ARCHIVE_ENTRY_MAX ||
        !bp_utf8_is_valid(name, strlen(name))) {
        return refuse_name(archive, name, "not a valid name", error);
    }
    for (size_t i = 0; i < archive->count; i++) {
        if (strcasecmp(archive->entries[i].header.name, name) == 0) { /* readers would refuse */
            return refuse_name(archive, name, "it is there already", error);
        }
    }
    char *copy = make_room(archive) ? strdup(name) : NULL;
    if (copy == NULL) {
        return bp_fail_memory(error, "add to a zip");
    }
    archive->open = (written_entry){.header = {.name = copy,
                                               .method = BP_ZIP_DEFLATED,
                                               .offset = archive->size,
                                               .wall_ns = archive->target.wall_ns},
                                    .rank = rank};
    archive->size += bp_header_local_bytes(&archive->open.header);
    archive->status = BUGPACK_OK;
    archive->pending = 0;
    bp_deflater_reset(archive->deflater);
    sha256_init(&archive->sha256);
    return BUGPACK_OK;
}

static bugpack_status deflate_piece(bp_archive *archive, bool is_last) {
    bp_entry_header *header = &archive->open.header;
    bugpack_status status = bp_cancel_check(archive->target.token, NULL);
    if (status == BUGPACK_OK) {
        header->crc = bp_deflate_crc32(header->crc, archive->piece, archive->pending);
        header->bytes += archive->pending;
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
    bugpack_status status =
        archive->filter != NULL
            ? archive->filter(archive->filter_context, archive->open.header.name, bytes, byte_count,
                              take, archive)
            : take(archive, bytes, byte_count);
    return archive->status = archive->status != BUGPACK_OK ? archive->status : status;
}

bugpack_status bp_archive_write(void *archive, const void *bytes, size_t byte_count) {
    return byte_count > 0 ? pass(archive, bytes, byte_count)
                          : ((const bp_archive *)archive)->status;
}

bugpack_status bp_archive_check(const bp_archive *archive, bugpack_error *error) {
    switch (archive->status) {
    case BUGPACK_OK:
        return BUGPACK_OK;
    case BUGPACK_ERR_IO:
        return bp_fail_errno(error, archive->system_errno, "cannot write \"%s\"",
                             archive->target.name);
    case BUGPACK_ERR_CANCELLED:
    case BUGPACK_ERR_TIMEOUT:
        return bp_cancel_check(archive->target.token, error);
    default:
        return bp_fail(error, archive->status, "cannot write \"%s\": %s", archive->target.name,
                       bugpack_status_name(archive->status));
    }
}

/* What did not shrink, and is still all in `piece`, replaces what was made of it. */
static void store_instead(bp_archive *archive) {
    bp_entry_header *header = &archive->open.header;
    archive->size = header->offset + bp_header_local_bytes(header);
    header->method = BP_ZIP_STORED;
    (void)append(archive, archive->piece, (size_t)header->bytes);
}

static bugpack_status write_header(bp_archive *archive) {
    bp_buffer bytes;
    bp_buffer_init(&bytes, BP_ZIP_LOCAL_BYTES + 2 * UINT16_MAX);
    bp_header_write_local(&archive->open.header, &bytes);
    archive->status = bytes.status;
    if (archive->status == BUGPACK_OK) {
        (void)write_at(archive, archive->open.header.offset, bytes.data, bytes.size);
    }
    bp_buffer_release(&bytes);
    return archive->status;
}

bugpack_status bp_archive_end(bp_archive *archive, uint64_t *ret_bytes, bugpack_error *error) {
    bp_entry_header *header = &archive->open.header;
    if (header->name == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "\"%s\" has no open entry",
                       archive->target.name);
    }
    uint64_t data_offset = header->offset + bp_header_local_bytes(header);
    if (archive->filter != NULL) {
        (void)pass(archive, NULL, 0);
    }
    if (archive->status == BUGPACK_OK && deflate_piece(archive, true) == BUGPACK_OK &&
        header->bytes <= piece_bytes && archive->size - data_offset >= header->bytes) {
        store_instead(archive);
    }
    header->packed_bytes = archive->size - data_offset;
    if (archive->status != BUGPACK_OK || write_header(archive) != BUGPACK_OK) {
        bugpack_status status = bp_archive_check(archive, error);
        bp_archive_roll_back(archive);
        return status;
    }
    archive->entries[archive->count++] = archive->open;
    *ret_bytes = header->bytes;
    header->name = NULL;
    return BUGPACK_OK;
}

void bp_archive_take_sha256(bp_archive *archive, char ret_text[BP_SHA256_TEXT_BYTES]) {
    bp_sha256_print(&archive->sha256, ret_text);
}

/* False with errno. */
static bool cut(bp_archive *archive) {
    int result = 0;
    if (archive->max_size > archive->size) {
        do {
            errno = EBADF;
            result = bp_fd_is_ours(archive->target.fd, archive->mark)
                         ? ftruncate(archive->target.fd, (off_t)archive->size)
                         : -1;
        } while (result != 0 && errno == EINTR);
    }
    archive->max_size = result == 0 ? archive->size : archive->max_size;
    return result == 0;
}

void bp_archive_roll_back(bp_archive *archive) {
    if (archive->open.header.name != NULL) {
        archive->size = archive->open.header.offset;
        free_name(&archive->open);
        archive->status = BUGPACK_OK;
        (void)cut(archive); /* for the space; where it fails, bp_archive_finish tries again */
    }
}

static int compare_entries(const void *one, const void *other) {
    const written_entry *a = one, *b = other;
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return a->header.offset < b->header.offset ? -1 : a->header.offset > b->header.offset;
}

bugpack_status bp_archive_finish(bp_archive *archive, uint64_t *ret_bytes, bugpack_error *error) {
    if (archive->is_over || archive->count == 0 || archive->open.header.name != NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot write \"%s\": %s", archive->target.name,
                       archive->is_over      ? "it is over already"
                       : archive->count == 0 ? "it has no entries"
                                             : "an entry is open");
    }
    bp_buffer directory;
    uint64_t offset = archive->size;
    archive->is_over = true;
    qsort(archive->entries, archive->count, sizeof *archive->entries, compare_entries);
    bp_buffer_init(&directory, SIZE_MAX / 4);
    for (size_t i = 0; i < archive->count; i++) {
        bp_header_write_central(&archive->entries[i].header, &directory);
    }
    bp_header_write_end((uint16_t)archive->count, offset, (uint32_t)directory.size, &directory);
    archive->status = directory.status;
    if (archive->status == BUGPACK_OK) {
        archive->status = bp_cancel_check(archive->target.token, NULL);
    }
    if (archive->status == BUGPACK_OK &&
        append(archive, directory.data, directory.size) == BUGPACK_OK && !cut(archive)) {
        archive->system_errno = errno;
        archive->status = BUGPACK_ERR_IO;
    }
    bp_buffer_release(&directory);
    bugpack_status status = bp_archive_check(archive, error);
    if (status == BUGPACK_OK) {
        *ret_bytes = archive->size;
    }
    return status;
}
