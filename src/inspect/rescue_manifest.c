#include "inspect/rescue_manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/sha256.h"
#include "base/array.h"
#include "base/id.h"
#include "base/status.h"
#include "inspect/manifest_lines.h"
#include "inspect/report_file.h"
#include "model/metadata.h"
#include "json/tree.h"

static const char manifest_name[] = "manifest.json";
static const char metadata_name[] = "metadata.json";
static const char not_there[] = "it is not there";

/* An entry that was met. */
typedef struct met_entry {
    char *name, *lost; /* why it is lost; NULL: it was saved */
    uint64_t bytes;
    char sha256[BP_SHA256_TEXT_BYTES];
} met_entry;

struct bp_rescue_manifest {
    bp_rescue_result *result;
    met_entry *entries; /* in the order of the zip */
    size_t count, capacity;
    const met_entry **sorted;    /* by name, and saved ones first; for the printing */
    char report_id[BP_ID_BYTES]; /* of metadata.json; "" where it is not known */
    bp_json_tree *tree;          /* the old manifest, or NULL; then the new one */
    bool has_old;
    bp_manifest_lines lines; /* of the old one */
    uint64_t missing_count;
};

#define fail_memory(error) bp_fail_memory((error), "save what is left of a report")

bp_rescue_manifest *bp_rescue_manifest_new(bp_rescue_result *result) {
    bp_rescue_manifest *manifest = calloc(1, sizeof *manifest);
    if (manifest != NULL) {
        manifest->result = result;
    }
    return manifest;
}

void bp_rescue_manifest_free(bp_rescue_manifest *manifest) {
    if (manifest == NULL) {
        return;
    }
    for (size_t i = 0; i < manifest->count; i++) {
        free(manifest->entries[i].name);
        free(manifest->entries[i].lost);
    }
    free(manifest->entries);
    free(manifest->sorted);
    bp_manifest_lines_release(&manifest->lines);
    bp_json_tree_free(manifest->tree);
    free(manifest);
}

static bugpack_status add_entry(bp_rescue_manifest *manifest, const char *name, const char *lost,
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

bugpack_status bp_rescue_manifest_add(bp_rescue_manifest *manifest, const char *name,
                                      uint64_t byte_count, const char *sha256,
                                      bugpack_error *error) {
    met_entry entry = {.bytes = byte_count};
    (void)snprintf(entry.sha256, sizeof entry.sha256, "%s", sha256);
    manifest->result->saved_count++;
    return add_entry(manifest, name, NULL, entry, error);
}

static void say_lost(bp_rescue_result *result, const char *name, const char *why) {
    result->lost_count++;
    (void)bp_buffer_printf(&result->lost, "entry \"%s\": %s\n", name, why);
}

bugpack_status bp_rescue_manifest_lose(bp_rescue_manifest *manifest, const char *name,
                                       const char *why, bugpack_error *error) {
    if (name == NULL) {
        manifest->result->lost_count++;
        (void)bp_buffer_printf(&manifest->result->lost, "%s\n", why);
        return BUGPACK_OK;
    }
    say_lost(manifest->result, name, why);
    return add_entry(manifest, name, why, (met_entry){.name = NULL}, error);
}

void bp_rescue_manifest_read_id(bp_rescue_manifest *manifest, const bp_buffer *metadata) {
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

bugpack_status bp_rescue_manifest_read_old(bp_rescue_manifest *manifest, const bp_buffer *text,
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
               : bp_rescue_manifest_lose(manifest, manifest_name, detail.message, error);
}

static int compare_entries(const void *one, const void *other) {
    const met_entry *a = *(const met_entry *const *)one, *b = *(const met_entry *const *)other;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a->lost != NULL) - (b->lost != NULL);
}

static bool sort_entries(bp_rescue_manifest *manifest) {
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
static const met_entry *find_entry(const bp_rescue_manifest *manifest, const char *name) {
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

static bool set_lost(bp_rescue_manifest *manifest, bp_json_tree *line, const char *why) {
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
static bool note_unlisted(bp_rescue_manifest *manifest, bp_json_tree *line, const char *name) {
    manifest->result->unlisted_count++;
    (void)bp_buffer_printf(&manifest->result->unlisted, "entry \"%s\"\n", name);
    return bp_json_tree_set_text(line, "note",
                                 "in the damaged report, whose manifest does not list it");
}

/* Adds the line of an entry that the old manifest does not have. */
static bool add_line(bp_rescue_manifest *manifest, const met_entry *entry) {
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
static bool correct_line(bp_rescue_manifest *manifest, const bp_manifest_row *old,
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

static bugpack_status correct_lines(bp_rescue_manifest *manifest, bugpack_error *error) {
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
static bugpack_status begin_new(bp_rescue_manifest *manifest, bugpack_error *error) {
    static const char start[] =
        "{\"schema\": 2, \"report_id\": \"\", \"complete\": false, \"missing\": 0}";
    bool has_metadata = find_entry(manifest, metadata_name) != NULL;
    bugpack_status status = BUGPACK_OK;
    if (find_entry(manifest, manifest_name) == NULL) {
        status = bp_rescue_manifest_lose(manifest, manifest_name, not_there, error);
    }
    if (status == BUGPACK_OK && !has_metadata) {
        status = bp_rescue_manifest_lose(manifest, metadata_name, not_there, error);
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

bugpack_status bp_rescue_manifest_print(bp_rescue_manifest *manifest, bp_buffer *out,
                                        bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    const char *id = bp_json_tree_text_or(manifest->tree, "report_id", "");
    if (manifest->has_old && manifest->report_id[0] != '\0' &&
        strcmp(id, manifest->report_id) != 0) {
        bp_manifest_lines_release(&manifest->lines);
        bp_json_tree_free(manifest->tree);
        manifest->tree = NULL;
        manifest->has_old = false;
        status = bp_rescue_manifest_lose(manifest, manifest_name,
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
