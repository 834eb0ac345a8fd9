#include "inspect/html_records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/html_charts.h"
#include "inspect/json_lines.h"

enum { log_line_max = 2000, picture_max_bytes = 16 << 20, bin_count = 60, type_max = 48 };

void bp_html_begin_section(bp_html_page *page, const char *id, const char *title) {
    bp_html_print(&page->html, "<section aria-labelledby=\"%s\"><h2 id=\"%s\">%s</h2>", id, id,
                  title);
}

void bp_html_end_section(bp_html_page *page) {
    bp_html_print(&page->html, "</section>\n");
}

bool bp_html_may_read(bp_html_page *page, const char *entry, uint64_t max_bytes) {
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

void bp_html_stream(bp_html_page *page, const char *entry, bp_sink *sink, void *context) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_report_file_stream(page->summary->report, entry, UINT64_MAX, sink, context, &error);
    page->status = status == BUGPACK_ERR_NO_MEMORY ? status : page->status;
}

/* The log: the lines before the newest ones are passed over. */
typedef struct log_lines {
    bp_html_page *page;
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

void bp_html_log(bp_html_page *page) {
    uint64_t count = 0;
    for (size_t i = 0; i < BP_SUMMARY_LEVELS; i++) {
        count += page->summary->level_counts[i];
    }
    if (count == 0) {
        return;
    }
    log_lines log = {page, count > log_line_max ? count - log_line_max : 0, 0};
    bp_html_begin_section(page, "log", "Log");
    bp_html_print(
        &page->html,
        "<p>%" PRIu64 " records, the newest %" PRIu64 " of them:</p>"
        "<div class=\"scroll log\" tabindex=\"0\" role=\"region\" aria-label=\"Log records\">",
        count, count - log.skipped);
    if (bp_html_may_read(page, "logs.jsonl", UINT64_MAX)) {
        bp_line_stream lines;
        bp_line_stream_init(&lines, write_record, &log);
        bp_html_stream(page, "logs.jsonl", bp_line_stream_write, &lines);
        bp_line_stream_release(&lines);
    }
    bp_html_print(&page->html, "</div>");
    bp_html_end_section(page);
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

static void write_channels(bp_html_page *page, const traffic_counts *traffic) {
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

static void write_types(bp_html_page *page, const traffic_counts *traffic) {
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

void bp_html_traffic(bp_html_page *page) {
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
    bp_html_begin_section(page, "traffic", "Traffic");
    if (bp_html_may_read(page, "traffic-index.jsonl", UINT64_MAX)) {
        bp_line_stream lines;
        bp_line_stream_init(&lines, count_message, traffic);
        bp_html_stream(page, "traffic-index.jsonl", bp_line_stream_write, &lines);
        bp_line_stream_release(&lines);
    }
    write_channels(page, traffic);
    write_types(page, traffic);
    bp_html_end_section(page);
    free(traffic);
}

/* `by` ends the title. */
static void write_tasks(bp_html_page *page, const char *title, const char *by,
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

void bp_html_machine(bp_html_page *page) {
    const bp_machine *machine = &page->summary->machine;
    if (!machine->is_there) {
        return;
    }
    bp_html_begin_section(page, "machine", "Machine");
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
    bp_html_end_section(page);
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

void bp_html_pictures(bp_html_page *page) {
    static const char *const names[] = {"screenshot.png", "screenshot-region.png"};
    bool has_any = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        picture_stream picture = {.html = &page->html};
        if (!bp_report_file_has(page->summary->report, names[i], NULL)) {
            continue;
        }
        if (!has_any) {
            bp_html_begin_section(page, "screenshots", "Screenshots");
        }
        has_any = true;
        if (bp_html_may_read(page, names[i], picture_max_bytes)) {
            bp_html_print(&page->html, "<figure><img alt=\"%s\" src=\"data:image/png;base64,",
                          names[i]);
            bp_html_stream(page, names[i], write_picture_bytes, &picture);
            bp_html_base64(&page->html, picture.rest, picture.rest_bytes);
            bp_html_print(&page->html, "\"><figcaption>%s</figcaption></figure>", names[i]);
        }
    }
    if (has_any) {
        bp_html_end_section(page);
    }
}
