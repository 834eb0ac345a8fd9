/*
 * A libFuzzer target for what is shown of a report: the first byte of an input chooses an entry,
 * the rest is its content, and the other entries are as they should be. The facts must print as
 * JSON, the page must have no markup but that of the page writer, and lines of logs must be within
 * their bounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/log.h>

#include "fuzz/require.h"
#include "json/json.h"
#include "print/html.h"
#include "print/logs.h"
#include "support/made_zip.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count);

static const size_t output_max_bytes = (size_t)64 << 20;

static const char *const chosen[] = {
    "metadata.json",     "manifest.json",       "runtime-metrics.json", "process.json",
    "threads.json",      "stacks.json",         "heap-state.json",      "disconnect-cause.json",
    "crash.json",        "system.json",         "notifications.json",   "metrics-history.jsonl",
    "logs.jsonl",        "traffic-index.jsonl", "logs/a.log",           "notes.txt",
    "screenshot.png",    "profile.folded",      "files.json",           "hang.json",
    "host-threads.json", "thread-heap.json"};
enum { chosen_count = sizeof chosen / sizeof chosen[0] };

static const made_member fixed[] = {
    {"metadata.json", "{\"app\":{\"name\":\"a\"},\"triggered_at\":\"2026-11-22T10:00:30Z\"}",
     false},
    {"manifest.json", "{\"artefacts\":[],\"complete\":true}", false},
    {"runtime-metrics.json",
     "{\"process\":{\"cpu_percent\":1},\"threads\":[{\"tid\":7,\"name\":\"b\",\"cpu_percent\":1}]}",
     false}};
enum { fixed_count = sizeof fixed / sizeof fixed[0] };

/* Every '<' of the page begins one of these, and every '>' ends one. */
static bool is_ours(const char *tag) {
    static const char *const names[] = {
        "!DOCTYPE", "html", "head",     "meta", "title",   "style",      "body",
        "header",   "main", "section",  "h1",   "h2",      "dl",         "dt",
        "dd",       "ul",   "li",       "p",    "span",    "table",      "thead",
        "tbody",    "tr",   "th",       "td",   "figure",  "figcaption", "svg",
        "path",     "text", "polyline", "rect", "details", "summary",    "pre",
        "div",      "a",    "img",      "ol",   "code",    "br",         "h3"};
    tag += *tag == '/';
    size_t length = strcspn(tag, " >/\n");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], tag, length) == 0) {
            return true;
        }
    }
    return false;
}

static void check_page(const char *page) {
    const char *at = strstr(page, "</style>"); /* what is before is tested with the names */
    require(at != NULL);
    while ((at = strpbrk(at, "<>")) != NULL) {
        require(*at == '<' && is_ours(at + 1));
        for (at++; *at != '>'; at++) {
            require(*at != '\0' && *at != '<');
            at = *at == '"' ? strchr(at + 1, '"') : at;
            require(at != NULL);
        }
        at++;
    }
}

static bugpack_status keep(void *out, const void *bytes, size_t byte_count) {
    return bp_buffer_append(out, bytes, byte_count);
}

static void show(const char *path) {
    bp_facts *facts = NULL;
    bp_buffer text, again;
    if (bp_facts_open(path, (uint64_t)1 << 20, false, (bp_frame_finder){NULL, NULL, NULL}, &facts,
                      NULL) != BUGPACK_OK) {
        return;
    }
    bp_buffer_init(&text, output_max_bytes);
    bp_buffer_init(&again, output_max_bytes);
    require(bp_facts_print(facts, &text, NULL) == BUGPACK_OK);
    require(bp_json_reformat(bp_buffer_text(&text), text.size, &again, NULL) == BUGPACK_OK);
    bp_buffer_clear(&text);
    facts->left_bytes = (uint64_t)1 << 20;
    require(bp_html_write(facts, keep, &text, NULL) == BUGPACK_OK);
    require(strlen(bp_buffer_text(&text)) == text.size);
    check_page(bp_buffer_text(&text));
    bp_buffer_release(&text);
    bp_buffer_release(&again);
    bp_facts_close(facts);
}

static void read_logs(bp_report_file *report) {
    const bp_line_clock clock = {1795341630u * BP_NS_PER_SEC, 3600};
    bp_logs *logs = NULL;
    bp_log_line line;
    require(bp_logs_open(report, &clock, (uint64_t)1 << 20, &logs, NULL) == BUGPACK_OK);
    while (bp_logs_next(logs, &line)) {
        require(line.message_bytes <= BP_LOG_LINE_MAX_BYTES && line.level <= BUGPACK_LEVEL_FATAL);
        require(line.message[line.message_bytes] == '\0');
    }
    bp_logs_close(logs);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count) {
    made_member members[fixed_count + 1];
    char path[32];
    size_t count = 0;
    if (byte_count == 0) {
        return 0;
    }
    const char *name = chosen[data[0] % chosen_count];
    char *content = strndup((const char *)data + 1, byte_count - 1);
    require(content != NULL);
    for (size_t i = 0; i < fixed_count; i++) {
        if (strcmp(fixed[i].name, name) != 0) {
            members[count++] = fixed[i];
        }
    }
    members[count++] = (made_member){name, content, false};
    made_zip zip;
    bp_report_file *report = NULL;
    made_zip_build(&zip, members, count);
    int fd = made_zip_file(zip.bytes.data, zip.bytes.size);
    require(fd >= 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (bp_report_file_open_any(path, &report, NULL) == BUGPACK_OK) {
        show(path);
        read_logs(report);
    }
    bp_report_file_close(report);
    made_zip_release(&zip);
    (void)close(fd);
    free(content);
    return 0;
}
