#include "inspect/redact_list.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "inspect/report_file.h"
#include "json/tree.h"

/* docs/REPORT_FORMAT.md has the same in its table of personal data. A name that ends in '/' stands
 * for all below it. */
static const struct {
    const char *name, *holds;
} holdings[] = {
    {"metadata.json", "description, tags, names of programs"},
    {"crash.json", "numbers in registers, paths of files"},
    {"process.json", "command line, paths, user id"},
    {"stacks.txt", "names of threads and functions, paths"},
    {"stacks.json", "names of threads and functions, paths"},
    {"runtime-metrics.json", "names of threads"},
    {"threads.json", "names of threads, numbers passed to system calls, addresses of peers"},
    {"files.json", "paths of open files, addresses of peers"},
    {"system.json", "distribution, path and package of the program"},
    {"metrics-history.jsonl", "names of threads"},
    {"thread-heap.json", "names of threads"},
    {"heap-state.json", "numbers alone"},
    {"host-threads.json", "names of all processes and users of the machine"},
    {"session.json", "what the program says of itself"},
    {"channel-state.json", "what the program says of itself"},
    {"logs.jsonl", "log messages: addresses, paths, names"},
    {"logs/", "log files: addresses, paths, names"},
    {"commands/", "what commands printed: addresses, paths, names"},
    {"notifications.json", "what the user was shown"},
    {"traffic.pcap", "TRAFFIC with its payload"},
    {"traffic-index.jsonl", "names of channels and messages"},
    {"screenshot.png", "SCREENSHOT"},
    {"screenshot-region.png", "SCREENSHOT"},
    {"screen.txt", "what a terminal showed"},
    {"disconnect-cause.json", "error texts"},
    {"manifest.json", "names of entries, paths in reasons"},
};

static const char *find_holding(const char *name) {
    name += bp_report_folder_bytes(name);
    for (size_t i = 0; i < sizeof holdings / sizeof holdings[0]; i++) {
        const char *known = holdings[i].name;
        size_t length = strlen(known);
        if (known[length - 1] == '/' ? strncmp(name, known, length) == 0
                                     : strcmp(name, known) == 0) {
            return holdings[i].holds;
        }
    }
    return "a file that was attached, or made by the program";
}

/* Text of a report could obey a terminal otherwise. */
static void append_safe(bp_buffer *out, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        (void)bp_buffer_append_char(out, byte < 0x20 || byte >= 0x7F ? '?' : *text);
    }
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
    append_safe(out, name);
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
    }
    for (const bp_json_tree *one = bp_json_tree_first(all); one != NULL;
         one = bp_json_tree_next(one)) {
        const char *rule = bp_json_tree_text(one, "rule");
        uint64_t count = 0;
        (void)bp_json_tree_uint(one, "count", &count);
        (void)bp_buffer_append_text(out, total == 0 ? "; replaced: " : ", ");
        append_safe(out, rule == NULL ? "?" : rule);
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
    } else {
        (void)bp_buffer_append_text(out, "NOT REDACTED: secrets are as they were recorded\n");
    }
}

bugpack_status bp_redact_list(int fd, const char *path, bp_buffer *out, bugpack_error *error) {
    bp_report_file *report = NULL;
    bugpack_status status = bp_report_file_take(fd, path, &report, error);
    if (status != BUGPACK_OK) {
        bp_file_close(fd);
        return status;
    }
    append_all(out, report);
    bp_report_file_close(report);
    return out->status == BUGPACK_OK ? BUGPACK_OK : bp_fail_memory(error, "list a report");
}
