#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "inspect/manifest_lines.h"
#include "inspect/summary.h"
#include "probe/stacks.h"

static void print_state(const bp_machine *machine) {
    char bytes[2][16], pressure[BP_MACHINE_PRESSURES][24], cpus[32] = "";
    bp_screen_heading("Machine  [host-threads.json]");
    if (machine->captured_at[0] != '\0') {
        bp_screen_print(BP_SCREEN_PLAIN, "captured   %s", machine->captured_at);
    }
    bp_screen_print(BP_SCREEN_PLAIN,
                    "threads    %" PRIu64 " of %" PRIu64 " processes, %" PRIu64
                    " of them of the kernel; %" PRIu64 " running or ready to, %" PRIu64 " blocked",
                    machine->thread_count, machine->process_count, machine->kernel_thread_count,
                    machine->running_count, machine->blocked_count);
    if (machine->denied_process_count > 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "refused    %" PRIu64 " more processes",
                        machine->denied_process_count);
    }
    if (machine->cpu_count > 0) {
        (void)snprintf(cpus, sizeof cpus, "; %" PRIu64 " CPU%s", machine->cpu_count,
                       machine->cpu_count == 1 ? "" : "s");
    }
    if (machine->has_load) {
        bp_screen_print(BP_SCREEN_PLAIN,
                        "load       %.2f over 1 min, %.2f over 5 min, %.2f over 15 min%s"
                        "  [system.json]",
                        machine->load[0], machine->load[1], machine->load[2], cpus);
    }
    if (machine->has_memory) {
        bp_screen_print(BP_SCREEN_PLAIN, "memory     %s of %s available  [system.json]",
                        bp_cli_format_bytes(machine->available_kb << 10, bytes[0]),
                        bp_cli_format_bytes(machine->total_kb << 10, bytes[1]));
    }
    bool has_any = false;
    for (size_t i = 0; i < BP_MACHINE_PRESSURES; i++) {
        (void)snprintf(pressure[i], sizeof pressure[i], "?");
        if (machine->has_pressure[i]) {
            (void)snprintf(pressure[i], sizeof pressure[i], "%.1f %%",
                           machine->pressure_percent[i]);
        }
        has_any |= machine->has_pressure[i];
    }
    if (has_any) {
        bp_screen_print(BP_SCREEN_PLAIN,
                        "waiting    for CPUs %s, for memory %s, for I/O %s of the last 10 s"
                        "  [system.json]",
                        pressure[0], pressure[1], pressure[2]);
    }
}

static void print_task(const bp_machine_task *task, bool is_process) {
    char cpu[24] = "?", secs[24] = "?", rss[16], running[48] = "", children[64] = "";
    const char *born = task->is_born ? ", born in the window" : "";
    if (task->has_percent) {
        (void)snprintf(cpu, sizeof cpu, "%.1f", task->cpu_percent);
    }
    if (task->has_cpu) {
        (void)snprintf(secs, sizeof secs, "%.2f", (double)task->cpu_ns / 1e9);
    }
    if (!is_process) {
        bp_screen_print(BP_SCREEN_PLAIN,
                        "%6s %%  %10s s  %7" PRIu64 " %-16s %s, of %" PRIu64 " %s%s", cpu, secs,
                        task->tid, task->name, bp_machine_state_name(task), task->pid,
                        task->process, born);
        return;
    }
    if (task->running_count > 0) {
        (void)snprintf(running, sizeof running, ", %" PRIu64 " running", task->running_count);
    }
    if (task->children_cpu_ms > 0) {
        (void)snprintf(children, sizeof children, ", ended children used %.0f ms",
                       task->children_cpu_ms);
    }
    const char *none = task->is_kernel_thread ? "-" : "?";
    bp_screen_print(BP_SCREEN_PLAIN,
                    "%6s %%  %10s s  %9s  %7" PRIu64 " %-16s %" PRIu64 " thread%s%s%s%s", cpu, secs,
                    task->has_rss ? bp_cli_format_bytes(task->rss_kb << 10, rss) : none, task->pid,
                    task->name, task->thread_count, task->thread_count == 1 ? "" : "s", running,
                    born, children);
}

/* `by` ends the title. */
static void print_tasks(const char *title, const char *by, const bp_machine_list *list,
                        bool is_process) {
    char heading[96];
    (void)snprintf(heading, sizeof heading, "%s %s  [host-threads.json]", title, by);
    if (list->count > 0) {
        bp_screen_heading(heading);
    }
    for (size_t i = 0; i < list->count; i++) {
        print_task(&list->rows[i], is_process);
    }
}

/* The part of a screen about a capture of the whole machine; nothing without one. */
static void show_machine(const bp_machine *machine) {
    if (!machine->is_there) {
        return;
    }
    print_state(machine);
    char by_cpu[48];
    bp_machine_name_period(machine, by_cpu, sizeof by_cpu);
    print_tasks("Processes by CPU", by_cpu, &machine->busiest, true);
    if (machine->has_collector) {
        bp_screen_print(BP_SCREEN_PLAIN, "bugpack itself is left out: %.1f %%",
                        machine->collector_percent);
    }
    print_tasks("Processes by", "resident memory", &machine->largest, true);
    if (machine->no_rss_count > 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "and %" PRIu64 " whose memory is not known",
                        machine->no_rss_count);
    }
    print_tasks("Threads by CPU", by_cpu, &machine->threads, false);
}

typedef struct show_options {
    bool as_json;
    uint64_t max_bytes;
} show_options;

/* --- the parts ---------------------------------------------------------------------------- */

/* Where secrets may still be. */
static void print_unsearched(const bp_summary *summary) {
    bp_buffer names;
    bp_buffer_init(&names, (size_t)1 << 20);
    bp_manifest_append_unsearched(&names, summary->manifest);
    if (summary->manifest != NULL && !bp_json_tree_is_true(summary->manifest, "redacted")) {
        bp_screen_print(BP_SCREEN_PLAIN, "secrets    are not replaced in this report");
    } else if (names.size > 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "secrets    not searched for in %s",
                        bp_buffer_text(&names));
    }
    bp_buffer_release(&names);
}

/* What, when, where, and who asked. */
static void print_identity(const bp_summary *summary) {
    const bp_json_tree *metadata = summary->metadata;
    const bp_json_tree *app = bp_json_tree_object(metadata, "app");
    const bp_json_tree *platform = bp_json_tree_object(metadata, "platform");
    const bp_json_tree *tags = bp_json_tree_object(metadata, "tags");
    uint64_t pid = 0, collector_pid = 0;
    char kind[BP_SUMMARY_KIND_BYTES];
    bp_summary_kind(summary, kind);
    bp_screen_print(BP_SCREEN_BOLD, "%s%s%s: %s", bp_json_tree_text_or(app, "name", "(no name)"),
                    bp_json_tree_text(app, "version") != NULL ? " " : "",
                    bp_json_tree_text_or(app, "version", ""), kind);
    (void)bp_json_tree_uint(bp_json_tree_object(metadata, "collector"), "pid", &collector_pid);
    /* What captured the machine is no process of the report. */
    if (bp_json_tree_uint(metadata, "pid", &pid) && pid != collector_pid) {
        bp_screen_print(BP_SCREEN_PLAIN, "process    %s%s%" PRIu64 ", started %s",
                        summary->process_name, summary->process_name[0] != '\0' ? " " : "", pid,
                        bp_json_tree_text_or(metadata, "started_at", "at an unknown time"));
    }
    const char *triggered = bp_json_tree_text(metadata, "triggered_at");
    const char *written = bp_json_tree_text_or(metadata, "timestamp", "at an unknown time");
    bool is_last_sign = bp_summary_has_died_unseen(summary);
    bp_screen_print(BP_SCREEN_PLAIN, "%-10s %s%s", triggered != NULL ? "triggered" : "written",
                    triggered != NULL ? triggered : written,
                    is_last_sign ? ", the last sign of life: when it died is not known" : "");
    if (bp_json_tree_text(metadata, "machine") != NULL) {
        bp_screen_print(BP_SCREEN_PLAIN, "machine    %s", bp_json_tree_text(metadata, "machine"));
    }
    bp_screen_print(
        BP_SCREEN_PLAIN, "platform   %s %s %s", bp_json_tree_text_or(platform, "os", "?"),
        bp_json_tree_text_or(platform, "kernel", ""), bp_json_tree_text_or(platform, "arch", ""));
    if (bp_json_tree_text(metadata, "description") != NULL) {
        bp_screen_print(BP_SCREEN_PLAIN, "says       %s",
                        bp_json_tree_text_or(metadata, "description", ""));
    }
    for (const bp_json_tree *tag = bp_json_tree_first(tags); tag != NULL;
         tag = bp_json_tree_next(tag)) {
        bp_screen_print(BP_SCREEN_PLAIN, "tag        %s=%s", bp_json_tree_key(tag),
                        bp_json_tree_value(tag));
    }
    print_unsearched(summary);
}

static void print_findings(const bp_summary *summary) {
    static const int styles[] = {BP_SCREEN_RED, BP_SCREEN_YELLOW, BP_SCREEN_DIM};
    static const char *const signs[] = {"!!", " !", "  "};
    bp_screen_heading("Findings");
    for (size_t i = 0; i < summary->findings->count; i++) {
        const bp_finding *finding = &summary->findings->rows[i];
        bp_severity severity = bp_finding_severity(finding);
        bp_screen_wrap(styles[severity], 3, "%s %s  [%s]", signs[severity], finding->text,
                       finding->entry);
    }
    if (summary->findings->count == 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "   none");
    }
    if (bp_findings_other_count(summary->findings) > 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "   and %" PRIu64 " more, %" PRIu64 " of them critical",
                        bp_findings_other_count(summary->findings),
                        summary->findings->other_counts[BP_SEVERITY_CRITICAL]);
    }
}

/* The samples of a history as a row of bars, each the largest of its part; blank where none of it
 * is known. */
static void print_sparkline(const bp_summary *summary, const char *title, const char *unit,
                            double (*value_of)(const bp_sample *sample)) {
    static const char *const bars[2][8] = {
        {"_", ".", ":", "-", "=", "+", "*", "#"},
        {"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"}};
    enum { bar_max = 50, bar_bytes = sizeof "\u2581" - 1 };
    double values[bar_max], lowest = -1, highest = -1;
    char range[64], row[bar_max * bar_bytes + 1] = "";
    for (size_t i = 0; i < summary->sample_count; i++) {
        double value = value_of(&summary->samples[i]);
        lowest = value >= 0 && (lowest < 0 || value < lowest) ? value : lowest;
        highest = value > highest ? value : highest;
    }
    if (highest < 0) {
        return;
    }
    (void)snprintf(range, sizeof range, "%.0f to %.0f %s", lowest, highest, unit);
    size_t count = bp_screen_columns_left(strlen("memory       ") + strlen(range));
    count = count < bar_max ? count : bar_max;
    count = count < summary->sample_count ? count : summary->sample_count;
    for (size_t i = 0; i < count; i++) {
        values[i] = -1;
    }
    for (size_t i = 0; count > 0 && i < summary->sample_count; i++) {
        double value = value_of(&summary->samples[i]);
        double *bar = &values[i * count / summary->sample_count];
        *bar = value > *bar ? value : *bar;
    }
    for (size_t i = 0, used = 0; i < count; i++) {
        double share = highest > 0 ? values[i] / highest : 0;
        const char *bar = bars[bp_screen_has_utf8()][values[i] < 0 ? 0 : (int)(share * 7 + 0.5)];
        used += (size_t)snprintf(row + used, sizeof row - used, "%s", values[i] < 0 ? " " : bar);
    }
    (void)printf("%-10s %s  %s\n", title, row, range);
}

static void print_metrics(const bp_summary *summary) {
    char rss[16], heap[2][16], uptime[32];
    if (!summary->use.has_metrics && summary->sample_count == 0 && !summary->has_heap[0]) {
        return;
    }
    bp_screen_heading("CPU and memory");
    if (summary->use.has_metrics) {
        (void)snprintf(uptime, sizeof uptime, summary->use.has_uptime ? "%.0f s" : "?",
                       summary->use.uptime_secs);
        bp_screen_print(
            BP_SCREEN_PLAIN,
            "now        %.1f %% of one CPU over %.2f s, %s resident, %" PRIu64 " thread%s, up %s",
            summary->use.cpu_percent, summary->window_ms / 1000,
            summary->use.has_rss ? bp_cli_format_bytes(summary->use.rss_kb << 10, rss) : "?",
            summary->use.thread_count, summary->use.thread_count == 1 ? "" : "s", uptime);
    }
    print_sparkline(summary, "CPU", "%", bp_summary_sample_cpu);
    print_sparkline(summary, "memory", "MiB", bp_summary_sample_memory);
    if (summary->has_heap[0]) {
        bp_screen_print(BP_SCREEN_PLAIN, "heap       %s allocated%s%s, %s",
                        bp_cli_format_bytes(summary->heap_bytes[0], heap[0]),
                        summary->has_heap[1] ? ", resident " : "",
                        summary->has_heap[1] ? bp_cli_format_bytes(summary->heap_bytes[1], heap[1])
                                             : "",
                        summary->allocator);
    }
}

/* Threads that do the same, as the workers of a pool, are one row. */
static bool is_alike(const bp_summary_thread *one, const bp_summary_thread *other) {
    return (int)(one->cpu_percent * 10) == (int)(other->cpu_percent * 10) &&
           one->is_born == other->is_born && strcmp(one->name, other->name) == 0 &&
           strcmp(one->state, other->state) == 0 && strcmp(one->syscall, other->syscall) == 0 &&
           strcmp(one->waits_for, other->waits_for) == 0 && strcmp(one->frames, other->frames) == 0;
}

static void print_threads(const bp_summary *summary) {
    enum { indent = 28 };
    if (summary->listed_count == 0) {
        return;
    }
    bp_screen_heading("Busiest threads");
    for (size_t i = 0, count; i < summary->listed_count; i += count) {
        const bp_summary_thread *thread = &summary->threads[i];
        const char *place = thread->frames[0] != '\0' ? thread->frames : thread->syscall;
        char name[96];
        count = 1;
        while (i + count < summary->listed_count &&
               is_alike(thread, &summary->threads[i + count])) {
            count++;
        }
        (void)snprintf(name, sizeof name, "%s", thread->name);
        if (count > 1) {
            (void)snprintf(name, sizeof name, "%zu x %s", count, thread->name);
        }
        bp_screen_wrap(BP_SCREEN_PLAIN, indent, "%6.1f %%  %7" PRIu64 " %-16s %s%s%s%s%s%s%s",
                       thread->cpu_percent, thread->tid, name, bp_summary_born_words(thread),
                       thread->state, bp_summary_wait_words(thread), thread->waits_for,
                       thread->waits_for[0] != '\0' && place[0] != '\0' ? "," : "",
                       place[0] != '\0' ? " in " : "", place);
    }
    if (summary->use.thread_count > summary->listed_count) {
        bp_screen_print(BP_SCREEN_PLAIN, "and %" PRIu64 " more",
                        summary->use.thread_count - summary->listed_count);
    }
}

static void print_processes(const bp_summary *summary) {
    char cpu[16], rss[16], pid[24];
    if (summary->process_count > 0) {
        bp_screen_heading("Further processes");
    }
    for (size_t i = 0; i < summary->process_count; i++) {
        const bp_summary_process *process = &summary->processes[i];
        (void)snprintf(cpu, sizeof cpu, process->use.has_metrics ? "%.1f" : "?",
                       process->use.cpu_percent);
        if (process->pid > 0) {
            (void)snprintf(pid, sizeof pid, "%" PRIu64, process->pid);
        }
        bp_screen_print(BP_SCREEN_PLAIN, "%6s %%  %9s  %7s %-16s [%s]", cpu,
                        process->use.has_rss ? bp_cli_format_bytes(process->use.rss_kb << 10, rss)
                                             : "?",
                        process->pid > 0 ? pid : "?", process->name, process->folder);
    }
    if (summary->other_process_count > 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "and %" PRIu64 " more", summary->other_process_count);
    }
}

static void print_triggers(const bp_summary *summary) {
    const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(summary->manifest, "triggers"));
    if (row != NULL) {
        bp_screen_heading("Gaps and other automatic triggers");
    }
    for (; row != NULL; row = bp_json_tree_next(row)) {
        uint64_t count = 0;
        (void)bp_json_tree_uint(row, "count", &count);
        bp_screen_print(BP_SCREEN_PLAIN, "%9" PRIu64 "  %s %s", count,
                        bp_json_tree_text_or(row, "report_type", "?"),
                        bp_json_tree_text_or(row, "key", ""));
    }
}

static void print_records(const bp_summary *summary) {
    for (size_t age = BP_SUMMARY_RECORD_MAX; age-- > 0;) {
        const bp_summary_record *record = bp_summary_newest(summary, age);
        if (record == NULL) {
            continue;
        }
        char before[24] = "";
        if (record->wall_ns != 0 && summary->triggered_wall_ns != 0) {
            double secs = ((double)record->wall_ns - (double)summary->triggered_wall_ns) / 1e9;
            (void)snprintf(before, sizeof before, "%+.3f s", secs);
        }
        bp_screen_print(record->level >= BUGPACK_LEVEL_ERROR ? BP_SCREEN_RED : BP_SCREEN_YELLOW,
                        "%12s  %-5s %s%s%s", before, bp_level_name((uint8_t)record->level),
                        record->channel, record->channel[0] != '\0' ? ": " : "", record->message);
    }
}

/* A line that may hold NUL: a power cut leaves runs of it, of which one is shown. */
static void print_log_line(const char *line, size_t length) {
    static const char nul[] = "\\x00";
    char text[2000];
    size_t used = 0;
    for (size_t i = 0; i < length && used + sizeof nul < sizeof text; i++) {
        if (line[i] != '\0') {
            text[used++] = line[i];
        } else if (i == 0 || line[i - 1] != '\0') {
            memcpy(text + used, nul, sizeof nul - 1);
            used += sizeof nul - 1;
        }
    }
    text[used] = '\0';
    bp_screen_print(BP_SCREEN_PLAIN, "  %s", text);
}

/* The last whole lines of a text log. */
static void print_tail(const bp_summary *summary) {
    const char *text = bp_buffer_text(&summary->log_tail), *end = text + summary->log_tail.size;
    const char *at = end;
    for (int lines = 0; at > text && lines < 9; at--) {
        lines += at[-1] == '\n';
        if (lines == 9) {
            break;
        }
    }
    for (const char *next; at < end; at = next) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        next = newline != NULL ? newline + 1 : end;
        print_log_line(at, (size_t)((newline != NULL ? newline : end) - at));
    }
}

static void print_log(const bp_summary *summary) {
    if (summary->record_count > 0) {
        bp_screen_heading("Newest warnings and errors, in seconds from the trigger  [logs.jsonl]");
        print_records(summary);
    } else if (summary->log_tail.size > 0) {
        (void)fputc('\n', stdout);
        bp_screen_print(BP_SCREEN_BOLD, "End of the log  [%s]", summary->log_name);
        print_tail(summary);
    }
}

static void print_traffic(const bp_summary *summary) {
    char bytes[2][16];
    if (summary->channel_count > 0) {
        bp_screen_heading("Traffic  [traffic-index.jsonl]");
    }
    for (size_t i = 0; i < summary->channel_count; i++) {
        const bp_summary_channel *channel = &summary->channels[i];
        const char *least = bp_summary_channel_is_partial(channel) ? "at least " : "";
        bp_screen_print(BP_SCREEN_PLAIN,
                        "%-16s sent %s%" PRIu64 " (%s), received %s%" PRIu64 " (%s)", channel->name,
                        least, channel->messages[0],
                        bp_cli_format_bytes(channel->bytes[0], bytes[0]), least,
                        channel->messages[1], bp_cli_format_bytes(channel->bytes[1], bytes[1]));
    }
    if (summary->other_message_count > 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "and %" PRIu64 " more messages",
                        summary->other_message_count);
    }
}

static void print_screen(const bp_summary *summary) {
    print_identity(summary);
    print_findings(summary);
    print_metrics(summary);
    print_threads(summary);
    print_processes(summary);
    show_machine(&summary->machine);
    print_triggers(summary);
    print_log(summary);
    print_traffic(summary);
}

/* --- the command -------------------------------------------------------------------------- */

static bp_cli_exit show_summary(const char *path, const show_options *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_summary *summary = NULL;
    bugpack_status status =
        bp_summary_open(path, options->max_bytes, false, bp_frame_finder_new(), &summary, &error);
    if (status == BUGPACK_OK && options->as_json) {
        bp_buffer text;
        bp_buffer_init(&text, SIZE_MAX / 4);
        status = bp_summary_print(summary, &text, &error);
        (void)fwrite(bp_buffer_text(&text), 1, text.size, stdout);
        bp_buffer_release(&text);
    } else if (status == BUGPACK_OK) {
        bp_screen_look();
        print_screen(summary);
    }
    bp_summary_close(summary);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    return bp_cli_finish_output();
}

/* A bp_sink: escaped, but for what lays out a text. */
static bugpack_status print_escaped(void *context, const void *bytes, size_t byte_count) {
    const unsigned char *at = bytes;
    (void)context;
    for (size_t i = 0; i < byte_count; i++) {
        bool is_plain = (at[i] >= 0x20 && at[i] < 0x7F) || at[i] == '\n' || at[i] == '\t';
        (void)printf(is_plain ? "%c" : "\\x%02x", at[i]);
    }
    return ferror(stdout) != 0 ? BUGPACK_ERR_IO : BUGPACK_OK;
}

static bugpack_status print_raw(void *context, const void *bytes, size_t byte_count) {
    (void)context;
    return fwrite(bytes, 1, byte_count, stdout) == byte_count ? BUGPACK_OK : BUGPACK_ERR_IO;
}

static bp_cli_exit show_entry(const char *path, const char *name, const show_options *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_report_file *report = NULL;
    bugpack_status status = bp_report_file_open_any(path, &report, &error);
    if (status == BUGPACK_OK) {
        bool is_terminal = isatty(STDOUT_FILENO) == 1;
        status = bp_report_file_stream(report, name, options->max_bytes,
                                       is_terminal ? print_escaped : print_raw, NULL, &error);
    }
    bp_report_file_close(report);
    bp_cli_exit result = bp_cli_finish_output();
    if (status != BUGPACK_OK && result == BP_CLI_COMPLETE) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    return result;
}

static const bp_cli_option option_rows[] = {
    BP_CLI_FLAG(show_options, as_json, 0, "json", "JSON instead of text"),
    BP_CLI_VALUE(show_options, max_bytes, 0, "max-bytes", "BYTES",
                 "read at most this much content (default 256M)", bp_cli_read_size, NULL),
    BP_CLI_OPTIONS_END};

static bp_cli_exit run(int argument_count, char **arguments) {
    show_options options = {.max_bytes = (uint64_t)256 << 20};
    char **operands;
    bp_cli_exit result;
    if (!bp_cli_read_options(&bp_cli_show_command, argument_count, arguments, &options, &operands,
                             &result)) {
        return result;
    }
    if (operands[0] == NULL) {
        return bp_cli_say_usage("a report is missing");
    }
    return operands[1] != NULL ? show_entry(operands[0], operands[1], &options)
                               : show_summary(operands[0], &options);
}

const bp_cli_command bp_cli_show_command = {
    "show",
    "show what a report says, on one screen",
    "Usage: bugpack show [OPTION]... REPORT [ENTRY]\n"
    "\n"
    "Show what a report says: findings first, then CPU, memory, threads, gaps, the\n"
    "newest warnings and the traffic. With ENTRY, print that entry: as it is into a\n"
    "pipe or a file, escaped on a terminal. A REPORT of - is read from standard\n"
    "input.\n",
    option_rows,
    "Exit status: 0 shown, 1 failed, 2 usage.\n",
    2,
    run};
