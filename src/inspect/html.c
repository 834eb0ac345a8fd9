#include "inspect/html.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/base64.h>
#include <nettle/sha2.h>

#include "base/status.h"
#include "inspect/frames.h"
#include "inspect/html_charts.h"
#include "inspect/html_records.h"
#include "inspect/manifest_lines.h"

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
static bp_json_tree *read_tree(bp_html_page *page, const char *entry) {
    bp_json_tree *tree = NULL;
    bp_buffer text;
    if (!bp_html_may_read(page, entry, document_max_bytes)) {
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

static void write_fact(bp_html_page *page, const char *name, const char *value) {
    if (value != NULL && value[0] != '\0') {
        bp_html_print(&page->html, "<dt>%s</dt><dd>%s</dd>", name, value);
    }
}

static void write_unsearched(bp_html_page *page) {
    bp_buffer names;
    bp_buffer_init(&names, (size_t)1 << 20);
    bp_manifest_append_unsearched(&names, page->summary->manifest);
    write_fact(page, "Not searched for secrets", bp_buffer_text(&names));
    bp_buffer_release(&names);
}

static void write_identity(bp_html_page *page) {
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

static void write_findings(bp_html_page *page) {
    const bp_summary *summary = page->summary;
    bp_html_begin_section(page, "findings", "Findings");
    bp_html_print(&page->html,
                  summary->finding_count > 0 ? "<ul class=\"findings\">" : "<p>None.</p>");
    for (size_t i = 0; i < summary->finding_count; i++) {
        const bp_finding *finding = &summary->findings[i];
        const char *name = bp_severity_name(finding->severity);
        bp_html_print(&page->html,
                      "<li class=\"%s\"><span class=\"severity\">%s:</span> %s "
                      "<span class=\"entry\">%s</span></li>",
                      name, name, finding->text, finding->entry);
    }
    bp_html_print(&page->html, summary->finding_count > 0 ? "</ul>" : "");
    if (bp_summary_other_findings(summary) > 0) {
        bp_html_print(&page->html, "<p>And %" PRIu64 " more, %" PRIu64 " of them critical.</p>",
                      bp_summary_other_findings(summary),
                      summary->other_finding_counts[BP_SEVERITY_CRITICAL]);
    }
    bp_html_end_section(page);
}

static void write_history(bp_html_page *page) {
    const bp_summary *summary = page->summary;
    if (!summary->has_metrics && summary->sample_count == 0 && !summary->has_heap[0]) {
        return;
    }
    bp_html_begin_section(page, "metrics", "CPU and memory");
    if (summary->has_metrics) {
        bp_html_print(&page->html, "<p>%.1f %% of one CPU over %.2f s", summary->cpu_percent,
                      summary->window_ms / 1000);
        if (summary->has_rss) {
            bp_html_print(&page->html, ", %.1f MiB resident", (double)summary->rss_kb / 1024);
        }
        bp_html_print(&page->html, ", %" PRIu64 " thread%s.</p>", summary->thread_count,
                      summary->thread_count == 1 ? "" : "s");
    }
    bp_html_history(&page->html, summary);
    if (summary->has_heap[0]) {
        bp_html_print(&page->html, "<p>Heap: %" PRIu64 " KiB allocated, %s.</p>",
                      summary->heap_bytes[0] >> 10, summary->allocator);
    }
    bp_html_end_section(page);
}

static void write_threads(bp_html_page *page) {
    const bp_summary *summary = page->summary;
    if (summary->listed_count == 0) {
        return;
    }
    bp_html_begin_section(page, "threads", "Busiest threads");
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
    bp_html_end_section(page);
}

static void write_processes(bp_html_page *page) {
    const bp_summary *summary = page->summary;
    if (summary->process_count == 0) {
        return;
    }
    bp_html_begin_section(page, "processes", "Further processes");
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
        if (process->has_metrics) {
            bp_html_print(&page->html, "%.1f %%", process->cpu_percent);
        }
        bp_html_print(&page->html, "</td><td>");
        if (process->has_rss) {
            bp_html_print(&page->html, "%.1f MiB", (double)process->rss_kb / 1024);
        }
        bp_html_print(&page->html, "</td><td class=\"entry\">%s</td></tr>", process->folder);
    }
    bp_html_print(&page->html, "</tbody></table>");
    if (summary->other_process_count > 0) {
        bp_html_print(&page->html, "<p>And %" PRIu64 " more.</p>", summary->other_process_count);
    }
    bp_html_end_section(page);
}

/* The lines of one stack. */
typedef struct frame_lines {
    bp_html_page *page;
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

static void write_frames(bp_html_page *page, const bp_json_tree *frames) {
    frame_lines lines = {.page = page};
    bp_buffer_init(&lines.line, SIZE_MAX / 4);
    bp_frames_each(frames, &page->summary->finder, write_frame, &lines);
    bp_buffer_release(&lines.line);
}

/* A list that grows below its heading. */
typedef struct stack_list {
    bp_html_page *page;
    bool has_any;
} stack_list;

/* A bp_json_tree_taker. */
static bugpack_status write_stack(void *context, const bp_json_tree *row, bugpack_error *error) {
    stack_list *list = context;
    bp_html_page *page = list->page;
    uint64_t tid = 0;
    (void)error;
    if (!list->has_any) {
        bp_html_begin_section(page, "stacks", "Stacks");
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
static void write_stacks(bp_html_page *page) {
    static const char entry[] = "stacks.json";
    static const bp_json_tree_list lists[] = {{"threads", write_stack, false}, {NULL, NULL, false}};
    stack_list list = {.page = page};
    if (bp_html_may_read(page, entry, UINT64_MAX)) {
        (void)bp_report_file_each(page->summary->report, entry, lists, &list, NULL, NULL);
    }
    if (list.has_any) {
        bp_html_end_section(page);
    }
}

static void write_triggers(bp_html_page *page) {
    const bp_json_tree *row =
        bp_json_tree_first(bp_json_tree_array(page->summary->manifest, "triggers"));
    if (row == NULL) {
        return;
    }
    bp_html_begin_section(page, "triggers", "Gaps and other automatic triggers");
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
    bp_html_end_section(page);
}

static void write_notifications(bp_html_page *page) {
    bp_json_tree *document = read_tree(page, "notifications.json");
    const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(document, "notifications"));
    if (row != NULL) {
        bp_html_begin_section(page, "notifications", "Notifications");
        bp_html_print(&page->html, "<ul>");
        for (; row != NULL; row = bp_json_tree_next(row)) {
            bp_html_print(&page->html, "<li><span class=\"entry\">%s %s</span> %s</li>",
                          bp_json_tree_text_or(row, "last", ""),
                          bp_json_tree_text_or(row, "level", ""),
                          bp_json_tree_text_or(row, "text", ""));
        }
        bp_html_print(&page->html, "</ul>");
        bp_html_end_section(page);
    }
    bp_json_tree_free(document);
}

static void write_manifest(bp_html_page *page) {
    const bp_json_tree *row =
        bp_json_tree_first(bp_json_tree_array(page->summary->manifest, "artefacts"));
    bp_html_begin_section(page, "entries", "Entries");
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
    bp_html_end_section(page);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Texts as they are, folded: small documents, and log files. */
static void write_documents(bp_html_page *page) {
    bp_html_begin_section(page, "documents", "Documents");
    for (size_t i = 0; i < bp_report_file_count(page->summary->report); i++) {
        const char *name = bp_report_file_name(page->summary->report, i);
        bool is_text =
            ends_with(name, ".json") || ends_with(name, ".txt") || strncmp(name, "logs/", 5) == 0;
        if (is_text) {
            bp_html_print(&page->html, "<details><summary>%s</summary><pre>", name);
            if (bp_html_may_read(page, name, 1 << 20)) {
                bp_html_stream(page, name, bp_html_text, &page->html);
            }
            bp_html_print(&page->html, "</pre></details>");
        }
    }
    bp_html_end_section(page);
}

/* --- the page ----------------------------------------------------------------------------- */

static void (*const sections[])(bp_html_page *page) = {
    write_identity,  write_findings,   write_history,  write_threads,  write_processes,
    bp_html_machine, write_stacks,     write_triggers, bp_html_log,    write_notifications,
    bp_html_traffic, bp_html_pictures, write_manifest, write_documents};

static void write_head(bp_html_page *page) {
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
    bp_html_page page = {.summary = summary};
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
