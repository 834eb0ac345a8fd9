#include "entries/redact_list.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/status.h"
#include "entries/manifest_lines.h"
#include "entries/report_file.h"
#include "json/tree_maker.h"
#include "model/entry.h"
#include "redact/redactor.h"

/*
 * Lines of a report that mention a person or a machine: home directories, addresses, and names that
 * a caller knows. Nothing is replaced; somebody is shown what is about to be sent.
 */

enum { name_min = 3, shown_max = 2, line_max = 64 * 1024, excerpt_max = 74, excerpt_before = 24 };

static const uint64_t entry_max_bytes = (uint64_t)64 << 20;

/* The built-in rules for e-mail addresses and home directories are used as well. */
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

/* An entry being read, by lines, and the document that it is added to. */
struct reading {
    bp_redactor *redactor;
    bp_json_maker *maker;
    const char *name;
    bp_buffer line, clean;
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
    bugpack_status status = bp_rule_list_add_builtin(&list, error);
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
                     ? bp_rule_list_parse(&list, "names", bp_buffer_text(&text), text.size, error)
                     : bp_fail_memory(error, "list a report");
    }
    bp_buffer_release(&text);
    if (status == BUGPACK_OK) {
        return bp_rule_set_new(&list, ret_set, error);
    }
    bp_rule_list_release(&list);
    return status;
}

/* Shows the first byte that differs with its surroundings, escaped. */
static void make_excerpt(struct reading *reading) {
    const char *line = bp_buffer_text(&reading->line), *clean = bp_buffer_text(&reading->clean);
    char excerpt[excerpt_max + 1];
    size_t size = reading->line.size, from = 0, at = 0;
    while (at < size && line[at] == clean[at]) {
        at++;
    }
    from = at > excerpt_before ? at - excerpt_before : 0;
    from += from == 0 ? strspn(line, " \t") : 0;
    size_t length = size - from < excerpt_max ? size - from : excerpt_max;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)line[from + i];
        excerpt[i] = byte < 0x20 || byte >= 0x7F ? '?' : (char)byte;
    }
    excerpt[length] = '\0';
    if (reading->hit_count == 0) {
        bp_json_make_object(reading->maker, NULL);
        bp_json_make_text(reading->maker, "name", reading->name);
        bp_json_make_array(reading->maker, "excerpts");
    }
    bp_json_make_text(reading->maker, NULL, excerpt);
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
    if (is_hit && reading->hit_count < shown_max) {
        make_excerpt(reading);
    }
    reading->hit_count += is_hit;
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

/* Counts the lines of an entry that mention somebody, or the machine that the report names, and
 * keeps the first ones. The first 64 MiB are looked at. NO_MEMORY; IO or CORRUPT for an entry that
 * cannot be read. */
static bugpack_status make_mentions(const bp_report_file *report, const char *name,
                                    struct reading *reading, bugpack_error *error) {
    bp_json_maker *maker = reading->maker;
    reading->name = name;
    reading->hit_count = 0;
    reading->left_bytes = entry_max_bytes;
    reading->is_binary = false;
    bp_buffer_clear(&reading->line);
    bugpack_status status = bp_report_file_stream(report, name, UINT64_MAX, take, reading, error);
    bool is_cut = status == BUGPACK_ERR_LIMIT;
    if (status == BUGPACK_OK || is_cut) {
        status = end_line(reading);
    }
    if (reading->hit_count > 0) {
        bp_json_make_end(maker);
        bp_json_make_uint(maker, "lines", true, reading->hit_count);
        bp_json_make_bool(maker, "is_cut", is_cut);
        bp_json_make_end(maker);
    }
    return status;
}

/* Adds the manifest line of an entry. Returns how many secrets were replaced there. */
static uint64_t make_searched(bp_json_maker *maker, const bp_json_tree *line) {
    uint64_t total = 0;
    bp_json_make_bool(maker, "not_searched", bp_json_tree_is_true(line, "not_searched"));
    if (bp_json_tree_rows(line, "exact_channels") != NULL) {
        bp_json_make_array(maker, "exact_channels");
        BP_JSON_EACH (channel, bp_json_tree_rows(line, "exact_channels")) {
            const char *name = bp_json_tree_value(channel);
            bp_json_make_text(maker, NULL, name != NULL ? name : "?");
        }
        bp_json_make_end(maker);
    }
    bp_json_make_array(maker, "redactions");
    BP_JSON_EACH (one, bp_json_tree_rows(line, "redactions")) {
        uint64_t count = bp_json_tree_uint_or(one, "count", 0);
        bp_json_make_object(maker, NULL);
        bp_json_make_text(maker, "rule", bp_json_tree_text_or(one, "rule", "?"));
        bp_json_make_uint(maker, "count", true, count);
        bp_json_make_end(maker);
        total += count;
    }
    bp_json_make_end(maker);
    return total;
}

/* An entry with the size that it has, and its line of the manifest or NULL. Returns how much was
 * replaced there. */
static uint64_t make_entry(bp_json_maker *maker, const bp_report_file *report, const char *name,
                           const bp_json_tree *line) {
    uint64_t byte_count = 0, replaced_count = 0;
    bp_entry_id id = name != NULL ? bp_entry_find(name) : BP_ENTRY_COUNT;
    if (name == NULL || !bp_report_file_has(report, name, &byte_count) ||
        (line != NULL && byte_count == 0)) {
        return 0;
    }
    bp_json_make_object(maker, NULL);
    bp_json_make_text(maker, "name", name);
    bp_json_make_uint(maker, "bytes", true, byte_count);
    bp_json_make_text(maker, "holds",
                      id < BP_ENTRY_COUNT ? bp_entries[id].holds
                                          : "a file that was attached, or made by the program");
    bp_json_make_bool(maker, "in_manifest", line != NULL);
    if (line != NULL) {
        replaced_count = make_searched(maker, line);
    }
    bp_json_make_end(maker);
    return replaced_count;
}

static bugpack_status make_list(const bp_report_file *report, struct reading *reading,
                                bugpack_error *error) {
    bp_json_maker *maker = reading->maker;
    const bp_json_tree *manifest = bp_report_file_manifest(report);
    size_t count = bp_report_file_count(report);
    uint64_t replaced_count = 0;
    bugpack_status status = BUGPACK_OK;
    bp_json_maker_begin(maker);
    bp_json_make_bool(maker, "redacted", bp_json_tree_is_true(manifest, "redacted"));
    bp_json_make_array(maker, "artefacts");
    BP_JSON_EACH (line, bp_json_tree_rows(manifest, "artefacts")) {
        replaced_count += make_entry(maker, report, bp_json_tree_text(line, "name"), line);
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = bp_report_file_name(report, i);
        if (strcmp(name, "manifest.json") != 0 && bp_report_file_line(report, name) == NULL) {
            (void)make_entry(maker, report, name, NULL);
        }
    }
    bp_json_make_end(maker);
    bp_json_make_uint(maker, "replaced", true, replaced_count);
    bp_json_make_array(maker, "mentions");
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        const char *name = bp_report_file_name(report, i);
        bp_redact_form form = bp_redact_form_of(name);
        if (form != BP_REDACT_BINARY && form != BP_REDACT_FRAMES &&
            strcmp(name, "manifest.json") != 0) {
            status = make_mentions(report, name, reading, error);
        }
    }
    bp_json_make_end(maker);
    return status == BUGPACK_OK && maker->lacks_memory ? bp_fail_memory(error, "list a report")
                                                       : status;
}

/* --- as text ------------------------------------------------------------------------------ */

/* The names of entries get a column of this width, if they fit. */
static int name_width(const bp_json_tree *entries) {
    static const size_t max_width = 40;
    size_t width = 0;
    BP_JSON_EACH (entry, entries) {
        size_t length = strlen(bp_json_tree_text_or(entry, "name", ""));
        width = length > width && length <= max_width ? length : width;
    }
    return (int)width;
}

static void append_entry(bp_buffer *out, const bp_json_tree *entry, int width) {
    const char *name = bp_json_tree_text_or(entry, "name", "");
    const char *before = "; replaced: ";
    int length = (int)strlen(name);
    bp_manifest_append_safe(out, name);
    (void)bp_buffer_printf(out, "%*s %10" PRIu64 "  %s", length < width ? width - length : 0, "",
                           bp_json_tree_uint_or(entry, "bytes", 0),
                           bp_json_tree_text_or(entry, "holds", ""));
    if (!bp_json_tree_is_true(entry, "in_manifest")) {
        (void)bp_buffer_append_text(
            out, "; NOT IN THE MANIFEST, which does not say whether it was searched");
    } else if (bp_json_tree_is_true(entry, "not_searched")) {
        (void)bp_buffer_append_text(out, "; NOT SEARCHED for secrets");
        bp_manifest_append_exact_channels(out, entry);
    }
    BP_JSON_EACH (one, bp_json_tree_rows(entry, "redactions")) {
        (void)bp_buffer_append_text(out, before);
        bp_manifest_append_safe(out, bp_json_tree_text_or(one, "rule", "?"));
        (void)bp_buffer_printf(out, " %" PRIu64, bp_json_tree_uint_or(one, "count", 0));
        before = ", ";
    }
    (void)bp_buffer_append_char(out, '\n');
}

static void append_mentions(bp_buffer *out, const bp_json_tree *mentions) {
    uint64_t total = 0;
    BP_JSON_EACH (entry, mentions) {
        total += bp_json_tree_uint_or(entry, "lines", 0);
    }
    if (total > 0) {
        (void)bp_buffer_printf(out, "lines that mention a person or a machine: %" PRIu64 "\n",
                               total);
    }
    BP_JSON_EACH (entry, mentions) {
        uint64_t count = bp_json_tree_uint_or(entry, "lines", 0);
        (void)bp_buffer_append_text(out, "  ");
        bp_manifest_append_safe(out, bp_json_tree_text_or(entry, "name", ""));
        (void)bp_buffer_printf(out, ": %s%" PRIu64 " line%s\n",
                               bp_json_tree_is_true(entry, "is_cut") ? "at least " : "", count,
                               count == 1 ? "" : "s");
        BP_JSON_EACH (excerpt, bp_json_tree_rows(entry, "excerpts")) {
            (void)bp_buffer_printf(out, "      %s\n", bp_json_tree_value(excerpt));
        }
    }
}

static void append_list(bp_buffer *out, const bp_json_tree *list, const bp_json_tree *manifest) {
    const bp_json_tree *entries = bp_json_tree_rows(list, "artefacts");
    int width = name_width(entries);
    BP_JSON_EACH (entry, entries) {
        append_entry(out, entry, width);
    }
    if (bp_json_tree_is_true(list, "redacted")) {
        bp_buffer unsearched;
        bp_buffer_init(&unsearched, (size_t)1 << 20);
        (void)bp_buffer_printf(out, "replaced in all: %" PRIu64 "\n",
                               bp_json_tree_uint_or(list, "replaced", 0));
        bp_manifest_append_unsearched(&unsearched, manifest);
        if (unsearched.size > 0) {
            (void)bp_buffer_printf(out, "not searched for secrets: %s\n",
                                   bp_buffer_text(&unsearched));
        }
        bp_buffer_release(&unsearched);
    } else {
        (void)bp_buffer_append_text(out, "NOT REDACTED: secrets are as they were recorded\n");
    }
    append_mentions(out, bp_json_tree_rows(list, "mentions"));
}

bugpack_status bp_redact_list(int fd, const char *path, const bp_person_names *names, bool as_json,
                              bp_buffer *out, bugpack_error *error) {
    bp_json_maker maker = {.root = NULL};
    struct reading reading = {.maker = &maker};
    bp_report_file *report = NULL;
    bp_rule_set *set = NULL;
    bugpack_status status = bp_report_file_take(fd, path, &report, error);
    if (status != BUGPACK_OK) {
        bp_file_close(fd);
        return status;
    }
    bp_buffer_init(&reading.line, line_max + 1);
    bp_buffer_init(&reading.clean, 16 * line_max);
    const char *machine = bp_json_tree_text(bp_report_file_metadata(report), "machine");
    status = compile(names, machine, &set, error);
    if (status == BUGPACK_OK && (reading.redactor = bp_redactor_new(set)) == NULL) {
        status = bp_fail_memory(error, "list a report");
    }
    if (status == BUGPACK_OK) {
        status = make_list(report, &reading, error);
    }
    if (status == BUGPACK_OK && as_json) {
        status = bp_json_tree_print(maker.root, out, error);
    } else if (status == BUGPACK_OK) {
        append_list(out, maker.root, bp_report_file_manifest(report));
    }
    bp_json_tree_free(maker.root);
    bp_redactor_free(reading.redactor);
    bp_rule_set_drop(set);
    bp_buffer_release(&reading.line);
    bp_buffer_release(&reading.clean);
    bp_report_file_close(report);
    if (status != BUGPACK_OK) {
        return status;
    }
    return out->status == BUGPACK_OK ? BUGPACK_OK : bp_fail_memory(error, "list a report");
}
