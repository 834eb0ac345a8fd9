#include "inspect/html.h"

#include <inttypes.h>
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "inspect/frames.h"
#include "inspect/html_text.h"
#include "inspect/json_lines.h"
#include "inspect/manifest_lines.h"
#include "inspect/summary.h"

/*
 * The sections of a page that are made of many records, and what all sections share.
 */

/* A page being written. */
typedef struct html_page {
    bp_html html;
    bp_summary *summary;
    bugpack_status status; /* NO_MEMORY */
} html_page;

enum { log_line_max = 2000, picture_max_bytes = 16 << 20, bin_count = 60, type_max = 48 };

static void html_begin_section(html_page *page, const char *id, const char *title) {
    bp_html_print(&page->html, "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2>", id, id,
                  title);
}

static void html_end_section(html_page *page) {
    bp_html_print(&page->html, "</section>\n");
}

/* Whether an entry is there and may be read; its size then counts as read. One that is too large is
 * named on the page. */
static bool html_may_read(html_page *page, const char *entry, uint64_t max_bytes) {
    uint64_t byte_count;
    if (!bp_report_file_has(page->summary->report, entry, &byte_count)) {
        return false;
    }
    if (byte_count > max_bytes || byte_count > page->summary->left_bytes) {
        bp_html_print(&page->html,
                      "<p>%s is not shown: its %" PRIu64 " bytes are over the limit.</p>", entry,
                      byte_count);
        return false;
    }
    page->summary->left_bytes -= byte_count;
    return true;
}

/* Reads an entry into a sink, up to where it is damaged. */
static void html_stream(html_page *page, const char *entry, bp_sink *sink, void *context) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_report_file_stream(page->summary->report, entry, UINT64_MAX, sink, context, &error);
    page->status = status == BUGPACK_ERR_NO_MEMORY ? status : page->status;
}

/* The log: the lines before the newest ones are passed over. */
typedef struct log_lines {
    html_page *page;
    uint64_t skipped, number;
} log_lines;

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
    bp_html_print(&log->page->html,
                  "<div id=\"log-%" PRIu64 "\" class=\"%s\"><a href=\"#log-%" PRIu64
                  "\">%s</a> %s %s%s%s</div>\n",
                  log->number, level, log->number, time[0] != '\0' ? time : "no time", level,
                  channel, channel[0] != '\0' ? ": " : "", message);
    return log->page->html.status == BUGPACK_OK ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
}

static void html_log(html_page *page) {
    uint64_t count = 0;
    for (size_t i = 0; i < BP_SUMMARY_LEVELS; i++) {
        count += page->summary->level_counts[i];
    }
    if (count == 0) {
        return;
    }
    log_lines log = {page, count > log_line_max ? count - log_line_max : 0, 0};
    html_begin_section(page, "log", "Log");
    bp_html_print(
        &page->html,
        "<p>%" PRIu64 " records, the newest %" PRIu64 " of them:</p>"
        "<div class=\"scroll log\" tabindex=\"0\" role=\"region\" aria-label=\"Log records\">",
        count, count - log.skipped);
    if (html_may_read(page, "logs.jsonl", UINT64_MAX)) {
        bp_line_stream lines;
        bp_line_stream_init(&lines, write_record, &log);
        html_stream(page, "logs.jsonl", bp_line_stream_write, &lines);
        bp_line_stream_release(&lines);
    }
    bp_html_print(&page->html, "</div>");
    html_end_section(page);
}

/* Messages by type, and of each channel over time. */
typedef struct traffic_counts {
    const bp_summary *summary;
    uint64_t from_ns, to_ns, bin_ns; /* the bins of a channel reach to `to_ns` at least */
    uint64_t bins[BP_SUMMARY_CHANNEL_MAX][bin_count];
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
    for (size_t i = 0; i < traffic->summary->channel_count; i++) {
        if (strcmp(traffic->summary->channels[i].name, channel) == 0 &&
            wall_ns >= traffic->from_ns && wall_ns <= traffic->to_ns) {
            traffic->bins[i][(wall_ns - traffic->from_ns) / traffic->bin_ns]++;
        }
    }
    return BUGPACK_OK;
}

static void write_channels(html_page *page, const traffic_counts *traffic) {
    bp_html_print(
        &page->html,
        "<table><thead><tr><th scope=\"col\">Channel</th><th scope=\"col\">Sent"
        "</th><th scope=\"col\">Received</th><th scope=\"col\">Messages over %.1f s</th></tr>"
        "</thead><tbody>",
        (double)(traffic->to_ns - traffic->from_ns) / 1e9);
    for (size_t i = 0; i < page->summary->channel_count; i++) {
        const bp_summary_channel *channel = &page->summary->channels[i];
        bp_html_print(&page->html, "<tr><th scope=\"row\">%s</th>", channel->name);
        for (size_t way = 0; way < 2; way++) {
            bp_html_print(&page->html, "<td>%s%" PRIu64 " (%" PRIu64 " bytes)</td>",
                          bp_summary_channel_is_partial(channel) ? "at least " : "",
                          channel->messages[way], channel->bytes[way]);
        }
        bp_html_print(&page->html, "<td>");
        bp_html_bars(&page->html, "Messages over time", traffic->bins[i], bin_count);
        bp_html_print(&page->html, "</td></tr>");
    }
    bp_html_print(&page->html, "</tbody></table>");
    if (page->summary->other_message_count > 0) {
        bp_html_print(&page->html, "<p>%" PRIu64 " messages are of further channels.</p>",
                      page->summary->other_message_count);
    }
}

static void write_types(html_page *page, const traffic_counts *traffic) {
    bp_html_print(
        &page->html,
        "<details><summary>By message type</summary><table><thead><tr>"
        "<th scope=\"col\">Type</th><th scope=\"col\">Messages</th><th scope=\"col\">Bytes</th>"
        "</tr></thead><tbody>");
    for (size_t i = 0; i <= type_max; i++) {
        const char *name = traffic->types[i].name;
        if (traffic->types[i].messages == 0) {
            continue;
        }
        bp_html_print(&page->html,
                      "<tr><th scope=\"row\">%s</th><td class=\"number\">%" PRIu64
                      "</td><td class=\"number\">%" PRIu64 "</td></tr>",
                      i == type_max     ? "further types"
                      : name[0] != '\0' ? name
                                        : "no type",
                      traffic->types[i].messages, traffic->types[i].bytes);
    }
    bp_html_print(&page->html, "</tbody></table></details>");
}

static void html_traffic(html_page *page) {
    const bp_summary *summary = page->summary;
    traffic_counts *traffic = summary->channel_count == 0 ? NULL : calloc(1, sizeof *traffic);
    if (traffic == NULL) {
        page->status = summary->channel_count == 0 ? page->status : BUGPACK_ERR_NO_MEMORY;
        return;
    }
    traffic->summary = summary;
    traffic->from_ns = UINT64_MAX;
    for (size_t i = 0; i < summary->channel_count; i++) {
        const bp_summary_channel *channel = &summary->channels[i];
        traffic->from_ns = channel->first_wall_ns != 0 && channel->first_wall_ns < traffic->from_ns
                               ? channel->first_wall_ns
                               : traffic->from_ns;
        traffic->to_ns =
            channel->last_wall_ns > traffic->to_ns ? channel->last_wall_ns : traffic->to_ns;
    }
    traffic->to_ns = traffic->to_ns < traffic->from_ns ? traffic->from_ns : traffic->to_ns;
    traffic->bin_ns = (traffic->to_ns - traffic->from_ns) / bin_count + 1;
    html_begin_section(page, "traffic", "Traffic");
    if (html_may_read(page, "traffic-index.jsonl", UINT64_MAX)) {
        bp_line_stream lines;
        bp_line_stream_init(&lines, count_message, traffic);
        html_stream(page, "traffic-index.jsonl", bp_line_stream_write, &lines);
        bp_line_stream_release(&lines);
    }
    write_channels(page, traffic);
    write_types(page, traffic);
    html_end_section(page);
    free(traffic);
}

/* `by` ends the title. */
static void write_tasks(html_page *page, const char *title, const char *by,
                        const bp_machine_list *list, bool is_process) {
    if (list->count == 0) {
        return;
    }
    bp_html_print(
        &page->html,
        "<h3>%s %s</h3><table><thead><tr><th scope=\"col\">%s</th><th scope=\"col\">CPU</th>"
        "<th scope=\"col\">CPU time</th><th scope=\"col\">%s</th></tr></thead><tbody>",
        title, by, is_process ? "Process" : "Thread", is_process ? "Resident" : "State");
    for (size_t i = 0; i < list->count; i++) {
        const bp_machine_task *task = &list->rows[i];
        bp_html_print(&page->html,
                      "<tr><th scope=\"row\">%s <span class=\"entry\">%" PRIu64
                      " %s</span></th><td>",
                      task->name, is_process ? task->pid : task->tid, task->process);
        if (task->has_percent) {
            bp_html_print(&page->html, "%.1f %%", task->cpu_percent);
        }
        bp_html_print(&page->html, "</td><td>");
        if (task->has_cpu) {
            bp_html_print(&page->html, "%.1f s", (double)task->cpu_ns / 1e9);
        }
        bp_html_print(&page->html, "</td><td>%s%s", is_process ? "" : bp_machine_state_name(task),
                      task->is_born ? " (born in the window) " : "");
        if (task->has_rss) {
            bp_html_print(&page->html, "%.1f MiB", (double)task->rss_kb / 1024);
        }
        bp_html_print(&page->html, "</td></tr>");
    }
    bp_html_print(&page->html, "</tbody></table>");
}

static void html_machine(html_page *page) {
    const bp_machine *machine = &page->summary->machine;
    if (!machine->is_there) {
        return;
    }
    html_begin_section(page, "machine", "Machine");
    bp_html_print(&page->html,
                  "<p>%" PRIu64 " threads of %" PRIu64 " processes: %" PRIu64
                  " running or ready to, %" PRIu64 " blocked.</p>",
                  machine->thread_count, machine->process_count, machine->running_count,
                  machine->blocked_count);
    if (machine->denied_process_count > 0) {
        bp_html_print(&page->html, "<p>%" PRIu64 " more processes could not be read.</p>",
                      machine->denied_process_count);
    }
    char by_cpu[48];
    bp_machine_name_period(machine, by_cpu, sizeof by_cpu);
    write_tasks(page, "Processes by CPU", by_cpu, &machine->busiest, true);
    if (machine->has_collector) {
        bp_html_print(&page->html, "<p>bugpack itself is left out: %.1f %%.</p>",
                      machine->collector_percent);
    }
    write_tasks(page, "Processes by", "resident memory", &machine->largest, true);
    if (machine->no_rss_count > 0) {
        bp_html_print(&page->html, "<p>And %" PRIu64 " whose memory is not known.</p>",
                      machine->no_rss_count);
    }
    write_tasks(page, "Threads by CPU", by_cpu, &machine->threads, false);
    html_end_section(page);
}

/* A picture in pieces that base64 can be made of one by one. */
typedef struct picture_stream {
    bp_html *html;
    unsigned char rest[3];
    size_t rest_bytes;
} picture_stream;

static bugpack_status write_picture_bytes(void *context, const void *bytes, size_t byte_count) {
    picture_stream *picture = context;
    const unsigned char *at = bytes;
    while (byte_count > 0 && (picture->rest_bytes > 0 || byte_count < 3)) {
        picture->rest[picture->rest_bytes++] = *at++;
        byte_count--;
        if (picture->rest_bytes == 3) {
            bp_html_base64(picture->html, picture->rest, 3);
            picture->rest_bytes = 0;
        } else if (byte_count == 0) {
            return picture->html->status;
        }
    }
    size_t whole = byte_count - byte_count % 3;
    bp_html_base64(picture->html, at, whole);
    picture->rest_bytes = byte_count - whole;
    memcpy(picture->rest, at + whole, picture->rest_bytes);
    return picture->html->status;
}

static void html_pictures(html_page *page) {
    static const char *const names[] = {"screenshot.png", "screenshot-region.png"};
    bool has_any = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        picture_stream picture = {.html = &page->html};
        if (!bp_report_file_has(page->summary->report, names[i], NULL)) {
            continue;
        }
        if (!has_any) {
            html_begin_section(page, "screenshots", "Screenshots");
        }
        has_any = true;
        if (html_may_read(page, names[i], picture_max_bytes)) {
            bp_html_print(&page->html, "<figure><img alt=\"%s\" src=\"data:image/png;base64,",
                          names[i]);
            html_stream(page, names[i], write_picture_bytes, &picture);
            bp_html_base64(&page->html, picture.rest, picture.rest_bytes);
            bp_html_print(&page->html, "\"><figcaption>%s</figcaption></figure>", names[i]);
        }
    }
    if (has_any) {
        html_end_section(page);
    }
}

/* No element has a style of its own, so that the policy can name this text alone. */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--page:#fff;--card:#f6f8fa;"
    "--edge:#d0d7de;--bar:#0969da;--bad:#b3261e;--warn:#8a5a00;--soft:#ddf4ff}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9aa4af;--page:#0d1117;"
    "--card:#161b22;--edge:#30363d;--bar:#58a6ff;--bad:#ff8a80;--warn:#e3b341;--soft:#12304f}}"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:64rem;padding:1rem;color:var(--ink);"
    "background:var(--page);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}"
    "h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px "
    "solid var(--edge)}a{color:var(--bar)}nav ul{display:flex;flex-wrap:wrap;gap:.2rem "
    "1rem;padding:0;"
    "list-style:none}dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:0}"
    "dt{color:var(--dim)}dd{margin:0}.findings{list-style:none;padding:0}.findings li{margin:.4rem "
    "0;"
    "padding:.5rem .8rem;border-left:.3rem solid var(--edge);background:var(--card)}"
    ".findings .critical{border-color:var(--bad)}.findings .warning{border-color:var(--warn)}"
    ".severity{font-weight:600}.critical .severity,.error,.fatal{color:var(--bad)}"
    ".warning .severity,.warn{color:var(--warn)}.entry,.trace,.debug{color:var(--dim)}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.2rem .6rem;"
    "border-bottom:1px solid "
    "var(--edge);vertical-align:top}thead th,.scroll th,.scroll td{"
    "overflow-wrap:normal}.number{text-align:right;"
    "font-variant-numeric:tabular-nums}.scroll{overflow:auto;max-height:32rem;border:1px solid "
    "var(--edge)}pre,code,.log{font:.85rem/1.45 ui-monospace,monospace}pre{margin:0;padding:.6rem;"
    "white-space:pre-wrap}figure{margin:.5rem 0}figcaption{color:var(--dim)}svg{width:100%;"
    "height:auto;display:block}svg text{font:11px system-ui,sans-serif;fill:var(--dim)}.end{"
    "text-anchor:end}.line{fill:none;stroke:var(--bar);stroke-width:1.5}.grid{stroke:var(--edge);"
    "fill:none}.trigger{stroke:var(--bad);stroke-dasharray:4 3;fill:none}rect{fill:var(--bar)}"
    ".bars{height:1.5rem;width:15rem;max-width:100%}.cpu{width:8rem;height:.8rem}"
    "summary{cursor:pointer;padding:.2rem 0}img{max-width:100%;border:1px solid var(--edge)}"
    "@media(max-width:40rem){svg text{font-size:20px}dl{grid-template-columns:1fr}}"
    "@media print{.scroll{max-height:none;overflow:visible}nav{display:none}}";

static const size_t document_max_bytes = (size_t)4 << 20;

/* A document that may be missing or damaged: then NULL. */
static bp_json_tree *read_tree(html_page *page, const char *entry) {
    bp_json_tree *tree = NULL;
    bp_buffer text;
    if (!html_may_read(page, entry, document_max_bytes)) {
        return NULL;
    }
    bp_buffer_init(&text, document_max_bytes);
    if (bp_report_file_read(page->summary->report, entry, &text, NULL) == BUGPACK_OK) {
        (void)bp_json_tree_read(bp_buffer_text(&text), text.size, &tree, NULL);
    }
    bp_buffer_release(&text);
    return tree;
}

/* --- the sections ------------------------------------------------------------------------- */

static void write_fact(html_page *page, const char *name, const char *value) {
    if (value != NULL && value[0] != '\0') {
        bp_html_print(&page->html, "<dt>%s</dt><dd>%s</dd>", name, value);
    }
}

static void write_unsearched(html_page *page) {
    bp_buffer names;
    bp_buffer_init(&names, (size_t)1 << 20);
    bp_manifest_append_unsearched(&names, page->summary->manifest);
    write_fact(page, "Not searched for secrets", bp_buffer_text(&names));
    bp_buffer_release(&names);
}

static void write_identity(html_page *page) {
    const bp_json_tree *metadata = page->summary->metadata;
    const bp_json_tree *app = bp_json_tree_object(metadata, "app");
    const bp_json_tree *platform = bp_json_tree_object(metadata, "platform");
    const bp_json_tree *tags = bp_json_tree_object(metadata, "tags");
    char kind[BP_SUMMARY_KIND_BYTES];
    bp_summary_kind(page->summary, kind);
    bp_html_print(&page->html, "<header><h1>%s%s%s: %s</h1><dl>",
                  bp_json_tree_text_or(app, "name", "Report"),
                  bp_json_tree_text(app, "version") != NULL ? " " : "",
                  bp_json_tree_text_or(app, "version", ""), kind);
    write_fact(page, "Description", bp_json_tree_text(metadata, "description"));
    write_fact(page, bp_summary_has_died_unseen(page->summary) ? "Last sign of life" : "Triggered",
               bp_json_tree_text(metadata, "triggered_at"));
    if (bp_json_tree_text(metadata, "triggered_at") == NULL) {
        write_fact(page, "Written", bp_json_tree_text(metadata, "timestamp"));
    }
    write_fact(page, "Process", page->summary->process_name);
    write_fact(page, "Started", bp_json_tree_text(metadata, "started_at"));
    write_fact(page, "Build", bp_json_tree_text(app, "build_id"));
    write_fact(page, "Gap", bp_json_tree_text(metadata, "gap_key"));
    write_fact(page, "Channel", bp_json_tree_text(metadata, "channel"));
    write_fact(page, "Machine", bp_json_tree_text(metadata, "machine"));
    write_fact(page, "System", bp_json_tree_text(platform, "os"));
    write_fact(page, "Kernel", bp_json_tree_text(platform, "kernel"));
    for (const bp_json_tree *tag = bp_json_tree_first(tags); tag != NULL;
         tag = bp_json_tree_next(tag)) {
        write_fact(page, bp_json_tree_key(tag), bp_json_tree_value(tag));
    }
    write_fact(page, "Report", bp_json_tree_text(metadata, "report_id"));
    write_unsearched(page);
    bp_html_print(&page->html, "</dl></header>\n<main>\n");
}

static void write_findings(html_page *page) {
    const bp_summary *summary = page->summary;
    html_begin_section(page, "findings", "Findings");
    bp_html_print(&page->html,
                  summary->findings->count > 0 ? "<ul class=\"findings\">" : "<p>None.</p>");
    for (size_t i = 0; i < summary->findings->count; i++) {
        const bp_finding *finding = &summary->findings->rows[i];
        const char *name = bp_severity_name(bp_finding_severity(finding));
        bp_html_print(&page->html,
                      "<li class=\"%s\"><span class=\"severity\">%s:</span> %s "
                      "<span class=\"entry\">%s</span></li>",
                      name, name, finding->text, finding->entry);
    }
    bp_html_print(&page->html, summary->findings->count > 0 ? "</ul>" : "");
    if (bp_findings_other_count(summary->findings) > 0) {
        bp_html_print(&page->html, "<p>And %" PRIu64 " more, %" PRIu64 " of them critical.</p>",
                      bp_findings_other_count(summary->findings),
                      summary->findings->other_counts[BP_SEVERITY_CRITICAL]);
    }
    html_end_section(page);
}

static void write_history(html_page *page) {
    const bp_summary *summary = page->summary;
    if (!summary->use.has_metrics && summary->sample_count == 0 && !summary->has_heap[0]) {
        return;
    }
    html_begin_section(page, "metrics", "CPU and memory");
    if (summary->use.has_metrics) {
        bp_html_print(&page->html, "<p>%.1f %% of one CPU over %.2f s", summary->use.cpu_percent,
                      summary->window_ms / 1000);
        if (summary->use.has_rss) {
            bp_html_print(&page->html, ", %.1f MiB resident", (double)summary->use.rss_kb / 1024);
        }
        bp_html_print(&page->html, ", %" PRIu64 " thread%s.</p>", summary->use.thread_count,
                      summary->use.thread_count == 1 ? "" : "s");
    }
    bp_html_history(&page->html, summary);
    if (summary->has_heap[0]) {
        bp_html_print(&page->html, "<p>Heap: %" PRIu64 " KiB allocated, %s.</p>",
                      summary->heap_bytes[0] >> 10, summary->allocator);
    }
    html_end_section(page);
}

static void write_threads(html_page *page) {
    const bp_summary *summary = page->summary;
    if (summary->listed_count == 0) {
        return;
    }
    html_begin_section(page, "threads", "Busiest threads");
    bp_html_print(&page->html,
                  "<table><thead><tr><th scope=\"col\">Thread</th><th scope=\"col\">CPU</th>"
                  "<th scope=\"col\">State</th></tr></thead><tbody>");
    for (size_t i = 0; i < summary->listed_count; i++) {
        const bp_summary_thread *thread = &summary->threads[i];
        double percent = thread->cpu_percent < 100 ? thread->cpu_percent : 100;
        bp_html_print(&page->html,
                      "<tr><th scope=\"row\">%s <span class=\"entry\">%" PRIu64
                      "</span></th><td>%.1f %%<svg class=\"cpu\" viewBox=\"0 0 100 8\" "
                      "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"%.1f\" "
                      "height=\"8\"/></svg></td><td>%s%s%s%s%s%s</td></tr>",
                      thread->name, thread->tid, thread->cpu_percent, percent,
                      bp_summary_born_words(thread), thread->state,
                      thread->syscall[0] != '\0' ? " in " : "", thread->syscall,
                      bp_summary_wait_words(thread), thread->waits_for);
    }
    bp_html_print(&page->html, "</tbody></table>");
    html_end_section(page);
}

static void write_processes(html_page *page) {
    const bp_summary *summary = page->summary;
    if (summary->process_count == 0) {
        return;
    }
    html_begin_section(page, "processes", "Further processes");
    bp_html_print(&page->html, "<table><thead><tr><th scope=\"col\">Process</th>"
                               "<th scope=\"col\">CPU</th><th scope=\"col\">Resident</th>"
                               "<th scope=\"col\">Entries</th></tr></thead><tbody>");
    for (size_t i = 0; i < summary->process_count; i++) {
        const bp_summary_process *process = &summary->processes[i];
        bp_html_print(&page->html, "<tr><th scope=\"row\">%s", process->name);
        if (process->pid > 0) {
            bp_html_print(&page->html, " <span class=\"entry\">%" PRIu64 "</span>", process->pid);
        }
        bp_html_print(&page->html, "</th><td>");
        if (process->use.has_metrics) {
            bp_html_print(&page->html, "%.1f %%", process->use.cpu_percent);
        }
        bp_html_print(&page->html, "</td><td>");
        if (process->use.has_rss) {
            bp_html_print(&page->html, "%.1f MiB", (double)process->use.rss_kb / 1024);
        }
        bp_html_print(&page->html, "</td><td class=\"entry\">%s</td></tr>", process->folder);
    }
    bp_html_print(&page->html, "</tbody></table>");
    if (summary->other_process_count > 0) {
        bp_html_print(&page->html, "<p>And %" PRIu64 " more.</p>", summary->other_process_count);
    }
    html_end_section(page);
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

static void write_frames(html_page *page, const bp_json_tree *frames) {
    frame_lines lines = {.page = page};
    bp_buffer_init(&lines.line, SIZE_MAX / 4);
    bp_frames_each(frames, &page->summary->finder, write_frame, &lines);
    bp_buffer_release(&lines.line);
}

/* A list that grows below its heading. */
typedef struct stack_list {
    html_page *page;
    bool has_any;
} stack_list;

/* A bp_json_tree_taker. */
static bugpack_status write_stack(void *context, bp_json_tree *row, bugpack_error *error) {
    stack_list *list = context;
    html_page *page = list->page;
    uint64_t tid = 0;
    (void)error;
    if (!list->has_any) {
        html_begin_section(page, "stacks", "Stacks");
        list->has_any = true;
    }
    (void)bp_json_tree_uint(row, "tid", &tid);
    bp_html_print(&page->html,
                  "<details><summary>%s <span class=\"entry\">%" PRIu64 " %s</span></summary><pre>",
                  bp_json_tree_text_or(row, "name", ""), tid,
                  bp_json_tree_text_or(row, "state", ""));
    write_frames(page, bp_json_tree_array(row, "frames"));
    bp_html_print(&page->html, "%s</pre></details>", bp_json_tree_text_or(row, "reason", ""));
    return page->html.status;
}

/* What is wrong with the entry is a finding. */
static void write_stacks(html_page *page) {
    static const char entry[] = "stacks.json";
    static const bp_json_tree_list lists[] = {{"threads", write_stack, false}, {NULL, NULL, false}};
    stack_list list = {.page = page};
    if (html_may_read(page, entry, UINT64_MAX)) {
        (void)bp_report_file_each(page->summary->report, entry, lists, &list, NULL, NULL);
    }
    if (list.has_any) {
        html_end_section(page);
    }
}

static void write_triggers(html_page *page) {
    const bp_json_tree *row =
        bp_json_tree_first(bp_json_tree_array(page->summary->manifest, "triggers"));
    if (row == NULL) {
        return;
    }
    html_begin_section(page, "triggers", "Gaps and other automatic triggers");
    bp_html_print(&page->html,
                  "<table><thead><tr><th scope=\"col\">Kind</th><th scope=\"col\">Key</th>"
                  "<th scope=\"col\">Count</th><th scope=\"col\">Last</th></tr></thead><tbody>");
    for (; row != NULL; row = bp_json_tree_next(row)) {
        uint64_t count = 0;
        (void)bp_json_tree_uint(row, "count", &count);
        bp_html_print(
            &page->html,
            "<tr><td>%s</td><td>%s</td><td class=\"number\">%" PRIu64 "</td><td>%s</td></tr>",
            bp_json_tree_text_or(row, "report_type", ""), bp_json_tree_text_or(row, "key", ""),
            count, bp_json_tree_text_or(row, "last", ""));
    }
    bp_html_print(&page->html, "</tbody></table>");
    html_end_section(page);
}

static void write_notifications(html_page *page) {
    bp_json_tree *document = read_tree(page, "notifications.json");
    const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(document, "notifications"));
    if (row != NULL) {
        html_begin_section(page, "notifications", "Notifications");
        bp_html_print(&page->html, "<ul>");
        for (; row != NULL; row = bp_json_tree_next(row)) {
            bp_html_print(&page->html, "<li><span class=\"entry\">%s %s</span> %s</li>",
                          bp_json_tree_text_or(row, "last", ""),
                          bp_json_tree_text_or(row, "level", ""),
                          bp_json_tree_text_or(row, "text", ""));
        }
        bp_html_print(&page->html, "</ul>");
        html_end_section(page);
    }
    bp_json_tree_free(document);
}

static void write_manifest(html_page *page) {
    const bp_json_tree *row =
        bp_json_tree_first(bp_json_tree_array(page->summary->manifest, "artefacts"));
    html_begin_section(page, "entries", "Entries");
    bp_html_print(
        &page->html,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
        "aria-label=\"List of entries\"><table><thead><tr><th scope=\"col\">Entry</th>"
        "<th scope=\"col\">Status</th><th scope=\"col\">Bytes</th><th scope=\"col\">Reason or "
        "note</th></tr></thead><tbody>");
    for (; row != NULL; row = bp_json_tree_next(row)) {
        uint64_t byte_count = 0;
        (void)bp_json_tree_uint(row, "bytes", &byte_count);
        bp_html_print(&page->html,
                      "<tr><th scope=\"row\">%s</th><td>%s</td><td class=\"number\">%" PRIu64
                      "</td><td>%s</td></tr>",
                      bp_json_tree_text_or(row, "name", ""),
                      bp_json_tree_text_or(row, "status", ""), byte_count,
                      bp_json_tree_text_or(row, "reason", bp_json_tree_text_or(row, "note", "")));
    }
    bp_html_print(&page->html, "</tbody></table></div>");
    html_end_section(page);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Texts as they are, folded: small documents, and log files. */
static void write_documents(html_page *page) {
    html_begin_section(page, "documents", "Documents");
    for (size_t i = 0; i < bp_report_file_count(page->summary->report); i++) {
        const char *name = bp_report_file_name(page->summary->report, i);
        bool is_text =
            ends_with(name, ".json") || ends_with(name, ".txt") || strncmp(name, "logs/", 5) == 0;
        if (is_text) {
            bp_html_print(&page->html, "<details><summary>%s</summary><pre>", name);
            if (html_may_read(page, name, 1 << 20)) {
                html_stream(page, name, bp_html_text, &page->html);
            }
            bp_html_print(&page->html, "</pre></details>");
        }
    }
    html_end_section(page);
}

/* --- the page ----------------------------------------------------------------------------- */

static void (*const sections[])(html_page *page) = {
    write_identity, write_findings, write_history,  write_threads,  write_processes,
    html_machine,   write_stacks,   write_triggers, html_log,       write_notifications,
    html_traffic,   html_pictures,  write_manifest, write_documents};

static void write_head(html_page *page) {
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    const bp_json_tree *app = bp_json_tree_object(page->summary->metadata, "app");
    sha256_init(&hash);
    sha256_update(&hash, sizeof style - 1, (const uint8_t *)style);
    sha256_digest(&hash, sizeof digest, digest);
    char kind[BP_SUMMARY_KIND_BYTES];
    bp_summary_kind(page->summary, kind);
    bp_html_print(&page->html,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                  "img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-");
    bp_html_base64(&page->html, digest, sizeof digest);
    bp_html_print(&page->html,
                  "'\">\n<meta name=\"viewport\" content=\"width=device-width, "
                  "initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
                  "<title>%s: %s</title>\n<style>",
                  bp_json_tree_text_or(app, "name", "Report"), kind);
    (void)bp_buffer_append(&page->html.out, style, sizeof style - 1);
    bp_html_print(&page->html, "</style>\n</head>\n<body>\n");
}

bugpack_status bp_html_write(bp_summary *summary, bp_sink *sink, void *context,
                             bugpack_error *error) {
    html_page page = {.summary = summary};
    bp_html_init(&page.html, sink, context);
    write_head(&page);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        sections[i](&page);
    }
    bp_html_print(&page.html, "</main>\n</body>\n</html>\n");
    bugpack_status status = bp_html_finish(&page.html);
    status = status == BUGPACK_OK ? page.status : status;
    return status == BUGPACK_OK
               ? status
               : bp_fail(error, status, "cannot write the page: %s", bugpack_status_name(status));
}
