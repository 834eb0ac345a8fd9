#include "inspect/redact_list.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "inspect/manifest_lines.h"
#include "inspect/report_file.h"
#include "model/entry.h"
#include "json/tree.h"

static const char *find_holding(const char *name) {
    bp_entry_id id = bp_entry_find(name);
    return id < BP_ENTRY_COUNT ? bp_entries[id].holds
                               : "a file that was attached, or made by the program";
}

/* The names of entries get a column of this width, if they fit. */
static int name_width(const bp_json_tree *lines) {
    static const size_t max_width = 40;
    size_t width = 0;
    for (const bp_json_tree *line = bp_json_tree_first(lines); line != NULL;
         line = bp_json_tree_next(line)) {
        const char *name = bp_json_tree_text(line, "name");
        size_t length = name == NULL ? 0 : strlen(name);
        width = length > width && length <= max_width ? length : width;
    }
    return (int)width;
}

static void append_entry(bp_buffer *out, const char *name, uint64_t byte_count, int width) {
    bp_manifest_append_safe(out, name);
    int length = (int)strlen(name);
    (void)bp_buffer_printf(out, "%*s %10" PRIu64 "  %s", length < width ? width - length : 0, "",
                           byte_count, find_holding(name));
}

/* An entry that the manifest lists, with the size that it has. */
static uint64_t append_line(bp_buffer *out, const bp_report_file *report, const bp_json_tree *line,
                            int width) {
    const char *name = bp_json_tree_text(line, "name");
    const bp_json_tree *all = bp_json_tree_array(line, "redactions");
    uint64_t byte_count = 0, total = 0;
    if (name == NULL || !bp_report_file_has(report, name, &byte_count) || byte_count == 0) {
        return 0;
    }
    append_entry(out, name, byte_count, width);
    if (bp_json_tree_is_true(line, "not_searched")) {
        (void)bp_buffer_append_text(out, "; NOT SEARCHED for secrets");
        bp_manifest_append_exact_channels(out, line);
    }
    for (const bp_json_tree *one = bp_json_tree_first(all); one != NULL;
         one = bp_json_tree_next(one)) {
        const char *rule = bp_json_tree_text(one, "rule");
        uint64_t count = 0;
        (void)bp_json_tree_uint(one, "count", &count);
        (void)bp_buffer_append_text(out, total == 0 ? "; replaced: " : ", ");
        bp_manifest_append_safe(out, rule == NULL ? "?" : rule);
        (void)bp_buffer_printf(out, " %" PRIu64, count);
        total += count;
    }
    (void)bp_buffer_append_char(out, '\n');
    return total;
}

static void append_all(bp_buffer *out, const bp_report_file *report) {
    const bp_json_tree *manifest = bp_report_file_manifest(report);
    const bp_json_tree *lines = bp_json_tree_array(manifest, "artefacts");
    uint64_t total = 0, byte_count = 0;
    int width = name_width(lines);
    for (const bp_json_tree *line = bp_json_tree_first(lines); line != NULL;
         line = bp_json_tree_next(line)) {
        total += append_line(out, report, line, width);
    }
    for (size_t i = 0; i < bp_report_file_count(report); i++) {
        const char *name = bp_report_file_name(report, i);
        bp_report_line line;
        if (strcmp(name, "manifest.json") != 0 && !bp_report_file_line(report, name, &line) &&
            bp_report_file_has(report, name, &byte_count)) {
            append_entry(out, name, byte_count, width);
            (void)bp_buffer_append_text(
                out, "; NOT IN THE MANIFEST, which does not say whether it was searched\n");
        }
    }
    if (bp_json_tree_is_true(manifest, "redacted")) {
        (void)bp_buffer_printf(out, "replaced in all: %" PRIu64 "\n", total);
        bp_buffer unsearched;
        bp_buffer_init(&unsearched, (size_t)1 << 20);
        bp_manifest_append_unsearched(&unsearched, manifest);
        if (unsearched.size > 0) {
            (void)bp_buffer_printf(out, "not searched for secrets: %s\n",
                                   bp_buffer_text(&unsearched));
        }
        bp_buffer_release(&unsearched);
    } else {
        (void)bp_buffer_append_text(out, "NOT REDACTED: secrets are as they were recorded\n");
    }
}

bugpack_status bp_redact_list(int fd, const char *path, const bp_person_names *names,
                              bp_buffer *out, bugpack_error *error) {
    bp_report_file *report = NULL;
    bugpack_status status = bp_report_file_take(fd, path, &report, error);
    if (status != BUGPACK_OK) {
        bp_file_close(fd);
        return status;
    }
    append_all(out, report);
    status = bp_persons_list(report, names, out, error);
    bp_report_file_close(report);
    if (status != BUGPACK_OK) {
        return status;
    }
    return out->status == BUGPACK_OK ? BUGPACK_OK : bp_fail_memory(error, "list a report");
}
