#include "inspect/redact_report.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/status.h"
#include "inspect/manifest_lines.h"
#include "inspect/report_file.h"
#include "model/entry.h"
#include "redact/redactor.h"
#include "json/tree.h"

/*
 * Lines of a report that mention a person or a machine: home directories, addresses, and names that
 * a caller knows. Nothing is replaced; somebody is shown what is about to be sent.
 */

enum { name_min = 3, shown_max = 2, line_max = 64 * 1024, excerpt_max = 74, excerpt_before = 24 };

static const uint64_t entry_max_bytes = (uint64_t)64 << 20;

/* What is built in for e-mail addresses and home directories is used as well. */
static const char address_rules[] =
    "[ip-address]\n"
    "keyword = \\d.\\d\n"
    "before = 3\n"
    "pattern = (?<![\\w.\\-])(?!127\\.|0\\.|255\\.)(?:(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)\\.){3}"
    "(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)(?![\\w\\-]|\\.\\w)\n"
    "[hardware-address]\n"
    "keyword = [0-9a-f][0-9a-f]:[0-9a-f][0-9a-f]:[0-9a-f]\n"
    "before = 2\n"
    "pattern = (?i)(?<![\\w:])(?!00:00:00:00:00:00)[0-9a-f]{2}(?::[0-9a-f]{2}){5}(?![\\w:])\n"
    "[ipv6-address]\n"
    "keyword = fe80: fc fd 20\n"
    "pattern = (?i)(?<![\\w:])(?:fe80|f[cd][0-9a-f]{2}|20[0-9a-f]{2}):"
    "(?=[0-9a-f:]{0,40}[0-9a-f]{1,4}:|:)[0-9a-f:]{3,40}+(?![\\w:])\n";

/* An entry being read, by lines. */
struct reading {
    bp_redactor *redactor;
    bp_buffer line, clean, excerpts;
    uint64_t left_bytes, hit_count;
    bool is_binary;
};

static void append_name(bp_buffer *rules, const char *name, size_t length) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (length >= name_min && length <= 60 && strspn(name, allowed) >= length) {
        (void)bp_buffer_printf(rules,
                               "[name-%zu]\nkeyword = %.*s\npattern = "
                               "(?i)(?<![A-Za-z0-9])\\Q%.*s\\E(?![A-Za-z0-9])\n",
                               rules->size, (int)length, name, (int)length, name);
    }
}

static void append_machine(bp_buffer *rules, const char *name) {
    if (name != NULL && strcmp(name, "localhost") != 0) {
        append_name(rules, name, strcspn(name, "."));
    }
}

static bugpack_status compile(const bp_person_names *names, const char *reported_machine,
                              bp_rule_set **ret_set, bugpack_error *error) {
    bp_rule_list list = {.rules = NULL};
    bp_buffer text;
    bp_buffer_init(&text, BP_RULE_TEXT_MAX);
    bugpack_status status = bp_rule_list_add_builtin(&list, NULL, NULL, error);
    for (size_t i = 0; i < list.count; i++) {
        const char *id = list.rules[i].id;
        list.rules[i].is_off = strcmp(id, "email") != 0 && strcmp(id, "home") != 0;
    }
    (void)bp_buffer_append_text(&text, address_rules);
    for (size_t i = 0; i < names->count; i++) {
        append_name(&text, names->users[i], strlen(names->users[i]));
    }
    append_machine(&text, names->machine);
    append_machine(&text, reported_machine);
    if (status == BUGPACK_OK) {
        status = text.status == BUGPACK_OK
                     ? bp_rule_list_parse(&list, "names", bp_buffer_text(&text), text.size, NULL,
                                          NULL, error)
                     : bp_fail_memory(error, "list a report");
    }
    bp_buffer_release(&text);
    if (status == BUGPACK_OK) {
        return bp_rule_set_new(&list, ret_set, error);
    }
    bp_rule_list_release(&list);
    return status;
}

/* What surrounds the first byte that differs, escaped. */
static void append_excerpt(struct reading *reading) {
    const char *line = bp_buffer_text(&reading->line), *clean = bp_buffer_text(&reading->clean);
    size_t size = reading->line.size, from = 0, at = 0;
    while (at < size && line[at] == clean[at]) {
        at++;
    }
    from = at > excerpt_before ? at - excerpt_before : 0;
    from += from == 0 ? strspn(line, " \t") : 0;
    size_t length = size - from < excerpt_max ? size - from : excerpt_max;
    (void)bp_buffer_append_text(&reading->excerpts, "      ");
    for (size_t i = from; i < from + length; i++) {
        unsigned char byte = (unsigned char)line[i];
        (void)bp_buffer_append_char(&reading->excerpts,
                                    byte < 0x20 || byte >= 0x7F ? '?' : line[i]);
    }
    (void)bp_buffer_append_char(&reading->excerpts, '\n');
}

static bugpack_status end_line(struct reading *reading) {
    bugpack_status status = BUGPACK_OK;
    if (reading->line.size > 0) {
        bp_buffer_clear(&reading->clean);
        status = bp_redactor_text(reading->redactor, reading->line.data, reading->line.size,
                                  &reading->clean);
    }
    bool is_hit = reading->line.size > 0 && status == BUGPACK_OK &&
                  (reading->clean.size != reading->line.size ||
                   memcmp(reading->clean.data, reading->line.data, reading->line.size) != 0);
    if (is_hit && reading->hit_count++ < shown_max) {
        append_excerpt(reading);
    }
    bp_buffer_clear(&reading->line);
    return status;
}

/* A bp_sink. A line that is too long is looked at in parts. */
static bugpack_status take(void *context, const void *bytes, size_t byte_count) {
    struct reading *reading = context;
    const char *next = bytes;
    bugpack_status status = BUGPACK_OK;
    reading->is_binary = reading->is_binary || memchr(bytes, '\0', byte_count) != NULL;
    if (byte_count > reading->left_bytes) {
        return BUGPACK_ERR_LIMIT;
    }
    reading->left_bytes -= byte_count;
    while (status == BUGPACK_OK && byte_count > 0 && !reading->is_binary) {
        const char *end = memchr(next, '\n', byte_count);
        size_t length = end != NULL ? (size_t)(end - next) : byte_count;
        size_t room = line_max - reading->line.size;
        size_t count = length < room ? length : room;
        status = bp_buffer_append(&reading->line, next, count);
        bool is_ended = count == length && end != NULL;
        if (status == BUGPACK_OK && (is_ended || count == room)) {
            status = end_line(reading);
        }
        next += count + is_ended;
        byte_count -= count + is_ended;
    }
    return status;
}

static bool is_text(const char *name) {
    bp_redact_form form = bp_redact_form_of(name);
    return form != BP_REDACT_BINARY && form != BP_REDACT_PCAP && strcmp(name, "manifest.json") != 0;
}

/* Appends the lines of one entry to `out`. */
static bugpack_status list_entry(const bp_report_file *report, const char *name,
                                 struct reading *reading, uint64_t *total, bp_buffer *out,
                                 bugpack_error *error) {
    reading->hit_count = 0;
    reading->left_bytes = entry_max_bytes;
    reading->is_binary = false;
    bp_buffer_clear(&reading->line);
    bp_buffer_clear(&reading->excerpts);
    bugpack_status status = bp_report_file_stream(report, name, UINT64_MAX, take, reading, error);
    bool is_cut = status == BUGPACK_ERR_LIMIT;
    if (status == BUGPACK_OK || is_cut) {
        status = end_line(reading);
    }
    if (status == BUGPACK_OK && reading->hit_count > 0) {
        (void)bp_buffer_append_text(out, "  ");
        bp_manifest_append_safe(out, name);
        (void)bp_buffer_printf(out, ": %s%" PRIu64 " line%s\n%s", is_cut ? "at least " : "",
                               reading->hit_count, reading->hit_count == 1 ? "" : "s",
                               bp_buffer_text(&reading->excerpts));
        *total += reading->hit_count;
    }
    return status;
}

/* Appends how many lines of each text mention somebody, or the machine that the report names, and
 * the first of them, escaped. Of an entry the first 64 MiB are looked at. NO_MEMORY; IO or CORRUPT
 * for an entry that cannot be read. */
static bugpack_status persons_list(const bp_report_file *report, const bp_person_names *names,
                                   bp_buffer *out, bugpack_error *error) {
    struct reading reading = {.redactor = NULL};
    bp_rule_set *set = NULL;
    bp_buffer text;
    uint64_t total = 0;
    bp_buffer_init(&text, (size_t)16 << 20);
    bp_buffer_init(&reading.line, line_max + 1);
    bp_buffer_init(&reading.clean, 16 * line_max);
    bp_buffer_init(&reading.excerpts, 4096);
    const char *machine = bp_json_tree_text(bp_report_file_metadata(report), "machine");
    bugpack_status status = compile(names, machine, &set, error);
    if (status == BUGPACK_OK && (reading.redactor = bp_redactor_new(set)) == NULL) {
        status = bp_fail_memory(error, "list a report");
    }
    for (size_t i = 0; status == BUGPACK_OK && i < bp_report_file_count(report); i++) {
        const char *name = bp_report_file_name(report, i);
        if (is_text(name)) {
            status = list_entry(report, name, &reading, &total, &text, error);
        }
    }
    if (status == BUGPACK_OK && total > 0) {
        (void)bp_buffer_printf(out, "lines that mention a person or a machine: %" PRIu64 "\n%s",
                               total, bp_buffer_text(&text));
    }
    bp_redactor_free(reading.redactor);
    bp_rule_set_drop(set);
    bp_buffer_release(&reading.line);
    bp_buffer_release(&reading.clean);
    bp_buffer_release(&reading.excerpts);
    bp_buffer_release(&text);
    return status;
}

static const char *find_holding(const char *name) {
    bp_entry_id id = bp_entry_find(name);
    return id < BP_ENTRY_COUNT ? bp_entries[id].holds
                               : "a file that was attached, or made by the program";
}

/* The names of entries get a column of this width, if they fit. */
static int name_width(const bp_json_tree *lines) {
    static const size_t max_width = 40;
    size_t width = 0;
    BP_JSON_EACH (line, bp_json_tree_first(lines)) {
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
    BP_JSON_EACH (one, bp_json_tree_first(all)) {
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
    BP_JSON_EACH (line, bp_json_tree_first(lines)) {
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
    status = persons_list(report, names, out, error);
    bp_report_file_close(report);
    if (status != BUGPACK_OK) {
        return status;
    }
    return out->status == BUGPACK_OK ? BUGPACK_OK : bp_fail_memory(error, "list a report");
}
