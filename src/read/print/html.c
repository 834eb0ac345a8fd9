#include "print/html.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "entries/frames.h"
#include "entries/json_lines.h"
#include "entries/manifest_lines.h"
#include "model/entry.h"
#include "print/html_style.h"
#include "print/html_text.h"
#include "print/sections.h"

/*
 * The sections of a page that are made of many records, and what all sections share.
 */

enum {
    log_line_max = 2000,
    picture_max_bytes = 16 << 20,
    notifications_max_bytes = 4 << 20,
    bin_count = 60,
    type_max = 48
};

/* A page being written. */
typedef struct html_page {
    bp_html html;
    bp_facts *facts;
    bugpack_status status; /* NO_MEMORY */
} html_page;

static void begin_section(html_page *page, bp_section_id id) {
    const bp_section *section = &bp_sections[id];
    bp_html_print(&page->html, "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2>", section->id,
                  section->id, section->title);
}

static void end_section(html_page *page) {
    bp_html_print(&page->html, "</section>\n");
}

/* Writes a section that is made of lines. */
static void write_lines(html_page *page, bp_section_id id, const bp_json_tree *document) {
    const bp_json_tree *facts = bp_section_facts(&bp_sections[id], document);
    if (facts == NULL) {
        return;
    }
    begin_section(page, id);
    for (const bp_section_line *line = bp_sections[id].lines; !bp_section_is_end(line); line++) {
        const bp_json_tree *row = line->list != NULL ? bp_json_tree_rows(facts, line->list) : facts;
        if (line->page == NULL || row == NULL) {
            continue;
        }
        if (line->title != NULL) {
            bp_html_print(&page->html, "<h3>");
            bp_html_fill(&page->html, line->title, facts);
            bp_html_print(&page->html, "</h3>");
        }
        if (line->columns != NULL) {
            bp_html_begin_table(&page->html, line->columns);
        }
        for (; row != NULL; row = line->list != NULL ? bp_json_tree_next(row) : NULL) {
            bp_html_fill(&page->html, line->page, row);
        }
        bp_html_print(&page->html, line->columns != NULL ? "</tbody></table>" : "");
    }
    end_section(page);
}

/* True if an entry is there and may be read; its size then counts as read. One that is too large is
 * named on the page. */
static bool html_may_read(html_page *page, const char *entry, uint64_t max_bytes) {
    uint64_t byte_count;
    if (!bp_report_file_has(page->facts->report, entry, &byte_count)) {
        return false;
    }
    if (byte_count > max_bytes || byte_count > page->facts->left_bytes) {
        bp_html_print(&page->html,
                      "<p>%s is not shown: its %" PRIu64 " bytes are over the limit.</p>", entry,
                      byte_count);
        return false;
    }
    page->facts->left_bytes -= byte_count;
    return true;
}

/* A damaged entry is shown up to the damage. */
static void keep_failure(html_page *page, bugpack_status status) {
    page->status = status == BUGPACK_ERR_NO_MEMORY ? status : page->status;
}

/* The log: the lines before the newest ones are passed over. */
typedef struct log_lines {
    html_page *page;
    uint64_t skipped, number, after_count; /* the last: after the trigger */
} log_lines;

/* A box that is scrolled to its end, as the newest before the trigger matter most; those after it
 * are in one that begins with the first. */
static void begin_log_box(html_page *page, const char *label, bool is_at_end) {
    bp_html_print(&page->html,
                  is_at_end ? "<div class=\"scroll log at-end\" tabindex=\"0\" role=\"region\" "
                              "aria-label=\"%s\"><div>"
                            : "<div class=\"scroll log\" tabindex=\"0\" role=\"region\" "
                              "aria-label=\"%s\"><div>",
                  label);
}

static bugpack_status write_record(void *context, const char *line, size_t line_bytes) {
    log_lines *log = context;
    bp_json_field fields[] = {
        {.key = "\"time\""}, {.key = "\"level\""}, {.key = "\"channel\""}, {.key = "\"message\""}};
    char time[40], level[12], channel[256], message[4096];
    if (++log->number <= log->skipped) {
        return BUGPACK_OK;
    }
    bp_json_line_find(line, line_bytes, fields, 4);
    bp_json_line_text(&fields[0].value, time, sizeof time);
    bp_json_line_text(&fields[1].value, level, sizeof level);
    bp_json_line_text(&fields[2].value, channel, sizeof channel);
    bp_json_line_text(&fields[3].value, message, sizeof message);
    uint64_t trigger_ns = log->page->facts->triggered_wall_ns;
    if (trigger_ns != 0 && bp_json_line_time(&fields[0].value) > trigger_ns &&
        log->after_count++ == 0) {
        bp_html_print(&log->page->html, "</div></div><h3>After the trigger</h3>");
        begin_log_box(log->page, "Log records after the trigger", false);
    }
    bp_html_print(&log->page->html,
                  "<div id=\"log-%" PRIu64 "\" class=\"%s\"><a href=\"#log-%" PRIu64
                  "\">%s</a> %s %s%s%s</div>\n",
                  log->number, level, log->number, time[0] != '\0' ? time : "no time", level,
                  channel, channel[0] != '\0' ? ": " : "", message);
    return log->page->html.status == BUGPACK_OK ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
}

static void html_log(html_page *page) {
    uint64_t count = bp_json_tree_uint_or(page->facts->document, "log_count", 0);
    if (count == 0) {
        return;
    }
    log_lines log = {page, count > log_line_max ? count - log_line_max : 0, 0, 0};
    begin_section(page, BP_SECTION_LOG);
    bp_html_print(&page->html, "<p>%" PRIu64 " records, the newest %" PRIu64 " of them:</p>", count,
                  count - log.skipped);
    begin_log_box(page, "Log records", true);
    if (html_may_read(page, "logs.jsonl", UINT64_MAX)) {
        keep_failure(page, bp_report_lines(page->facts->report, "logs.jsonl", UINT64_MAX,
                                           write_record, &log, NULL));
    }
    bp_html_print(&page->html, "</div></div>");
    end_section(page);
}

/* Messages by type, and of each channel over time. */
typedef struct traffic_counts {
    const bp_process_reader *reader;
    uint64_t from_ns, to_ns, bin_ns; /* the bins of a channel reach to `to_ns` at least */
    uint64_t bins[BP_READER_CHANNEL_MAX][bin_count];
    struct {
        char name[64];
        uint64_t messages, bytes;
    } types[type_max + 1]; /* the last are all further ones */
    size_t type_count;
} traffic_counts;

static void count_type(traffic_counts *traffic, const char *name, uint64_t byte_count) {
    size_t i = 0;
    while (i < traffic->type_count && strcmp(traffic->types[i].name, name) != 0) {
        i++;
    }
    if (i == traffic->type_count && i < type_max) {
        (void)memcpy(traffic->types[traffic->type_count++].name, name, strlen(name) + 1);
    }
    traffic->types[i].messages++;
    traffic->types[i].bytes += byte_count;
}

static bugpack_status count_message(void *context, const char *line, size_t line_bytes) {
    traffic_counts *traffic = context;
    bp_json_field fields[] = {{.key = "\"time\""},
                              {.key = "\"channel\""},
                              {.key = "\"type\""},
                              {.key = "\"bytes\""},
                              {.key = "\"type_name\""}};
    char channel[64], type[64];
    uint64_t byte_count = 0, number = 0;
    bp_json_line_find(line, line_bytes, fields, 5);
    bp_json_line_text(&fields[1].value, channel, sizeof channel);
    bp_json_line_text(&fields[4].value, type, sizeof type);
    (void)bp_json_token_fixed(&fields[3].value, 0, &byte_count);
    if (type[0] == '\0' && bp_json_token_fixed(&fields[2].value, 0, &number)) {
        (void)snprintf(type, sizeof type, "%" PRIu64, number);
    }
    count_type(traffic, type, byte_count);
    uint64_t wall_ns = bp_json_line_time(&fields[0].value);
    for (size_t i = 0; i < traffic->reader->channel_count; i++) {
        if (strcmp(traffic->reader->channels[i].name, channel) == 0 &&
            wall_ns >= traffic->from_ns && wall_ns <= traffic->to_ns) {
            traffic->bins[i][(wall_ns - traffic->from_ns) / traffic->bin_ns]++;
        }
    }
    return BUGPACK_OK;
}

static void write_channels(html_page *page, const traffic_counts *traffic) {
    char columns[96];
    size_t i = 0;
    (void)snprintf(columns, sizeof columns, "Channel|Sent|Received|Messages over %.1f s",
                   (double)(traffic->to_ns - traffic->from_ns) / 1e9);
    bp_html_begin_table(&page->html, columns);
    BP_JSON_EACH (row, bp_json_tree_rows(page->facts->document, "traffic")) {
        bp_html_fill(&page->html,
                     "<tr><th scope=\"row\">{channel}</th>"
                     "<td>{[{at_least:!}at least ]}{sent.messages:u} ({sent.bytes:u} bytes)</td>"
                     "<td>{[{at_least:!}at least ]}{received.messages:u} ({received.bytes:u} "
                     "bytes)</td><td>",
                     row);
        bp_html_bars(&page->html, "Messages over time", traffic->bins[i++], bin_count);
        bp_html_print(&page->html, "</td></tr>");
    }
    bp_html_print(&page->html, "</tbody></table>");
    bp_html_fill(&page->html, "<p>{other_messages:u} more messages are of other channels.</p>",
                 page->facts->document);
}

static void write_types(html_page *page, const traffic_counts *traffic) {
    bp_html_print(&page->html, "<details><summary>By message type</summary>");
    bp_html_begin_table(&page->html, "Type|Messages|Bytes");
    for (size_t i = 0; i <= type_max; i++) {
        const char *name = i == type_max ? "further types" : traffic->types[i].name;
        if (traffic->types[i].messages > 0) {
            bp_html_print(&page->html,
                          "<tr><th scope=\"row\">%s</th><td class=\"number\">%" PRIu64
                          "</td><td class=\"number\">%" PRIu64 "</td></tr>",
                          name[0] != '\0' ? name : "no type", traffic->types[i].messages,
                          traffic->types[i].bytes);
        }
    }
    bp_html_print(&page->html, "</tbody></table></details>");
}

/* From the first message of any channel to the last. */
static void set_span(traffic_counts *traffic) {
    traffic->from_ns = UINT64_MAX;
    for (size_t i = 0; i < traffic->reader->channel_count; i++) {
        const bp_channel_row *row = &traffic->reader->channels[i];
        bool is_first = row->first_wall_ns != 0 && row->first_wall_ns < traffic->from_ns;
        traffic->from_ns = is_first ? row->first_wall_ns : traffic->from_ns;
        traffic->to_ns = row->last_wall_ns > traffic->to_ns ? row->last_wall_ns : traffic->to_ns;
    }
    traffic->to_ns = traffic->to_ns < traffic->from_ns ? traffic->from_ns : traffic->to_ns;
    traffic->bin_ns = (traffic->to_ns - traffic->from_ns) / bin_count + 1;
}

static void html_traffic(html_page *page) {
    if (page->facts->first.channel_count == 0) {
        return;
    }
    traffic_counts *traffic = calloc(1, sizeof *traffic);
    if (traffic == NULL) {
        page->status = BUGPACK_ERR_NO_MEMORY;
        return;
    }
    traffic->reader = &page->facts->first;
    set_span(traffic);
    begin_section(page, BP_SECTION_TRAFFIC);
    if (html_may_read(page, "traffic-index.jsonl", UINT64_MAX)) {
        keep_failure(page, bp_report_lines(page->facts->report, "traffic-index.jsonl", UINT64_MAX,
                                           count_message, traffic, NULL));
    }
    write_channels(page, traffic);
    write_types(page, traffic);
    end_section(page);
    free(traffic);
}

static void html_pictures(html_page *page) {
    static const char *const names[] = {"screenshot.png", "screenshot-region.png"};
    bool has_any = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bp_html_picture picture = {.html = &page->html};
        if (!bp_report_file_has(page->facts->report, names[i], NULL)) {
            continue;
        }
        if (!has_any) {
            begin_section(page, BP_SECTION_PICTURES);
        }
        has_any = true;
        if (html_may_read(page, names[i], picture_max_bytes)) {
            base64_encode_init(&picture.base64);
            bp_html_print(&page->html, "<figure><img alt=\"%s\" src=\"data:image/png;base64,",
                          names[i]);
            keep_failure(page, bp_report_file_stream(page->facts->report, names[i], UINT64_MAX,
                                                     bp_html_picture_write, &picture, NULL));
            bp_html_picture_end(&picture);
            bp_html_print(&page->html, "\"><figcaption>%s</figcaption></figure>", names[i]);
        }
    }
    if (has_any) {
        end_section(page);
    }
}

/* --- the sections ------------------------------------------------------------------------- */

static void write_fact(html_page *page, const char *name, const char *value) {
    if (value != NULL && value[0] != '\0') {
        bp_html_print(&page->html, "<dt>%s</dt><dd>%s</dd>", name, value);
    }
}

static void write_identity(html_page *page) {
    static const char *const lines[] = {
        "<header><h1>{report.app|Report}{[ {report.version}]}: {kind}</h1><dl>",
        "<dt>Description</dt><dd>{says}</dd>",
        "{died_unseen:!}<dt>Last sign of life</dt><dd>{report.triggered_at}</dd>",
        "{died_unseen:~}<dt>Triggered</dt><dd>{report.triggered_at}</dd>",
        "{report.triggered_at:~}<dt>Written</dt><dd>{timestamp}</dd>",
        "{is_process:!}<dt>Process</dt><dd>{[{report.process} ]}{report.pid:u}</dd>",
        "<dt>Started</dt><dd>{report.started_at}</dd>",
        "<dt>Build</dt><dd>{report.build_id}</dd>",
        "<dt>Gap</dt><dd>{report.gap_key}</dd>",
        "<dt>Channel</dt><dd>{report.channel}</dd>",
        "<dt>Machine</dt><dd>{report.machine}</dd>",
        "<dt>Report</dt><dd>{report.report_id}</dd>",
        "<dt>Signature</dt><dd>{signature}{[{weak_signature:!}, which names no place]}</dd>",
        "<dt>Platform</dt><dd>{os}{[ {kernel}]}{[ {arch}]}</dd>"};
    bp_buffer names;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        bp_html_fill(&page->html, lines[i], page->facts->document);
    }
    BP_JSON_EACH (tag, bp_json_tree_first(bp_json_tree_object(page->facts->metadata, "tags"))) {
        write_fact(page, bp_json_tree_key(tag), bp_json_tree_value(tag));
    }
    bp_buffer_init(&names, (size_t)1 << 20);
    bp_manifest_append_unsearched(&names, page->facts->manifest);
    bool is_redacted = bp_json_tree_is_true(page->facts->document, "redacted");
    write_fact(page, "Secrets",
               page->facts->manifest == NULL || is_redacted ? NULL : "not replaced in this report");
    write_fact(page, "Not searched for secrets", is_redacted ? bp_buffer_text(&names) : NULL);
    bp_buffer_release(&names);
    bp_html_print(&page->html, "</dl></header>\n<main>\n");
}

static void write_findings(html_page *page) {
    const bp_findings *findings = &page->facts->findings;
    uint64_t other_count = bp_findings_other_count(findings);
    begin_section(page, BP_SECTION_FINDINGS);
    bp_html_print(&page->html, findings->count > 0 ? "<ul class=\"findings\">" : "<p>None.</p>");
    for (size_t i = 0; i < findings->count; i++) {
        const bp_finding *finding = &findings->rows[i];
        const char *severity = bp_severity_name(bp_finding_severity(finding));
        const char *next = bp_findings_next(findings, i);
        bp_html_print(&page->html, "<li class=\"%s\"><span class=\"severity\">%s:</span> ",
                      severity, severity);
        bp_html_sentence(&page->html, &finding->sentence);
        bp_html_print(&page->html, " <span class=\"entry\">%s</span>", finding->entry);
        if (next[0] != '\0') {
            bp_html_print(&page->html, "<br>Next: %s", next);
        }
        bp_html_print(&page->html, "</li>");
    }
    bp_html_print(&page->html, findings->count > 0 ? "</ul>" : "");
    if (other_count > 0) {
        bp_html_print(&page->html, "<p>And %" PRIu64 " more, %" PRIu64 " of them critical.</p>",
                      other_count, findings->other_counts[BP_SEVERITY_CRITICAL]);
    }
    end_section(page);
}

static void write_waits(html_page *page) {
    if (page->facts->waits.edge_count > 0) {
        begin_section(page, BP_SECTION_WAITS);
        bp_html_waits(&page->html, &page->facts->waits);
        end_section(page);
    }
}

static void write_history(html_page *page) {
    const bp_json_tree *document = page->facts->document;
    const bp_json_tree *heap = bp_json_tree_object(document, "heap");
    if (!bp_json_tree_is_true(document, "has_use") && page->facts->first.sample_count == 0 &&
        bp_json_tree_member(heap, "allocated_bytes") == NULL) {
        return;
    }
    begin_section(page, BP_SECTION_METRICS);
    bp_html_fill(&page->html, "<p>" BP_FILL_GROUP ".</p>", bp_json_tree_object(document, "group"));
    bp_html_fill(&page->html,
                 "{has_use:!}<p>{[{has_rate:!}{process.cpu_percent:.1f} % of one CPU over "
                 "{process.sample_window_ms:.2t} s, ]}{[{process.rss_kb:.1m} MiB resident, ]}"
                 "{process.thread_count:u} thread{process.thread_count:p}"
                 "{[, up {process.uptime_secs:.0f} s]}.</p>",
                 document);
    bp_html_history(&page->html, page->facts);
    bp_html_fill(&page->html, "<p>Heap: {allocated_bytes:K} KiB allocated, {allocator|}.</p>",
                 heap);
    end_section(page);
}

static const bp_json_tree *of_interest(const html_page *page) {
    return bp_json_tree_rows(page->facts->document, "processes_of_interest");
}

/* The profiles of several processes as one, whose threads have the process in their names. */
typedef struct joined_profile {
    bp_call_tree tree;
    bp_buffer line;
    uint64_t pid;
} joined_profile;

static bugpack_status join_stack(void *context, const char *line, size_t line_bytes) {
    joined_profile *joined = context;
    const char *end = memchr(line, ';', line_bytes); /* of the thread */
    size_t thread_bytes = end != NULL ? (size_t)(end - line) : line_bytes;
    while (end == NULL && thread_bytes > 0 && line[--thread_bytes] != ' ') {}
    bp_buffer_clear(&joined->line);
    (void)bp_buffer_append(&joined->line, line, thread_bytes);
    (void)bp_buffer_printf(&joined->line, " of %" PRIu64, joined->pid);
    (void)bp_buffer_append(&joined->line, line + thread_bytes, line_bytes - thread_bytes);
    return joined->line.status == BUGPACK_OK
               ? bp_call_tree_add(&joined->tree, joined->line.data, joined->line.size)
               : BUGPACK_ERR_NO_MEMORY;
}

static void join_profiles(html_page *page, joined_profile *joined) {
    bp_buffer_init(&joined->line, SIZE_MAX / 4);
    BP_JSON_EACH (process, of_interest(page)) {
        char entry[128];
        (void)snprintf(entry, sizeof entry, "%sprofile.folded",
                       bp_json_tree_text_or(process, "folder", ""));
        joined->pid = bp_json_tree_uint_or(process, "pid", 0);
        if (html_may_read(page, entry, UINT64_MAX)) {
            keep_failure(page, bp_report_lines(page->facts->report, entry, UINT64_MAX, join_stack,
                                               joined, NULL));
        }
    }
    bp_buffer_release(&joined->line);
    keep_failure(page, bp_call_tree_end(&joined->tree));
}

static void write_profile(html_page *page) {
    joined_profile joined = {.pid = 0};
    const bp_json_tree *document = page->facts->document;
    bool is_of_group = bp_json_tree_object(document, "group") != NULL;
    if (bp_json_tree_rows(document, "profile_threads") == NULL) {
        return;
    }
    if (is_of_group) {
        join_profiles(page, &joined);
    }
    begin_section(page, BP_SECTION_PROFILE);
    bp_html_profile(&page->html, document,
                    is_of_group ? &joined.tree : &page->facts->first.profile);
    end_section(page);
    bp_call_tree_release(&joined.tree);
}

/* The lines of one stack. */
typedef struct frame_lines {
    html_page *page;
    bp_buffer line;
    size_t count;
} frame_lines;

static void write_frame(void *context, const bp_frame_text *frame) {
    frame_lines *lines = context;
    bp_html *html = &lines->page->html;
    bp_buffer_clear(&lines->line);
    bp_frame_append_line(&lines->line, frame, lines->count++);
    (void)bp_html_text(html, lines->line.data, lines->line.size);
    if (lines->line.status != BUGPACK_OK && html->status == BUGPACK_OK) {
        html->status = lines->line.status;
    }
}

/* A list that grows below its heading. */
typedef struct stack_list {
    html_page *page;
    const bp_json_tree *process; /* one whose title was not written yet; NULL: it was */
    bool has_any;
} stack_list;

static bugpack_status write_stack(void *context, bp_json_tree *row, bugpack_error *error) {
    stack_list *list = context;
    html_page *page = list->page;
    frame_lines lines = {.page = page};
    (void)error;
    if (!list->has_any) {
        begin_section(page, BP_SECTION_STACKS);
        list->has_any = true;
    }
    if (list->process != NULL && bp_json_tree_object(page->facts->document, "group") != NULL) {
        bp_html_fill(&page->html, "<h3>{[{title}]}{[{title:~}{name}]} {pid:u|}</h3>",
                     list->process);
    }
    list->process = NULL;
    bp_html_fill(&page->html,
                 "<details id=\"stack-{tid:u|0}\"><summary>{name|} <span "
                 "class=\"entry\">{tid:u|0} {state|}</span>"
                 "</summary><pre>",
                 row);
    bp_buffer_init(&lines.line, SIZE_MAX / 4);
    bp_frames_each(bp_json_tree_array(row, "frames"), &page->facts->finder, write_frame, &lines);
    bp_html_print(&page->html, "%s", bp_json_tree_text_or(row, "reason", ""));
    if (bp_json_tree_rows(row, "python_frames") != NULL) {
        lines.count = 0;
        bp_html_print(&page->html, "\nPython:\n");
        bp_frames_each_python(row, write_frame, &lines);
        bp_html_print(&page->html, "%s", bp_json_tree_text_or(row, "python_reason", ""));
    }
    bp_buffer_release(&lines.line);
    bp_html_print(&page->html, "</pre></details>");
    return page->html.status;
}

/* A fault of the entry is a finding already. */
static void write_stacks(html_page *page) {
    static const bp_json_tree_list lists[] = {{"threads", write_stack, false}, {NULL, NULL, false}};
    stack_list list = {.page = page};
    BP_JSON_EACH (process, of_interest(page)) {
        char entry[128];
        list.process = process;
        (void)snprintf(entry, sizeof entry, "%sstacks.json",
                       bp_json_tree_text_or(process, "folder", ""));
        if (html_may_read(page, entry, UINT64_MAX)) {
            (void)bp_report_file_each(page->facts->report, entry, lists, &list, NULL, NULL);
        }
    }
    if (list.has_any) {
        end_section(page);
    }
}

static void write_notifications(html_page *page) {
    static const bp_json_tree_list no_lists[] = {{NULL, NULL, false}};
    static const char entry[] = "notifications.json";
    bp_json_tree *document = NULL;
    if (html_may_read(page, entry, notifications_max_bytes)) {
        (void)bp_report_file_each(page->facts->report, entry, no_lists, NULL, &document, NULL);
    }
    write_lines(page, BP_SECTION_NOTIFICATIONS, document);
    bp_json_tree_free(document);
}

/* True for an entry of the report, and of a process of interest. */
static bool is_of_interest(const html_page *page, const char *entry) {
    size_t length = bp_entry_folder_bytes(entry);
    BP_JSON_EACH (process, length > 0 ? of_interest(page) : NULL) {
        const char *folder = bp_json_tree_text_or(process, "folder", "");
        if (strlen(folder) == length && strncmp(folder, entry, length) == 0) {
            return true;
        }
    }
    return length == 0;
}

static void write_manifest(html_page *page) {
    uint64_t other_count = 0;
    begin_section(page, BP_SECTION_ENTRIES);
    bp_html_print(&page->html, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                               "aria-label=\"List of entries\">");
    bp_html_begin_table(&page->html, "Entry|Status|Bytes|Reason or note");
    BP_JSON_EACH (row, bp_json_tree_rows(page->facts->manifest, "artefacts")) {
        if (strcmp(bp_json_tree_text_or(row, "status", ""), "ok") == 0 &&
            !is_of_interest(page, bp_json_tree_text_or(row, "name", ""))) {
            other_count++;
            continue;
        }
        bp_html_fill(&page->html,
                     "<tr><th scope=\"row\">{name|}</th><td>{status|}</td>"
                     "<td class=\"number\">{bytes:u|0}</td><td>",
                     row);
        bp_html_print(&page->html, "%s</td></tr>",
                      bp_json_tree_text_or(row, "reason", bp_json_tree_text_or(row, "note", "")));
    }
    bp_html_print(&page->html, "</tbody></table></div>");
    if (other_count > 0) {
        bp_html_print(&page->html, "<p>And %" PRIu64 " entries of processes without a finding.</p>",
                      other_count);
    }
    end_section(page);
}

/* Texts as they are, folded: small documents, and log files. */
static void write_documents(html_page *page) {
    begin_section(page, BP_SECTION_DOCUMENTS);
    for (size_t i = 0; i < bp_report_file_count(page->facts->report); i++) {
        const char *name = bp_report_file_name(page->facts->report, i);
        bool is_text = bp_text_ends(name, ".json") || bp_text_ends(name, ".txt") ||
                       bp_text_begins(name, "logs/");
        if (is_text && is_of_interest(page, name)) {
            bp_html_print(&page->html, "<details><summary>%s</summary><pre>", name);
            if (html_may_read(page, name, 1 << 20)) {
                keep_failure(page, bp_report_file_stream(page->facts->report, name, UINT64_MAX,
                                                         bp_html_text, &page->html, NULL));
            }
            bp_html_print(&page->html, "</pre></details>");
        }
    }
    end_section(page);
}

/* --- the page ----------------------------------------------------------------------------- */

/* Sections that are more than lines. */
static void (*const own[BP_SECTION_COUNT])(html_page *page) = {
    [BP_SECTION_FINDINGS] = write_findings,
    [BP_SECTION_WAITS] = write_waits,
    [BP_SECTION_PICTURES] = html_pictures,
    [BP_SECTION_METRICS] = write_history,
    [BP_SECTION_PROFILE] = write_profile,
    [BP_SECTION_STACKS] = write_stacks,
    [BP_SECTION_LOG] = html_log,
    [BP_SECTION_NOTIFICATIONS] = write_notifications,
    [BP_SECTION_TRAFFIC] = html_traffic,
    [BP_SECTION_ENTRIES] = write_manifest,
    [BP_SECTION_DOCUMENTS] = write_documents};

static void write_head(html_page *page) {
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    char hash_text[BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) + 1] = "";
    sha256_init(&hash);
    sha256_update(&hash, sizeof style - 1, (const uint8_t *)style);
    sha256_digest(&hash, sizeof digest, digest);
    bp_html_print(&page->html,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                  "img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-");
    base64_encode_raw(hash_text, sizeof digest, digest);
    bp_html_print(&page->html,
                  "%s'\">\n<meta name=\"viewport\" content=\"width=device-width, "
                  "initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n",
                  hash_text);
    bp_html_fill(&page->html, "<title>{report.app|Report}: {kind}</title>\n<style>",
                 page->facts->document);
    (void)bp_buffer_append(&page->html.out, style, sizeof style - 1);
    bp_html_print(&page->html, "</style>\n</head>\n<body>\n");
}

bugpack_status bp_html_write(bp_facts *facts, bp_sink *sink, void *context, bugpack_error *error) {
    html_page page = {.facts = facts};
    bp_html_init(&page.html, sink, context);
    write_head(&page);
    write_identity(&page);
    for (int i = 0; i < BP_SECTION_COUNT; i++) {
        if (own[i] != NULL) {
            own[i](&page);
        } else {
            write_lines(&page, (bp_section_id)i, page.facts->document);
        }
    }
    bp_html_print(&page.html, "</main>\n</body>\n</html>\n");
    bugpack_status status = bp_html_finish(&page.html);
    status = status == BUGPACK_OK ? page.status : status;
    return status == BUGPACK_OK
               ? status
               : bp_fail(error, status, "cannot write the page: %s", bugpack_status_name(status));
}
