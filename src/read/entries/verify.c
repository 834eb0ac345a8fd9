#include "entries/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/reader.h"
#include "archive/sha256.h"
#include "base/status.h"
#include "entries/content.h"
#include "entries/report_file.h"
#include "json/member.h"
#include "json/tree_reader.h"
#include "model/metadata.h"

enum { fault_shown_max = 16 };
static const char manifest_name[] = "manifest.json";
static const char metadata_name[] = "metadata.json";
static const size_t manifest_max_bytes = (size_t)4 << 20;
static const size_t metadata_max_bytes = (size_t)1 << 20;

/* A line of the manifest. Texts are the tree's; "" for a name or status that is not there, and
 * sha256 may be NULL. */
typedef struct manifest_line {
    const char *name, *status, *sha256;
    uint64_t bytes;
    bool has_bytes, is_in_zip;
} manifest_line;

typedef struct verifying {
    uint64_t max_bytes;
    bp_archive_reader *reader;
    bp_json_tree *manifest; /* NULL: it cannot be read */
    manifest_line *lines;   /* by name */
    size_t line_count;
    bp_content content;
    struct sha256_ctx hash;
    bugpack_status content_status; /* of the entry being read */
    bugpack_error content_error;
    bp_verify_result result;
} verifying;

void bp_verify_release(bp_verify_result *result) {
    bp_buffer_release(&result->faults);
}

static void add_fault(verifying *state, const char *name, const char *why) {
    bp_buffer *faults = &state->result.faults;
    if (state->result.fault_count++ >= fault_shown_max) {
        return;
    }
    if (name != NULL) {
        (void)bp_buffer_printf(faults, "%sentry \"%s\": %s", faults->size > 0 ? "; " : "", name,
                               why);
    } else {
        (void)bp_buffer_printf(faults, "%s%s", faults->size > 0 ? "; " : "", why);
    }
}

/* Adds the sentence of the reader. */
static bugpack_status add_reader_fault(verifying *state, const bugpack_error *detail,
                                       bugpack_error *error) {
    if (detail->status != BUGPACK_ERR_CORRUPT && detail->status != BUGPACK_ERR_LIMIT) {
        return bp_fail(error, detail->status, "%s", detail->message);
    }
    add_fault(state, NULL, detail->message);
    return BUGPACK_OK;
}

static int compare_lines(const void *one, const void *other) {
    return strcmp(((const manifest_line *)one)->name, ((const manifest_line *)other)->name);
}

static bugpack_status read_lines(verifying *state, bugpack_error *error) {
    const bp_json_tree *first = bp_json_tree_rows(state->manifest, "artefacts");
    bool lacks_name = false, repeats_name = false;
    size_t count = 0;
    BP_JSON_EACH (one, first) {
        count++;
    }
    state->lines = calloc(count + 1, sizeof *state->lines);
    if (state->lines == NULL) {
        return bp_fail_memory(error, "read a manifest");
    }
    BP_JSON_EACH (one, first) {
        manifest_line *line = &state->lines[state->line_count++];
        *line = (manifest_line){.name = bp_json_tree_text_or(one, "name", ""),
                                .status = bp_json_tree_text_or(one, "status", ""),
                                .sha256 = bp_json_tree_text(one, "sha256")};
        line->has_bytes = bp_json_tree_uint(one, "bytes", &line->bytes);
        lacks_name = lacks_name || line->name[0] == '\0' || line->status[0] == '\0';
    }
    qsort(state->lines, count, sizeof *state->lines, compare_lines);
    for (size_t i = 1; i < count && !repeats_name; i++) {
        repeats_name = compare_lines(&state->lines[i - 1], &state->lines[i]) == 0;
    }
    if (repeats_name) {
        add_fault(state, manifest_name, "an artefact is listed twice");
    }
    if (lacks_name) {
        add_fault(state, manifest_name, "an artefact has no name or status");
    }
    return BUGPACK_OK;
}

/* NULL if there is none of that name. */
static manifest_line *find_line(const verifying *state, const char *name) {
    const manifest_line key = {.name = name};
    return state->line_count == 0
               ? NULL
               : bsearch(&key, state->lines, state->line_count, sizeof key, compare_lines);
}

/* True if the line says that its entry is in the zip. */
static bool is_present(const manifest_line *line) {
    return strcmp(line->status, "ok") == 0 || strcmp(line->status, "truncated") == 0 ||
           (line->has_bytes && line->bytes > 0) || line->sha256 != NULL;
}

/* Reads a whole entry, to be released in any case. OK without one. */
static bugpack_status read_whole(verifying *state, const char *name, size_t max_bytes,
                                 bp_buffer *out, bugpack_error *detail) {
    size_t index;
    bp_buffer_init(out, max_bytes);
    return bp_archive_reader_find(state->reader, name, &index)
               ? bp_archive_reader_read(state->reader, index, max_bytes, bp_buffer_sink, out,
                                        detail)
               : BUGPACK_OK;
}

static bugpack_status read_manifest(verifying *state, bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bp_buffer text;
    size_t index;
    uint64_t schema;
    if (!bp_archive_reader_find(state->reader, manifest_name, &index)) {
        add_fault(state, manifest_name, "it is not there");
        return BUGPACK_OK;
    }
    bugpack_status status = read_whole(state, manifest_name, manifest_max_bytes, &text, &detail);
    if (status != BUGPACK_OK) {
        bp_buffer_release(&text);
        return add_reader_fault(state, &detail, error);
    }
    status = bp_json_tree_read_within(bp_buffer_text(&text), text.size,
                                      BP_REPORT_MANIFEST_TREE_BYTES, &state->manifest, &detail);
    bp_buffer_release(&text);
    if (status == BUGPACK_ERR_CORRUPT) {
        add_fault(state, manifest_name, detail.message);
        return BUGPACK_OK;
    }
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "%s", detail.message);
    }
    if (!bp_json_tree_uint(state->manifest, "schema", &schema) || schema == 0) {
        add_fault(state, manifest_name, "it does not say which schema it has");
    } else if (schema != BP_SCHEMA_NUMBER) {
        add_fault(state, manifest_name,
                  schema < BP_SCHEMA_NUMBER
                      ? "an older bugpack wrote it"
                      : "a later bugpack wrote it, and knows more than this one");
    }
    if (bp_json_tree_array(state->manifest, "artefacts") == NULL) {
        add_fault(state, manifest_name, "it has no list of artefacts");
    }
    return read_lines(state, error);
}

/* The sink of an entry. It is read to its end, for its checksums, whatever it holds. */
static bugpack_status take(void *context, const void *bytes, size_t byte_count) {
    verifying *state = context;
    sha256_update(&state->hash, byte_count, bytes);
    if (state->content_status == BUGPACK_OK) {
        state->content_status =
            bp_content_write(&state->content, bytes, byte_count, &state->content_error);
    }
    return state->content_status == BUGPACK_ERR_NO_MEMORY ? BUGPACK_ERR_NO_MEMORY : BUGPACK_OK;
}

/* Compares an entry with its line of the manifest; NULL: it has none. */
static void check_line(verifying *state, const bp_archive_member *entry, const manifest_line *line,
                       const char *sha256) {
    if (line == NULL) {
        add_fault(state, entry->name, "the manifest does not list it");
    } else if (!line->has_bytes || line->bytes != entry->bytes) {
        add_fault(state, entry->name, "the manifest says another size");
    } else if (line->sha256 == NULL) {
        add_fault(state, entry->name, "the manifest says no SHA-256 of it");
    } else if (strcmp(line->sha256, sha256) != 0) {
        add_fault(state, entry->name, "its SHA-256 is not what the manifest says");
    }
}

static bugpack_status check_entry(verifying *state, size_t index, bugpack_error *error) {
    bp_archive_member entry = bp_archive_reader_member(state->reader, index);
    bugpack_error detail = BUGPACK_ERROR_INIT;
    char sha256[BP_SHA256_TEXT_BYTES];
    if (state->manifest == NULL && strcmp(entry.name, manifest_name) == 0) {
        return BUGPACK_OK; /* what is wrong with it was said */
    }
    sha256_init(&state->hash);
    state->content_status = BUGPACK_OK;
    bp_content_begin(&state->content, entry.name);
    bugpack_status status =
        bp_archive_reader_read(state->reader, index, UINT64_MAX, take, state, &detail);
    bp_sha256_print(&state->hash, sha256);
    manifest_line *line = find_line(state, entry.name);
    if (line != NULL) {
        line->is_in_zip = true;
    }
    if (status != BUGPACK_OK) {
        return add_reader_fault(state, &detail, error);
    }
    if (state->manifest != NULL && strcmp(entry.name, manifest_name) != 0) {
        check_line(state, &entry, line, sha256);
    }
    if (state->content_status == BUGPACK_OK) {
        state->content_status = bp_content_end(&state->content, &state->content_error);
    }
    if (state->content_status == BUGPACK_ERR_NO_MEMORY) {
        return bp_fail_memory(error, "verify a report");
    }
    if (state->content_status != BUGPACK_OK) {
        add_fault(state, entry.name, state->content_error.message);
    }
    return BUGPACK_OK;
}

/* The id of metadata.json must be that of the manifest. */
static bugpack_status check_ids(verifying *state, bugpack_error *error) {
    bp_json_field id = {.key = "\"report_id\""};
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bp_buffer text, value;
    bugpack_status status = read_whole(state, metadata_name, metadata_max_bytes, &text, &detail);
    bp_buffer_init(&value, metadata_max_bytes);
    if (status == BUGPACK_ERR_CORRUPT) {
        status = BUGPACK_OK; /* it was said */
    } else if (status != BUGPACK_OK) {
        status = add_reader_fault(state, &detail, error);
    } else if (bp_json_find(bp_buffer_text(&text), text.size, &id, 1, NULL) == BUGPACK_OK &&
               bp_json_token_text(&id.value, &value) &&
               strcmp(bp_buffer_text(&value),
                      bp_json_tree_text_or(state->manifest, "report_id", "")) != 0) {
        add_fault(state, metadata_name, "its report_id is not that of the manifest");
    }
    bp_buffer_release(&value);
    bp_buffer_release(&text);
    return status;
}

static bugpack_status check_entries(verifying *state, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < state->result.entry_count; i++) {
        status = check_entry(state, i, error);
    }
    bool has_metadata = false;
    for (size_t i = 0; i < state->line_count; i++) {
        const manifest_line *line = &state->lines[i];
        has_metadata = has_metadata || strcmp(line->name, metadata_name) == 0;
        if (!line->is_in_zip && is_present(line)) {
            add_fault(state, line->name, "the manifest lists it, and it is not there");
        }
    }
    size_t index;
    if (state->manifest != NULL && !has_metadata &&
        !bp_archive_reader_find(state->reader, metadata_name, &index)) {
        add_fault(state, metadata_name, "it is not there");
    }
    return status;
}

/* Adds up the declared sizes. The reader makes sure that entries have no more bytes. */
static bool is_too_large(verifying *state) {
    bp_verify_result *result = &state->result;
    result->entry_count = bp_archive_reader_count(state->reader);
    for (size_t i = 0; i < result->entry_count; i++) {
        uint64_t bytes = bp_archive_reader_member(state->reader, i).bytes;
        result->bytes += bytes < UINT64_MAX - result->bytes ? bytes : UINT64_MAX - result->bytes;
    }
    if (result->bytes <= state->max_bytes) {
        return false;
    }
    char why[160];
    (void)snprintf(why, sizeof why,
                   "it was not read: it holds %" PRIu64 " bytes, over the limit of %" PRIu64,
                   result->bytes, state->max_bytes);
    add_fault(state, NULL, why);
    return true;
}

static bugpack_status verify(verifying *state, int fd, bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    if (bp_archive_reader_open(fd, NULL, &state->reader, &detail) != BUGPACK_OK) {
        return add_reader_fault(state, &detail, error);
    }
    if (is_too_large(state)) {
        return BUGPACK_OK;
    }
    bugpack_status status = read_manifest(state, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = check_entries(state, error);
    return status == BUGPACK_OK && state->manifest != NULL ? check_ids(state, error) : status;
}

bugpack_status bp_verify(int fd, uint64_t max_bytes, bp_verify_result *ret_result,
                         bugpack_error *error) {
    verifying *state = calloc(1, sizeof *state);
    if (state == NULL) {
        return bp_fail_memory(error, "verify a report");
    }
    state->max_bytes = max_bytes;
    state->content.steps_left = max_bytes + max_bytes / 4;
    bp_buffer_init(&state->result.faults, (size_t)64 << 10);
    bugpack_status status = verify(state, fd, error);
    if (status == BUGPACK_OK && state->result.fault_count > fault_shown_max) {
        (void)bp_buffer_printf(&state->result.faults, "; and %zu more",
                               state->result.fault_count - fault_shown_max);
    }
    if (status == BUGPACK_OK) {
        *ret_result = state->result;
    } else {
        bp_verify_release(&state->result);
    }
    bp_content_release(&state->content);
    bp_json_tree_free(state->manifest);
    free(state->lines);
    bp_archive_reader_free(state->reader);
    free(state);
    return status;
}
