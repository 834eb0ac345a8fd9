#include "entries/manifest_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static int compare_lines(const void *one, const void *other) {
    return strcmp(((const bp_manifest_row *)one)->name, ((const bp_manifest_row *)other)->name);
}

bugpack_status bp_manifest_lines_read(const bp_json_tree *manifest, bp_manifest_lines *ret_lines,
                                      bugpack_error *error) {
    const bp_json_tree *first = bp_json_tree_rows(manifest, "artefacts");
    bp_manifest_lines lines = {.count = 0};
    BP_JSON_EACH (one, first) {
        lines.count++;
    }
    lines.lines = calloc(lines.count + 1, sizeof *lines.lines);
    if (lines.lines == NULL) {
        return bp_fail_memory(error, "read a manifest");
    }
    bp_manifest_row *line = lines.lines;
    for (const bp_json_tree *one = first; one != NULL; one = bp_json_tree_next(one), line++) {
        *line = (bp_manifest_row){.name = bp_json_tree_text_or(one, "name", ""),
                                  .status = bp_json_tree_text_or(one, "status", ""),
                                  .sha256 = bp_json_tree_text(one, "sha256")};
        line->has_bytes = bp_json_tree_uint(one, "bytes", &line->bytes);
        lines.has_sha256 = lines.has_sha256 || line->sha256 != NULL;
        lines.lacks_name = lines.lacks_name || line->name[0] == '\0' || line->status[0] == '\0';
    }
    qsort(lines.lines, lines.count, sizeof *lines.lines, compare_lines);
    for (size_t i = 1; i < lines.count && !lines.repeats_name; i++) {
        lines.repeats_name = compare_lines(&lines.lines[i - 1], &lines.lines[i]) == 0;
    }
    *ret_lines = lines;
    return BUGPACK_OK;
}

void bp_manifest_lines_release(bp_manifest_lines *lines) {
    free(lines->lines);
    *lines = (bp_manifest_lines){.count = 0};
}

bp_manifest_row *bp_manifest_lines_find(const bp_manifest_lines *lines, const char *name) {
    const bp_manifest_row key = {.name = name};
    return lines->count == 0 ? NULL
                             : bsearch(&key, lines->lines, lines->count, sizeof key, compare_lines);
}

bool bp_manifest_row_is_present(const bp_manifest_row *line) {
    return strcmp(line->status, "ok") == 0 || strcmp(line->status, "truncated") == 0 ||
           (line->has_bytes && line->bytes > 0) || line->sha256 != NULL;
}

void bp_manifest_append_safe(bp_buffer *out, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        (void)bp_buffer_append_char(out, byte < 0x20 || byte >= 0x7F ? '?' : *text);
    }
}

void bp_manifest_append_exact_channels(bp_buffer *out, const bp_json_tree *line) {
    const char *before = " (";
    BP_JSON_EACH (channel, bp_json_tree_rows(line, "exact_channels")) {
        const char *name = bp_json_tree_value(channel);
        (void)bp_buffer_append_text(out, before);
        bp_manifest_append_safe(out, name != NULL ? name : "?");
        before = ", ";
    }
    (void)bp_buffer_append_text(out, before[0] == ',' ? ")" : "");
}

void bp_manifest_append_unsearched(bp_buffer *out, const bp_json_tree *manifest) {
    const char *before = "";
    BP_JSON_EACH (line, bp_json_tree_rows(manifest, "artefacts")) {
        if (bp_json_tree_is_true(line, "not_searched")) {
            (void)bp_buffer_append_text(out, before);
            bp_manifest_append_safe(out, bp_json_tree_text_or(line, "name", "?"));
            bp_manifest_append_exact_channels(out, line);
            before = ", ";
        }
    }
}
