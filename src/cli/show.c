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
#include "inspect/facts.h"
#include "inspect/fill.h"
#include "inspect/frames.h"
#include "inspect/manifest_lines.h"
#include "probe/stacks.h"

typedef struct show_options {
    bool as_json, is_all;
    uint64_t max_bytes;
} show_options;

/* --- lines -------------------------------------------------------------------------------- */

/* A bp_fill_taker. */
static void append(void *context, const char *text, size_t byte_count, bool is_fact) {
    (void)is_fact;
    (void)bp_buffer_append(context, text, byte_count);
}

/* Prints a line by a pattern of inspect/fill.h; false, and none, where what it needs is not known.
 */
static bool say(int style, const bp_json_tree *facts, const char *pattern) {
    bp_buffer line;
    bp_buffer_init(&line, SIZE_MAX / 4);
    bool is_known = bp_fill(pattern, facts, append, &line);
    if (is_known) {
        bp_screen_print(style, "%s", bp_buffer_text(&line));
    }
    bp_buffer_release(&line);
    return is_known;
}

static void say_all(const bp_json_tree *facts, const char *const *patterns) {
    for (; *patterns != NULL; patterns++) {
        (void)say(BP_SCREEN_PLAIN, facts, *patterns);
    }
}

/* Lists the elements of an array below a heading; nothing without any. */
static void list(const bp_json_tree *array, const char *heading, const char *pattern) {
    const bp_json_tree *row = bp_json_tree_first(array);
    if (row != NULL) {
        bp_screen_heading(heading);
    }
    for (; row != NULL; row = bp_json_tree_next(row)) {
        (void)say(BP_SCREEN_PLAIN, row, pattern);
    }
}

/* --- the parts ---------------------------------------------------------------------------- */

/* Where secrets may still be. */
static void print_unsearched(const bp_facts *facts) {
    bp_buffer names;
    bp_buffer_init(&names, (size_t)1 << 20);
    bp_manifest_append_unsearched(&names, facts->manifest);
    if (facts->manifest != NULL && !bp_json_tree_is_true(facts->document, "redacted")) {
        bp_screen_print(BP_SCREEN_PLAIN, "secrets    are not replaced in this report");
    } else if (names.size > 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "secrets    not searched for in %s",
                        bp_buffer_text(&names));
    }
    bp_buffer_release(&names);
}

/* What, when, where, and who asked. */
static void print_identity(const bp_facts *facts) {
    static const char unseen[] = "{[{_died_unseen:!}, the last sign of life: when it died is not "
                                 "known]}";
    const bp_json_tree *report = bp_json_tree_object(facts->document, "report");
    const bp_json_tree *tag = bp_json_tree_first(bp_json_tree_object(facts->metadata, "tags"));
    char triggered[128];
    (void)say(BP_SCREEN_BOLD, report, "{app|(no name)}{[ {version}]}: {_kind}");
    (void)say(BP_SCREEN_PLAIN, report,
              "{_is_process:!}process    {[{process} ]}{pid:u}, started {started_at|at an unknown "
              "time}");
    (void)snprintf(triggered, sizeof triggered, "triggered  {triggered_at}%s", unseen);
    if (!say(BP_SCREEN_PLAIN, report, triggered)) {
        (void)snprintf(triggered, sizeof triggered, "written    {_timestamp|at an unknown time}%s",
                       unseen);
        (void)say(BP_SCREEN_PLAIN, report, triggered);
    }
    (void)say(BP_SCREEN_PLAIN, report, "machine    {machine}");
    (void)say(BP_SCREEN_PLAIN, facts->metadata,
              "platform   {platform.os|?} {platform.kernel|} {platform.arch|}");
    (void)say(BP_SCREEN_PLAIN, report, "says       {_description}");
    for (; tag != NULL; tag = bp_json_tree_next(tag)) {
        bp_screen_print(BP_SCREEN_PLAIN, "tag        %s=%s", bp_json_tree_key(tag),
                        bp_json_tree_value(tag));
    }
    print_unsearched(facts);
}

static void print_findings(const bp_facts *facts) {
    static const struct {
        const char *severity, *sign;
        int style;
    } severities[] = {{"critical", "!!", BP_SCREEN_RED},
                      {"warning", " !", BP_SCREEN_YELLOW},
                      {"info", "  ", BP_SCREEN_DIM}};
    const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(facts->document, "findings"));
    bp_screen_heading("Findings");
    if (row == NULL) {
        bp_screen_print(BP_SCREEN_PLAIN, "   none");
    }
    for (; row != NULL; row = bp_json_tree_next(row)) {
        size_t at = 0;
        while (strcmp(severities[at].severity, bp_json_tree_text_or(row, "severity", "info")) !=
               0) {
            at++;
        }
        bp_screen_wrap(severities[at].style, 3, "%s %s  [%s]", severities[at].sign,
                       bp_json_tree_text_or(row, "text", ""),
                       bp_json_tree_text_or(row, "entry", ""));
        const char *next = bp_json_tree_text(row, "_next");
        if (next != NULL) {
            bp_screen_wrap(BP_SCREEN_DIM, 9, "   next: %s", next);
        }
    }
    (void)say(BP_SCREEN_PLAIN, facts->document,
              "   and {other_findings:u} more, {_other_critical:u} of them critical");
}

/* The samples of a history as a row of bars, each the largest of its part; blank where none of it
 * is known. */
static void print_sparkline(const bp_facts *facts, const char *title, const char *unit,
                            double (*value_of)(const bp_sample *sample)) {
    static const char *const bars[2][8] = {
        {"_", ".", ":", "-", "=", "+", "*", "#"},
        {"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"}};
    enum { bar_max = 50, bar_bytes = sizeof "\u2581" - 1 };
    double values[bar_max], lowest = -1, highest = -1;
    char range[64], row[bar_max * bar_bytes + 1] = "";
    for (size_t i = 0; i < facts->sample_count; i++) {
        double value = value_of(&facts->samples[i]);
        lowest = value >= 0 && (lowest < 0 || value < lowest) ? value : lowest;
        highest = value > highest ? value : highest;
    }
    if (highest < 0) {
        return;
    }
    (void)snprintf(range, sizeof range, "%.0f to %.0f %s", lowest, highest, unit);
    size_t count = bp_screen_columns_left(strlen("memory       ") + strlen(range));
    count = count < bar_max ? count : bar_max;
    count = count < facts->sample_count ? count : facts->sample_count;
    for (size_t i = 0; i < count; i++) {
        values[i] = -1;
    }
    for (size_t i = 0; count > 0 && i < facts->sample_count; i++) {
        double value = value_of(&facts->samples[i]);
        double *bar = &values[i * count / facts->sample_count];
        *bar = value > *bar ? value : *bar;
    }
    for (size_t i = 0, used = 0; i < count; i++) {
        double share = highest > 0 ? values[i] / highest : 0;
        const char *bar = bars[bp_screen_has_utf8()][values[i] < 0 ? 0 : (int)(share * 7 + 0.5)];
        used += (size_t)snprintf(row + used, sizeof row - used, "%s", values[i] < 0 ? " " : bar);
    }
    (void)printf("%-10s %s  %s\n", title, row, range);
}

static void print_metrics(const bp_facts *facts) {
    const bp_json_tree *process = bp_json_tree_object(facts->document, "process");
    const bp_json_tree *heap = bp_json_tree_object(facts->document, "heap");
    bool has_heap = bp_json_tree_member(heap, "allocated_bytes") != NULL;
    if (bp_json_tree_member(process, "cpu_percent") == NULL && facts->sample_count == 0 &&
        !has_heap) {
        return;
    }
    bp_screen_heading("CPU and memory");
    (void)say(
        BP_SCREEN_PLAIN, process,
        "now        {cpu_percent:.1f} % of one CPU over {sample_window_ms:.2t} s, {rss_kb:k|?} "
        "resident, {thread_count:u} thread{thread_count:p}, up {uptime_secs:.0f s|?}");
    print_sparkline(facts, "CPU", "%", bp_sample_cpu);
    print_sparkline(facts, "memory", "MiB", bp_sample_memory);
    (void)say(BP_SCREEN_PLAIN, heap,
              "heap       {allocated_bytes:b} allocated{[, resident {resident_bytes:b}]}, "
              "{allocator|}");
}

/* Threads that do the same, as the workers of a pool, are one row. */
static void print_thread_rows(const bp_json_tree *row) {
    enum { indent = 28 };
    bp_buffer words;
    bp_buffer_init(&words, SIZE_MAX / 4);
    for (; row != NULL; row = bp_json_tree_next(row)) {
        char name[96];
        uint64_t tid = 0, count = 1;
        double percent = 0;
        (void)bp_json_tree_uint(row, "tid", &tid);
        (void)bp_json_tree_uint(row, "_count", &count);
        (void)bp_json_tree_number(row, "cpu_percent", &percent);
        const char *only = bp_json_tree_text_or(row, "name", "");
        (void)snprintf(name, sizeof name, "%s", only);
        if (count > 1) {
            (void)snprintf(name, sizeof name, "%" PRIu64 " x %s", count, only);
        }
        bp_buffer_clear(&words);
        (void)bp_fill(BP_FILL_STATE BP_FILL_WAIT "{[{waits_for:!}{_place:!},]}{[ in {_place}]}",
                      row, append, &words);
        bp_screen_wrap(BP_SCREEN_PLAIN, indent, "%6.1f %%  %7" PRIu64 " %-16s %s", percent, tid,
                       name, bp_buffer_text(&words));
    }
    bp_buffer_release(&words);
}

static void print_threads(const bp_facts *facts, bool is_all) {
    const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(facts->document, "_threads"));
    const bp_json_tree *own =
        bp_json_tree_first(bp_json_tree_array(facts->document, "_own_threads"));
    if (row == NULL) {
        return;
    }
    bp_screen_heading("Busiest threads");
    print_thread_rows(row);
    (void)say(BP_SCREEN_PLAIN, facts->document, "and {_other_threads:u} more");
    if (is_all) {
        print_thread_rows(own);
    } else {
        (void)say(BP_SCREEN_PLAIN, facts->document, "and {_own_count:u} of bugpack itself");
    }
}

/* Where each thread spent its time. */
static void print_profile(const bp_facts *facts) {
    const bp_json_tree *profile = bp_json_tree_object(facts->document, "profile");
    const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(profile, "threads"));
    bp_buffer words;
    if (row == NULL) {
        return;
    }
    bp_screen_heading("Where the CPU time went  [profile.folded]");
    (void)say(BP_SCREEN_PLAIN, profile, BP_FILL_PROFILE);
    bp_buffer_init(&words, SIZE_MAX / 4);
    for (; row != NULL; row = bp_json_tree_next(row)) {
        bp_buffer_clear(&words);
        (void)bp_fill("{name} {_percent:.0f %}" BP_FILL_PATH, row, append, &words);
        bp_screen_wrap(BP_SCREEN_PLAIN, 5, "   %s", bp_buffer_text(&words));
    }
    bp_buffer_release(&words);
    (void)say(BP_SCREEN_PLAIN, profile, "   and {_other_threads:u} more");
}

/* Of each thread all frames, one a line. */
typedef struct stack_lines {
    const bp_facts *facts;
    bp_buffer line;
    size_t count, thread_count;
} stack_lines;

/* A bp_frame_taker. */
static void print_frame(void *context, const bp_frame_text *frame) {
    stack_lines *lines = context;
    bp_buffer_clear(&lines->line);
    bp_frame_append_line(&lines->line, frame, lines->count++);
    bp_screen_print(BP_SCREEN_PLAIN, "  %.*s", (int)strcspn(bp_buffer_text(&lines->line), "\n"),
                    bp_buffer_text(&lines->line));
}

/* A bp_json_tree_taker. */
static bugpack_status print_stack(void *context, bp_json_tree *row, bugpack_error *error) {
    stack_lines *lines = context;
    (void)error;
    if (lines->thread_count++ == 0) {
        bp_screen_heading("Stacks  [stacks.json]");
    }
    (void)say(BP_SCREEN_BOLD, row, "{tid:7u|?} {name|}{[, {state}]}{[, {reason}]}");
    lines->count = 0;
    bp_frames_each(bp_json_tree_array(row, "frames"), &lines->facts->finder, print_frame, lines);
    return lines->line.status;
}

/* What is wrong with the entry is a finding. */
static void print_stacks(const bp_facts *facts) {
    static const bp_json_tree_list lists[] = {{"threads", print_stack, false}, {NULL, NULL, false}};
    stack_lines lines = {.facts = facts};
    uint64_t byte_count;
    bp_buffer_init(&lines.line, SIZE_MAX / 4);
    if (bp_report_file_has(facts->report, "stacks.json", &byte_count) &&
        byte_count <= facts->left_bytes) {
        (void)bp_report_file_each(facts->report, "stacks.json", lists, &lines, NULL, NULL);
    }
    bp_buffer_release(&lines.line);
}

static void print_crash(const bp_facts *facts) {
    const bp_json_tree *crash = bp_json_tree_object(facts->document, "_crash");
    const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(crash, "frames"));
    if (row != NULL) {
        bp_screen_heading("Where it crashed, innermost first  [crash.json]");
        (void)say(BP_SCREEN_PLAIN, crash, "thread {name|?}{[ ({tid:u})]}");
    }
    for (; row != NULL; row = bp_json_tree_next(row)) {
        (void)say(BP_SCREEN_PLAIN, row, "   {name}{[ x{count:u}]}{[  {place}]}");
    }
    (void)say(BP_SCREEN_PLAIN, crash, "   and {other_frames:u} more frames");
    const char *reason = bp_json_tree_text(crash, "reason");
    if (reason != NULL) {
        bp_screen_wrap(BP_SCREEN_PLAIN, 5, "   what called it was not found: %s", reason);
    }
}

static void print_waits(const bp_facts *facts) {
    bool has_any = false;
    for (size_t i = 0; i < facts->waits.node_count; i++) {
        bp_buffer line;
        bp_buffer_init(&line, SIZE_MAX / 4);
        if (bp_waits_print(&facts->waits, i, &line)) {
            if (!has_any) {
                bp_screen_heading("Who waits for whom  [threads.json]");
            }
            has_any = true;
            bp_screen_wrap(BP_SCREEN_PLAIN, 5, "   %s", bp_buffer_text(&line));
        }
        bp_buffer_release(&line);
    }
    if (facts->waits.is_cut) {
        bp_screen_print(BP_SCREEN_PLAIN, "   and more");
    }
}

static void print_output(const bp_facts *facts) {
    list(bp_json_tree_array(facts->document, "_output"), "Last lines of its output  [logs.jsonl]",
         "  {text}");
}

static void print_processes(const bp_facts *facts) {
    list(bp_json_tree_array(facts->document, "further_processes"),
         "Further processes  [processes/PID-NAME/]",
         "{cpu_percent:6.1f|?} %  {rss_kb:9k|?}  {pid:7u|?} {[{title}]}{[{_no_title:!}{name:-16s|} "
         "[{folder}]]}");
    (void)say(BP_SCREEN_PLAIN, facts->document, "and {_other_processes:u} more");
}

/* `by` ends the title. */
static void list_tasks(const bp_json_tree *machine, const char *key, const char *title,
                       const char *by, const char *pattern) {
    char heading[96];
    (void)snprintf(heading, sizeof heading, "%s %s  [host-threads.json]", title, by);
    list(bp_json_tree_array(machine, key), heading, pattern);
}

/* What a capture of the whole machine says; nothing without one. */
static void print_machine(const bp_facts *facts) {
    static const char *const state[] = {
        "captured   {captured_at}",
        "threads    {threads:u} of {processes:u} processes, {kernel_threads:u} of them of the "
        "kernel; "
        "{running_threads:u} running or ready to, {blocked_threads:u} blocked",
        "{denied_processes:+}refused    {denied_processes:u} more processes",
        "load       {load.avg1:.2f} over 1 min, {load.avg5:.2f} over 5 min, {load.avg15:.2f} over "
        "15 "
        "min{[; {cpus:u} CPU{cpus:p}]}  [system.json]",
        "memory     {memory_available_kb:k} of {memory_total_kb:k} available  [system.json]",
        NULL};
    static const char process[] =
        "{cpu_percent:6.1f|?} %  {cpu_ns:10.2n|?} s  {[{rss_kb:9k}]}{[{_no_rss:9s}]}  {pid:7u} "
        "{name:-16s|} {thread_count:u} thread{thread_count:p}{[{running_threads:+}, "
        "{running_threads:u} running]}{[{born_in_window:!}, born in the window]}"
        "{[, ended children used {children_cpu_ms:.0f} ms]}";
    static const char thread[] =
        "{cpu_percent:6.1f|?} %  {cpu_ns:10.2n|?} s  {tid:7u} {name:-16s|} {state}, of {pid:u} "
        "{process|}{[{born_in_window:!}, born in the window]}";
    const bp_json_tree *machine = bp_json_tree_object(facts->document, "machine");
    if (machine == NULL) {
        return;
    }
    const char *period = bp_json_tree_text_or(machine, "_period", "");
    bp_screen_heading("Machine  [host-threads.json]");
    say_all(machine, state);
    if (bp_json_tree_first(bp_json_tree_object(machine, "pressure_avg10_percent")) != NULL) {
        (void)say(BP_SCREEN_PLAIN, machine,
                  "waiting    for CPUs {pressure_avg10_percent.cpu:.1f %|?}, for memory "
                  "{pressure_avg10_percent.memory:.1f %|?}, for I/O {pressure_avg10_percent.io:.1f "
                  "%|?} of the last 10 s  [system.json]");
    }
    list_tasks(machine, "busiest_processes", "Processes by CPU", period, process);
    (void)say(BP_SCREEN_PLAIN, machine,
              "bugpack itself is left out: {collector_cpu_percent:.1f} %");
    list_tasks(machine, "largest_processes", "Processes by", "resident memory", process);
    (void)say(BP_SCREEN_PLAIN, machine,
              "{unknown_rss_processes:+}and {unknown_rss_processes:u} whose memory is not known");
    list_tasks(machine, "busiest_threads", "Threads by CPU", period, thread);
}

static void print_triggers(const bp_facts *facts) {
    list(bp_json_tree_array(facts->document, "triggers"), "Gaps and other automatic triggers",
         "{count:9u}  {report_type|?} {key|}");
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
static void print_tail(const bp_facts *facts) {
    const char *text = bp_buffer_text(&facts->log_tail), *end = text + facts->log_tail.size;
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

/* From a record on, the next that was not shown as output. */
static const bp_json_tree *skip_output(const bp_facts *facts, const bp_json_tree *row) {
    bool has_output = bp_json_tree_first(bp_json_tree_array(facts->document, "_output")) != NULL;
    while (has_output && row != NULL &&
           strcmp(bp_json_tree_text_or(row, "channel", ""), "stderr") == 0) {
        row = bp_json_tree_next(row);
    }
    return row;
}

static void print_log(const bp_facts *facts) {
    const bp_json_tree *row = skip_output(
        facts, bp_json_tree_first(bp_json_tree_at(facts->document, "log.newest_warnings")));
    if (row == NULL && facts->log_tail.size > 0) {
        (void)fputc('\n', stdout);
        bp_screen_print(BP_SCREEN_BOLD, "End of the log  [%s]", facts->log_name);
        print_tail(facts);
    } else if (row != NULL) {
        bp_screen_heading("Newest warnings and errors, in seconds from the trigger  [logs.jsonl]");
    }
    for (; row != NULL; row = skip_output(facts, bp_json_tree_next(row))) {
        bool is_warning = strcmp(bp_json_tree_text_or(row, "level", ""), "warn") == 0;
        (void)say(is_warning ? BP_SCREEN_YELLOW : BP_SCREEN_RED, row,
                  "{_from_trigger:12s|}  {level:-5s} {[{channel}: ]}{message}");
    }
}

static void print_traffic(const bp_facts *facts) {
    list(
        bp_json_tree_array(facts->document, "traffic"), "Traffic  [traffic-index.jsonl]",
        "{channel:-16s} sent {[{at_least:!}at least ]}{sent.messages:u} ({sent.bytes:b}), received "
        "{[{at_least:!}at least ]}{received.messages:u} ({received.bytes:b})");
    (void)say(BP_SCREEN_PLAIN, facts->document, "and {_other_messages:u} more messages");
}

static void print_screen(const bp_facts *facts, bool is_all) {
    print_identity(facts);
    print_findings(facts);
    print_crash(facts);
    print_output(facts);
    print_waits(facts);
    print_metrics(facts);
    print_threads(facts, is_all);
    print_profile(facts);
    print_processes(facts);
    print_machine(facts);
    print_triggers(facts);
    print_log(facts);
    print_traffic(facts);
    if (is_all) {
        print_stacks(facts);
    }
}

/* --- the command -------------------------------------------------------------------------- */

static bp_cli_exit show_facts(const char *path, const show_options *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_facts *facts = NULL;
    bugpack_status status =
        bp_facts_open(path, options->max_bytes, false, bp_frame_finder_new(), &facts, &error);
    if (status == BUGPACK_OK && options->as_json) {
        bp_buffer text;
        bp_buffer_init(&text, SIZE_MAX / 4);
        status = bp_facts_print(facts, &text, &error);
        (void)fwrite(bp_buffer_text(&text), 1, text.size, stdout);
        bp_buffer_release(&text);
    } else if (status == BUGPACK_OK) {
        bp_screen_look();
        print_screen(facts, options->is_all);
    }
    bp_facts_close(facts);
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
    BP_CLI_FLAG(show_options, is_all, 0, "all", "also every frame, and the threads of bugpack"),
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
                               : show_facts(operands[0], &options);
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
