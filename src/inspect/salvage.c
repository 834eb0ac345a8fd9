#include "inspect/salvage.h"

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <bugpack/error.h>

#include "archive/archive.h"
#include "archive/deflate.h"
#include "archive/directory.h"
#include "archive/inflate.h"
#include "archive/sha256.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/status.h"
#include "inspect/manifest_lines.h"
#include "inspect/report_file.h"
#include "model/metadata.h"
#include "platform/staged_file.h"
#include "json/tree.h"

/*
 * The manifest of a report that was saved: that of the damaged one with what is no longer so, or a
 * new one.
 */

static const char manifest_name[] = "manifest.json";
static const char metadata_name[] = "metadata.json";
static const char not_there[] = "it is not there";

/* An entry that was met. */
typedef struct met_entry {
    char *name, *lost; /* why it is lost; NULL: it was saved */
    uint64_t bytes;
    char sha256[BP_SHA256_TEXT_BYTES];
} met_entry;

typedef struct salvage_manifest {
    bp_salvage_result *result; /* gets what was lost and what was not listed */
    met_entry *entries;        /* in the order of the zip */
    size_t count, capacity;
    const met_entry **sorted;    /* by name, and saved ones first; for the printing */
    char report_id[BP_ID_BYTES]; /* of metadata.json; "" where it is not known */
    bp_json_tree *tree;          /* the old manifest, or NULL; then the new one */
    bool has_old;
    bp_manifest_lines lines; /* of the old one */
    uint64_t missing_count;
} salvage_manifest;

#define fail_memory(error) bp_fail_memory((error), "save what is left of a report")

static void salvage_manifest_release(salvage_manifest *manifest) {
    for (size_t i = 0; i < manifest->count; i++) {
        free(manifest->entries[i].name);
        free(manifest->entries[i].lost);
    }
    free(manifest->entries);
    free(manifest->sorted);
    bp_manifest_lines_release(&manifest->lines);
    bp_json_tree_free(manifest->tree);
}

static bugpack_status add_entry(salvage_manifest *manifest, const char *name, const char *lost,
                                met_entry entry, bugpack_error *error) {
    entry.name = strdup(name);
    entry.lost = lost != NULL ? strdup(lost) : NULL;
    if (entry.name == NULL || (entry.lost == NULL && lost != NULL) ||
        !bp_array_reserve(&manifest->entries, manifest->count, &manifest->capacity)) {
        free(entry.name);
        free(entry.lost);
        return fail_memory(error);
    }
    manifest->entries[manifest->count++] = entry;
    return BUGPACK_OK;
}

/* Notes an entry that was saved. NO_MEMORY. */
static bugpack_status salvage_manifest_add(salvage_manifest *manifest, const char *name,
                                           uint64_t byte_count, const char *sha256,
                                           bugpack_error *error) {
    met_entry entry = {.bytes = byte_count};
    (void)snprintf(entry.sha256, sizeof entry.sha256, "%s", sha256);
    manifest->result->saved_count++;
    return add_entry(manifest, name, NULL, entry, error);
}

static void say_lost(bp_salvage_result *result, const char *name, const char *why) {
    result->lost_count++;
    (void)bp_buffer_printf(&result->lost, "entry \"%s\": %s\n", name, why);
}

/* Notes one that cannot be saved; `name` is NULL for what has no name. NO_MEMORY. */
static bugpack_status salvage_manifest_lose(salvage_manifest *manifest, const char *name,
                                            const char *why, bugpack_error *error) {
    if (name == NULL) {
        manifest->result->lost_count++;
        (void)bp_buffer_printf(&manifest->result->lost, "%s\n", why);
        return BUGPACK_OK;
    }
    say_lost(manifest->result, name, why);
    return add_entry(manifest, name, why, (met_entry){.name = NULL}, error);
}

/* Takes the text of metadata.json, for the id of the report. */
static void salvage_manifest_read_id(salvage_manifest *manifest, const bp_buffer *metadata) {
    bp_json_tree *tree = NULL;
    if (bp_json_tree_read(bp_buffer_text(metadata), metadata->size, &tree, NULL) == BUGPACK_OK) {
        const char *id = bp_json_tree_text_or(tree, "report_id", "");
        if (strlen(id) == sizeof manifest->report_id - 1) {
            memcpy(manifest->report_id, id, sizeof manifest->report_id);
        }
        bp_json_tree_free(tree);
    }
}

/* CORRUPT where the manifest cannot be built upon, with the reason that `bugpack verify` gives. */
static bugpack_status check_manifest(const bp_json_tree *tree, bugpack_error *error) {
    uint64_t schema = 0;
    if (!bp_json_tree_uint(tree, "schema", &schema) || schema == 0 ||
        bp_json_tree_array(tree, "artefacts") == NULL) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "it does not say which schema or artefacts");
    }
    return BUGPACK_OK;
}

/* Takes the text of the old manifest. Notes it as lost if `bugpack verify` would refuse it.
 * NO_MEMORY. */
static bugpack_status salvage_manifest_read_old(salvage_manifest *manifest, const bp_buffer *text,
                                                bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bp_manifest_lines lines = {.count = 0};
    bp_json_tree *tree = NULL;
    bugpack_status status = bp_json_tree_read_within(bp_buffer_text(text), text->size,
                                                     BP_REPORT_MANIFEST_TREE_BYTES, &tree, &detail);
    status = status == BUGPACK_OK ? check_manifest(tree, &detail) : status;
    status = status == BUGPACK_OK ? bp_manifest_lines_read(tree, &lines, &detail) : status;
    if (status == BUGPACK_OK && lines.repeats_name) {
        status = bp_fail(&detail, BUGPACK_ERR_CORRUPT, "an artefact is listed twice");
    }
    if (status == BUGPACK_OK && lines.lacks_name) {
        status = bp_fail(&detail, BUGPACK_ERR_CORRUPT, "an artefact has no name or status");
    }
    if (status == BUGPACK_OK) {
        manifest->tree = tree;
        manifest->has_old = true;
        manifest->lines = lines;
        return BUGPACK_OK;
    }
    bp_manifest_lines_release(&lines);
    bp_json_tree_free(tree);
    return status == BUGPACK_ERR_NO_MEMORY
               ? fail_memory(error)
               : salvage_manifest_lose(manifest, manifest_name, detail.message, error);
}

static int compare_entries(const void *one, const void *other) {
    const met_entry *a = *(const met_entry *const *)one, *b = *(const met_entry *const *)other;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a->lost != NULL) - (b->lost != NULL);
}

static bool sort_entries(salvage_manifest *manifest) {
    const met_entry **sorted = realloc(manifest->sorted, (manifest->count + 1) * sizeof *sorted);
    if (sorted == NULL) {
        return false;
    }
    manifest->sorted = sorted;
    for (size_t i = 0; i < manifest->count; i++) {
        sorted[i] = &manifest->entries[i];
    }
    qsort(sorted, manifest->count, sizeof(const met_entry *), compare_entries);
    return true;
}

/* The entry of that name: the saved one where others of its name are lost. NULL without one. */
static const met_entry *find_entry(const salvage_manifest *manifest, const char *name) {
    size_t low = 0, high = manifest->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(manifest->sorted[middle]->name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < manifest->count && strcmp(manifest->sorted[low]->name, name) == 0
               ? manifest->sorted[low]
               : NULL;
}

static bool set_lost(salvage_manifest *manifest, bp_json_tree *line, const char *why) {
    char reason[sizeof(bugpack_error)];
    (void)snprintf(reason, sizeof reason, "lost: %s", why);
    bp_json_tree_remove(line, "sha256");
    bp_json_tree_remove(line, "note");
    manifest->missing_count++;
    return bp_json_tree_set_text(line, "status", "failed") &&
           bp_json_tree_set_uint(line, "bytes", 0) && bp_json_tree_set_text(line, "reason", reason);
}

static bool set_content(bp_json_tree *line, const met_entry *entry) {
    return bp_json_tree_set_uint(line, "bytes", entry->bytes) &&
           bp_json_tree_set_text(line, "sha256", entry->sha256);
}

/* An entry that was saved, and which the old manifest does not list, or as one that is not there.
 */
static bool note_unlisted(salvage_manifest *manifest, bp_json_tree *line, const char *name) {
    manifest->result->unlisted_count++;
    (void)bp_buffer_printf(&manifest->result->unlisted, "entry \"%s\"\n", name);
    return bp_json_tree_set_text(line, "note",
                                 "in the damaged report, whose manifest does not list it");
}

/* Adds the line of an entry that the old manifest does not have. */
static bool add_line(salvage_manifest *manifest, const met_entry *entry) {
    bp_json_tree *line = bp_json_tree_append(manifest->tree, "artefacts");
    if (line == NULL || !bp_json_tree_set_text(line, "name", entry->name) ||
        !bp_json_tree_set_text(line, "status", "ok") || !set_content(line, entry) ||
        !bp_json_tree_set_uint(line, "duration_ms", 0)) {
        return false;
    }
    if (entry->lost != NULL) {
        return set_lost(manifest, line, entry->lost);
    }
    return manifest->has_old
               ? note_unlisted(manifest, line, entry->name)
               : bp_json_tree_set_text(line, "note", "from a damaged report without a manifest");
}

/* Makes a line of the old manifest say what is so of its entry, NULL where there is none. */
static bool correct_line(salvage_manifest *manifest, const bp_manifest_row *old,
                         const met_entry *entry) {
    static const char changed[] = "it was changed after the manifest was written";
    bp_json_tree *line = (bp_json_tree *)(uintptr_t)old->tree; /* of a tree that is ours */
    bool is_present = bp_manifest_row_is_present(old);
    if (entry == NULL || entry->lost != NULL) {
        if (entry == NULL && is_present) {
            say_lost(manifest->result, old->name, not_there);
        }
        return (entry == NULL && !is_present) ||
               set_lost(manifest, line, entry != NULL ? entry->lost : not_there);
    }
    bool is_same = (!old->has_bytes || old->bytes == entry->bytes) &&
                   (old->sha256 == NULL || strcmp(old->sha256, entry->sha256) == 0);
    if (is_present && !is_same) {
        say_lost(manifest->result, old->name, changed);
        manifest->missing_count++;
        return bp_json_tree_set_text(line, "status", "truncated") &&
               bp_json_tree_set_text(line, "reason", changed) && set_content(line, entry);
    }
    return set_content(line, entry) && (is_present || note_unlisted(manifest, line, entry->name));
}

static bugpack_status correct_lines(salvage_manifest *manifest, bugpack_error *error) {
    bool is_set = true;
    if (manifest->has_old) {
        (void)bp_json_tree_uint(manifest->tree, "missing", &manifest->missing_count);
    }
    for (size_t i = 0; is_set && i < manifest->lines.count; i++) {
        const bp_manifest_row *line = &manifest->lines.lines[i];
        is_set = strcmp(line->name, manifest_name) == 0 ||
                 correct_line(manifest, line, find_entry(manifest, line->name));
    }
    for (size_t i = 0; is_set && i < manifest->count; i++) {
        const met_entry *entry = &manifest->entries[i];
        bool is_listed = bp_manifest_lines_find(&manifest->lines, entry->name) != NULL ||
                         (manifest->has_old && strcmp(entry->name, manifest_name) == 0);
        is_set =
            is_listed || find_entry(manifest, entry->name) != entry || add_line(manifest, entry);
    }
    return is_set ? BUGPACK_OK : fail_memory(error);
}

/* Without an old manifest nobody knows whether what was met is all. */
static bugpack_status begin_new(salvage_manifest *manifest, bugpack_error *error) {
    static const char start[] =
        "{\"schema\": 2, \"report_id\": \"\", \"complete\": false, \"missing\": 0}";
    bool has_metadata = find_entry(manifest, metadata_name) != NULL;
    bugpack_status status = BUGPACK_OK;
    if (find_entry(manifest, manifest_name) == NULL) {
        status = salvage_manifest_lose(manifest, manifest_name, not_there, error);
    }
    if (status == BUGPACK_OK && !has_metadata) {
        status = salvage_manifest_lose(manifest, metadata_name, not_there, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_json_tree_read(start, sizeof start - 1, &manifest->tree, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    if (manifest->report_id[0] == '\0') {
        bp_id_new(manifest->report_id);
    }
    return sort_entries(manifest) &&
                   bp_json_tree_set_text(manifest->tree, "report_id", manifest->report_id)
               ? BUGPACK_OK
               : fail_memory(error);
}

/* Appends the new manifest; once. Each entry has the size and the SHA-256 with which it was saved.
 * NO_MEMORY, LIMIT of the buffer. */
static bugpack_status salvage_manifest_print(salvage_manifest *manifest, bp_buffer *out,
                                             bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    const char *id = bp_json_tree_text_or(manifest->tree, "report_id", "");
    if (manifest->has_old && manifest->report_id[0] != '\0' &&
        strcmp(id, manifest->report_id) != 0) {
        bp_manifest_lines_release(&manifest->lines);
        bp_json_tree_free(manifest->tree);
        manifest->tree = NULL;
        manifest->has_old = false;
        status = salvage_manifest_lose(manifest, manifest_name,
                                       "its report_id is not that of metadata.json", error);
    }
    if (status == BUGPACK_OK && !sort_entries(manifest)) {
        status = fail_memory(error);
    }
    manifest->result->lacks_manifest = !manifest->has_old;
    status = status == BUGPACK_OK && !manifest->has_old ? begin_new(manifest, error) : status;
    status = status == BUGPACK_OK ? correct_lines(manifest, error) : status;
    if (status != BUGPACK_OK) {
        return status;
    }
    bool is_set = bp_json_tree_set_uint(manifest->tree, "missing", manifest->missing_count) &&
                  bp_json_tree_set_bool(manifest->tree, "complete", manifest->missing_count == 0);
    return is_set ? bp_json_tree_print(manifest->tree, out, error) : fail_memory(error);
}

enum { piece_bytes = 64 * 1024, header_bytes_max = BP_ZIP_CENTRAL_BYTES + 2 * UINT16_MAX };
static const size_t document_max_bytes = (size_t)4 << 20;
static const size_t said_max_bytes = (size_t)4 << 20; /* a name for each entry that may be met */
static const char twice[] = "another entry has this name, but for case";
static const char too_many[] = "a report has no more entries";

typedef struct rescuing {
    int fd;
    uint64_t file_bytes, left_bytes; /* of the file, and of what may still be decompressed */
    bp_archive *archive;
    bp_inflater *inflater;
    salvage_manifest manifest;
    bool has_manifest; /* the old one was met */
    bp_salvage_result result;
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

void bp_salvage_release(bp_salvage_result *result) {
    bp_buffer_release(&result->lost);
    bp_buffer_release(&result->unlisted);
}

static bugpack_status lose(rescuing *state, const char *why, bugpack_error *error) {
    return salvage_manifest_lose(&state->manifest, state->name, why, error);
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
        bugpack_status status = BUGPACK_ERR_CORRUPT;
        if (is_stored) {
            status = take(state, state->piece, count);
        } else if (!is_over) {
            status = bp_inflate(state->inflater, state->piece, count, &is_over, take, state);
        }
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
        return salvage_manifest_read_old(&state->manifest, &state->document, error);
    }
    if (state->is_document) {
        salvage_manifest_read_id(&state->manifest, &state->document);
    }
    uint64_t byte_count = 0;
    status = bp_archive_end(state->archive, &byte_count, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_archive_take_sha256(state->archive, sha256);
    return salvage_manifest_add(&state->manifest, state->name, byte_count, sha256, error);
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
            return salvage_manifest_lose(&state->manifest, NULL, why, error);
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
    bugpack_status status = salvage_manifest_print(&state->manifest, &text, error);
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

/* Writes the report to `fd`, in the directory `dir_fd`. */
static bugpack_status write_report(rescuing *state, int dir_fd, int fd, const char *path,
                                   bugpack_error *error) {
    const bp_archive_target target = {
        .fd = fd, .dir_fd = dir_fd, .name = path, .wall_ns = bp_clock_wall_ns()};
    uint64_t zip_bytes;
    state->inflater = bp_inflater_new();
    if (state->inflater == NULL) {
        return fail_memory(error);
    }
    bugpack_status status = bp_archive_new(&target, &state->archive, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = walk(state, error);
    if (status == BUGPACK_OK && state->result.saved_count == 0) {
        status = bp_fail(error, BUGPACK_ERR_CORRUPT, "nothing of it can be saved");
    }
    status = status == BUGPACK_OK ? add_manifest(state, error) : status;
    return status == BUGPACK_OK ? bp_archive_finish(state->archive, &zip_bytes, error) : status;
}

/* Writes the report to a file that has its name only when it is whole. */
static bugpack_status write_file(rescuing *state, const char *path, char *ret_name,
                                 size_t name_bytes, bugpack_error *error) {
    bp_staged_file *file = NULL;
    int dir_fd = -1;
    const char *name = strrchr(path, '/') + 1;
    const char *dot = strrchr(name, '.');
    const char *ending = dot == NULL || dot == name ? name + strlen(name) : dot;
    char *stem = strndup(name, (size_t)(ending - name));
    char *dir = strndup(path, (size_t)(name - path));
    bugpack_status status = stem == NULL || dir == NULL
                                ? bp_fail_memory(error, "write a file")
                                : bp_file_open_directory(dir, false, &dir_fd, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_staged_file_new(dir_fd, dir, &file, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = write_report(state, dir_fd, bp_staged_file_fd(file), path, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_staged_file_sync(file, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_staged_file_publish(file, stem, ending, ret_name, name_bytes, error);
out:
    bp_staged_file_free(file);
    bp_file_close(dir_fd);
    free(stem);
    free(dir);
    return status;
}

bugpack_status bp_salvage(int fd, uint64_t max_bytes, const char *output_path, char *ret_name,
                          size_t name_bytes, bp_salvage_result *ret_result, bugpack_error *error) {
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
    state->manifest.result = &state->result;
    bugpack_status status = write_file(state, output_path, ret_name, name_bytes, error);
    if (status == BUGPACK_OK) {
        *ret_result = state->result;
    } else {
        bp_salvage_release(&state->result);
    }
    bp_buffer_release(&state->document);
    bp_archive_free(state->archive);
    bp_inflater_free(state->inflater);
    salvage_manifest_release(&state->manifest);
    free(state);
    return status;
}
