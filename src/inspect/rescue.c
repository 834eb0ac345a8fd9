#include "inspect/rescue.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "archive/archive.h"
#include "archive/deflate.h"
#include "archive/header.h"
#include "archive/inflate.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "inspect/new_file.h"
#include "inspect/rescue_manifest.h"

enum { piece_bytes = 64 * 1024, header_bytes_max = BP_ZIP_CENTRAL_BYTES + 2 * UINT16_MAX };
static const size_t document_max_bytes = (size_t)4 << 20;
static const size_t said_max_bytes = (size_t)4 << 20; /* a name for each entry that may be met */
static const char manifest_name[] = "manifest.json";
static const char metadata_name[] = "metadata.json";
static const char twice[] = "another entry has this name, but for case";
static const char too_many[] = "a report has no more entries";

typedef struct rescuing {
    int fd;
    uint64_t file_bytes, left_bytes; /* of the file, and of what may still be decompressed */
    bp_archive *archive;
    bp_inflater *inflater;
    bp_rescue_manifest *manifest;
    bool has_manifest; /* the old one was met */
    bp_rescue_result result;
    /* The entry being read. */
    bp_directory_entry entry;
    char name[BP_DIRECTORY_NAME_MAX + 1];
    bp_buffer document; /* of metadata and manifest */
    bool is_document;
    uint64_t done;
    uint32_t crc;
    unsigned char header[header_bytes_max];
    unsigned char piece[piece_bytes];
} rescuing;

void bp_rescue_release(bp_rescue_result *result) {
    bp_buffer_release(&result->lost);
    bp_buffer_release(&result->unlisted);
}

#define fail_memory(error) bp_fail_memory((error), "save what is left of a report")

static bugpack_status lose(rescuing *state, const char *why, bugpack_error *error) {
    return bp_rescue_manifest_lose(state->manifest, state->name, why, error);
}

/*
 * Reads the header at `offset` as one of the directory, of which it has all but what says where the
 * entry is. NULL with its length, "" where there is none, or what is wrong.
 */
static const char *read_header(rescuing *state, uint64_t offset, size_t *ret_length) {
    unsigned char local[BP_ZIP_LOCAL_BYTES];
    int64_t count = bp_file_read_range(state->fd, local, sizeof local, offset);
    /* The directory, or what is left of it behind the manifest, which is the last entry. */
    if (count <= 0 || (count >= 4 && memcmp(local, "PK\1\2", 4) == 0) ||
        (count < (int64_t)sizeof local && state->has_manifest)) {
        return "";
    }
    if (count < (int64_t)sizeof local) {
        return "the file ends in a header";
    }
    size_t length = bp_header_local_length(local);
    if (length == 0) {
        return "a header is damaged";
    }
    size_t rest = length - sizeof local, central_bytes = 0;
    memset(state->header, 0, BP_ZIP_CENTRAL_BYTES);
    memcpy(state->header, "PK\1\2", 4);
    memcpy(state->header + 6, local + 4, sizeof local - 4);
    if (bp_file_read_range(state->fd, state->header + BP_ZIP_CENTRAL_BYTES, rest,
                           offset + sizeof local) != (int64_t)rest) {
        return "the file ends in a header";
    }
    const char *wrong = bp_header_parse_central(state->header, BP_ZIP_CENTRAL_BYTES + rest,
                                                &state->entry, &central_bytes);
    *ret_length = length;
    if (wrong == NULL) {
        memcpy(state->name, state->entry.name, state->entry.name_bytes);
        state->name[state->entry.name_bytes] = '\0';
    }
    return wrong;
}

/* A bp_sink of what comes out of an entry: to the new report, or to memory. */
static bugpack_status take(void *context, const void *bytes, size_t byte_count) {
    rescuing *state = context;
    if (byte_count > state->entry.bytes - state->done) {
        return BUGPACK_ERR_CORRUPT;
    }
    state->done += byte_count;
    state->crc = bp_deflate_crc32(state->crc, bytes, byte_count);
    if (state->is_document && bp_buffer_append(&state->document, bytes, byte_count) != BUGPACK_OK) {
        return BUGPACK_ERR_CORRUPT;
    }
    return strcmp(state->name, manifest_name) == 0
               ? BUGPACK_OK
               : bp_archive_write(state->archive, bytes, byte_count);
}

/* Why the bytes of the entry cannot be had, or NULL. `ret_status` is not OK where we cannot go on.
 */
static const char *read_entry(rescuing *state, uint64_t offset, bugpack_status *ret_status) {
    const bp_directory_entry *entry = &state->entry;
    bool is_stored = entry->method == BP_ZIP_STORED, is_over = is_stored;
    bp_inflater_reset(state->inflater);
    for (uint64_t left = entry->packed_bytes; left > 0;) {
        size_t count = left < piece_bytes ? (size_t)left : piece_bytes;
        if (bp_file_read_range(state->fd, state->piece, count, offset) != (int64_t)count) {
            return "the file ends in it";
        }
        bugpack_status status =
            !is_stored && is_over ? BUGPACK_ERR_CORRUPT
            : is_stored           ? take(state, state->piece, count)
                        : bp_inflate(state->inflater, state->piece, count, &is_over, take, state);
        if (status == BUGPACK_ERR_CORRUPT) {
            return "it is not deflated right";
        }
        if (status != BUGPACK_OK) {
            *ret_status = status;
            return "it cannot be written";
        }
        offset += count;
        left -= count;
    }
    return !is_over || state->done != entry->bytes ? "it has another size than it declares"
           : state->crc != entry->crc              ? "it has a wrong checksum"
                                                   : NULL;
}

/* Why an entry is not to be read at all, or NULL. */
static const char *find_refusal(const rescuing *state, bool is_manifest) {
    uint64_t max_bytes = state->left_bytes;
    if (state->is_document && document_max_bytes < max_bytes) {
        max_bytes = document_max_bytes;
    }
    bool is_twice = is_manifest
                        ? state->has_manifest
                        : !state->is_document && (strcasecmp(state->name, manifest_name) == 0 ||
                                                  strcasecmp(state->name, metadata_name) == 0);
    return is_twice                                                                ? twice
           : !is_manifest && state->result.saved_count + 1 >= BP_ARCHIVE_ENTRY_MAX ? too_many
           : state->entry.bytes > max_bytes ? "it is over the limit"
                                            : NULL;
}

/* Saves one entry, or says why not. */
static bugpack_status save_entry(rescuing *state, uint64_t offset, bugpack_error *error) {
    bool is_manifest = strcmp(state->name, manifest_name) == 0;
    char sha256[BP_SHA256_TEXT_BYTES];
    bugpack_error detail = BUGPACK_ERROR_INIT;
    state->is_document = is_manifest || strcmp(state->name, metadata_name) == 0;
    const char *wrong = find_refusal(state, is_manifest);
    if (wrong != NULL) {
        return lose(state, wrong, error);
    }
    state->done = 0;
    state->crc = 0;
    bp_buffer_clear(&state->document);
    bugpack_status status = is_manifest
                                ? BUGPACK_OK
                                : bp_archive_begin(state->archive, state->name,
                                                   (unsigned)state->result.saved_count, &detail);
    if (status != BUGPACK_OK) {
        return status == BUGPACK_ERR_INVALID ? lose(state, twice, error)
                                             : bp_fail(error, status, "%s", detail.message);
    }
    wrong = read_entry(state, offset, &status);
    state->left_bytes -= state->done;
    if (wrong != NULL) {
        if (status != BUGPACK_OK && !is_manifest) {
            (void)bp_archive_check(state->archive, error);
        }
        bp_archive_roll_back(state->archive);
        return status != BUGPACK_OK ? status : lose(state, wrong, error);
    }
    if (is_manifest) {
        state->has_manifest = true;
        return bp_rescue_manifest_read_old(state->manifest, &state->document, error);
    }
    if (state->is_document) {
        bp_rescue_manifest_read_id(state->manifest, &state->document);
    }
    uint64_t byte_count = 0;
    status = bp_archive_end(state->archive, &byte_count, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_archive_take_sha256(state->archive, sha256);
    return bp_rescue_manifest_add(state->manifest, state->name, byte_count, sha256, error);
}

static bugpack_status walk(rescuing *state, bugpack_error *error) {
    uint64_t offset = 0;
    for (size_t count = 0;; count++) {
        size_t length = 0;
        char why[120];
        const char *wrong = read_header(state, offset, &length);
        if (wrong != NULL && wrong[0] == '\0') {
            return BUGPACK_OK;
        }
        if (wrong == NULL && count == BP_ARCHIVE_ENTRY_MAX) {
            wrong = too_many;
        }
        if (wrong != NULL) {
            (void)snprintf(why, sizeof why, "all from byte %" PRIu64 " on: %s", offset, wrong);
            return bp_rescue_manifest_lose(state->manifest, NULL, why, error);
        }
        uint64_t end = state->file_bytes - offset - length;
        bugpack_status status = save_entry(state, offset + length, error);
        if (status != BUGPACK_OK || state->entry.packed_bytes > end) {
            return status;
        }
        offset += length + state->entry.packed_bytes;
    }
}

static bugpack_status add_manifest(rescuing *state, bugpack_error *error) {
    bp_buffer text;
    uint64_t byte_count;
    bp_buffer_init(&text, 4 * document_max_bytes);
    bugpack_status status = bp_rescue_manifest_print(state->manifest, &text, error);
    if (status == BUGPACK_OK) {
        status = bp_archive_begin(state->archive, manifest_name, UINT_MAX, error);
    }
    if (status == BUGPACK_OK) {
        (void)bp_archive_write(state->archive, bp_buffer_text(&text), text.size);
        status = bp_archive_end(state->archive, &byte_count, error);
    }
    bp_buffer_release(&text);
    return status;
}

/* A bp_new_file_fill. */
static bugpack_status write_report(void *context, int dir_fd, int fd, const char *name,
                                   bugpack_error *error) {
    rescuing *state = context;
    const bp_archive_target target = {
        .fd = fd, .dir_fd = dir_fd, .name = name, .wall_ns = bp_clock_wall_ns()};
    uint64_t zip_bytes;
    state->inflater = bp_inflater_new();
    state->manifest = bp_rescue_manifest_new(&state->result);
    bugpack_status status =
        state->inflater != NULL && state->manifest != NULL ? BUGPACK_OK : fail_memory(error);
    status = status == BUGPACK_OK ? bp_archive_new(&target, &state->archive, error) : status;
    status = status == BUGPACK_OK ? walk(state, error) : status;
    if (status == BUGPACK_OK && state->result.saved_count == 0) {
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "nothing of it can be saved");
    }
    status = status == BUGPACK_OK ? add_manifest(state, error) : status;
    return status == BUGPACK_OK ? bp_archive_finish(state->archive, &zip_bytes, error) : status;
}

bugpack_status bp_rescue(int fd, uint64_t max_bytes, const char *output_path, char *ret_name,
                         size_t name_bytes, bp_rescue_result *ret_result, bugpack_error *error) {
    struct stat info;
    rescuing *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return fail_memory(error);
    }
    state->fd = fd;
    state->left_bytes = max_bytes;
    state->file_bytes = fstat(fd, &info) == 0 ? (uint64_t)info.st_size : 0;
    bp_buffer_init(&state->document, document_max_bytes);
    bp_buffer_init(&state->result.lost, said_max_bytes);
    bp_buffer_init(&state->result.unlisted, said_max_bytes);
    bugpack_status status =
        bp_new_file_write(output_path, write_report, state, ret_name, name_bytes, error);
    if (status == BUGPACK_OK) {
        *ret_result = state->result;
    } else {
        bp_rescue_release(&state->result);
    }
    bp_buffer_release(&state->document);
    bp_archive_free(state->archive);
    bp_inflater_free(state->inflater);
    bp_rescue_manifest_free(state->manifest);
    free(state);
    return status;
}
