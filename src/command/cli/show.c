#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "cli/files.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/pager.h"
#include "cli/show.h"
#include "entries/frames.h"
#include "entries/manifest_lines.h"
#include "facts/facts.h"
#include "print/fill.h"
#include "print/sections.h"
#include "stacks/stacks.h"

typedef struct show_options {
    bool as_json, as_markdown, is_all;
    uint64_t max_bytes;
    bp_cli_screen screen;
} show_options;

/* --- the screen --------------------------------------------------------------------------- */

enum { STYLE_PLAIN = 0, STYLE_BOLD = 1, STYLE_DIM = 2, STYLE_RED = 31, STYLE_YELLOW = 33 };

/* The screen: how wide it is, and what it can show. */
static struct {
    size_t columns; /* 0: a line is never cut */
    bool has_colour, has_utf8;
} screen;

static bool is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0') {
            return strstr(value, "UTF-8") != NULL || strstr(value, "utf8") != NULL;
        }
    }
    return false;
}

enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

const bp_cli_choice bp_cli_colours[] = {
    {"auto", COLOUR_AUTO}, {"always", COLOUR_ALWAYS}, {"never", COLOUR_NEVER}, {NULL, 0}};

/* Before anything is printed. */
static void look_at_screen(const bp_cli_screen *wanted) {
    struct winsize size;
    bool is_terminal = bp_cli_is_terminal(STDOUT_FILENO);
    bool is_auto = wanted->colour == COLOUR_AUTO && is_terminal && bp_cli_wants_colour();
    screen.has_colour = is_auto || wanted->colour == COLOUR_ALWAYS;
    screen.has_utf8 = is_utf8();
    bool is_known = is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    screen.columns = is_terminal ? 80 : 0;
    if (is_known) {
        screen.columns = size.ws_col;
    }
}

/* The columns of a line behind those that are used; SIZE_MAX if it is never cut. */
static size_t columns_left(size_t used) {
    if (screen.columns == 0) {
        return SIZE_MAX;
    }
    return used < screen.columns ? screen.columns - used : 0;
}

static void set_style(int style) {
    if (screen.has_colour) {
        (void)printf("\033[%dm", style);
    }
}

/* Where the text ends that fits behind `used` columns. */
static const char *find_fit(const char *text, size_t used) {
    while (*text != '\0') {
        bool is_safe;
        size_t length = bp_cli_next_character(text, &is_safe);
        used += length >= 3 ? 2 : 1;
        if (screen.columns > 0 && used > screen.columns) {
            break;
        }
        text += length;
    }
    return text;
}

static void put_line(int style, const char *text, const char *end) {
    set_style(style);
    (void)printf("%.*s", (int)(end - text), text);
    set_style(STYLE_PLAIN);
    (void)fputc('\n', stdout);
}

/*
 * Prints a text on as many lines as it takes, of which all but the first begin with so many blanks;
 * without an indentation, one line that is cut at the end of the screen. What is from a report is
 * escaped; a character beyond U+1100 is counted as two columns.
 */
BUGPACK_PRINTF(3, 4)
static void print_line(int style, size_t indent, const char *format, ...) {
    char raw[2048], text[4 * sizeof raw];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    for (char *tab = raw; (tab = strchr(tab, '\t')) != NULL;) {
        *tab = ' ';
    }
    bp_cli_escape(raw, text, sizeof text);
    if (indent == 0) {
        put_line(style, text, find_fit(text, 0));
        return;
    }
    const char *at = text;
    for (size_t used = 0; *at != '\0'; used = indent) {
        const char *fit = find_fit(at, used), *end = fit;
        while (*fit != '\0' && *fit != ' ' && end > at && end[-1] != ' ') {
            end--;
        }
        end = end > at ? end : fit; /* a word that is longer than the line */
        end = end > at ? end : at + strlen(at);
        (void)printf("%*s", (int)used, "");
        put_line(style, at, end);
        at = end + strspn(end, " ");
    }
}

/* A title, after an empty line. */
static void print_heading(const char *title, const char *note) {
    (void)fputc('\n', stdout);
    print_line(STYLE_BOLD, 0, "%s%s", title, note);
}

static void print_title(bp_section_id id) {
    print_heading(bp_sections[id].title, bp_sections[id].note);
}

/* --- lines -------------------------------------------------------------------------------- */

/* A bp_fill_taker. */
static void append(void *context, const char *text, size_t byte_count, bool is_fact) {
    (void)is_fact;
    (void)bp_buffer_append(context, text, byte_count);
}

/* Prints a line by a pattern of print/fill.h; false, and none, where what it needs is not known. */
static bool say(int style, size_t indent, const bp_json_tree *facts, const char *pattern) {
    bp_buffer line;
    bp_buffer_init(&line, SIZE_MAX / 4);
    bool is_known = bp_fill(pattern, facts, append, &line);
    if (is_known) {
        print_line(style, indent, "%s", bp_buffer_text(&line));
    }
    bp_buffer_release(&line);
    return is_known;
}

/* Prints a section that is made of lines. */
static void print_lines(const bp_section *section, const bp_json_tree *document, bool is_all) {
    const bp_json_tree *facts = bp_section_facts(section, document);
    if (facts == NULL) {
        return;
    }
    print_heading(section->title, section->note);
    for (const bp_section_line *line = section->lines; !bp_section_is_end(line); line++) {
        bool is_wanted = line->screen != NULL && line->when != (is_all ? BP_UNLESS_ALL : BP_IF_ALL);
        const bp_json_tree *row = line->list != NULL ? bp_json_tree_rows(facts, line->list) : facts;
        if (row != NULL && line->title != NULL) {
            char title[160];
            (void)snprintf(title, sizeof title, "%s%s", line->title, section->note);
            (void)fputc('\n', stdout);
            (void)say(STYLE_BOLD, 0, facts, title);
        }
        for (; is_wanted && row != NULL; row = line->list != NULL ? bp_json_tree_next(row) : NULL) {
            (void)say(STYLE_PLAIN, line->indent, row, line->screen);
        }
    }
}

/* --- the parts ---------------------------------------------------------------------------- */

/* Where secrets may still be. */
static void print_unsearched(const bp_facts *facts) {
    bp_buffer names;
    bp_buffer_init(&names, (size_t)1 << 20);
    bp_manifest_append_unsearched(&names, facts->manifest);
    if (facts->manifest != NULL && !bp_json_tree_is_true(facts->document, "redacted")) {
        print_line(STYLE_PLAIN, 0, "secrets    are not replaced in this report");
    } else if (names.size > 0) {
        print_line(STYLE_PLAIN, 0, "secrets    not searched for in %s", bp_buffer_text(&names));
    }
    bp_buffer_release(&names);
}

#define DIED_UNSEEN "{[{died_unseen:!}, the last sign of life: when it died is not known]}"

static void print_identity(const bp_facts *facts) {
    const bp_json_tree *document = facts->document;
    (void)say(STYLE_BOLD, 0, document, "{report.app|(no name)}{[ {report.version}]}: {kind}");
    (void)say(STYLE_PLAIN, 0, document,
              "{is_process:!}process    {[{report.process} ]}{report.pid:u}, started "
              "{report.started_at|at an unknown time}");
    if (!say(STYLE_PLAIN, 0, document, "triggered  {report.triggered_at}" DIED_UNSEEN)) {
        (void)say(STYLE_PLAIN, 0, document,
                  "written    {timestamp|at an unknown time}" DIED_UNSEEN);
    }
    (void)say(STYLE_PLAIN, 0, document, "machine    {report.machine}");
    (void)say(STYLE_PLAIN, 0, document,
              "signature  {signature}{[{weak_signature:!}, which names no place]}");
    (void)say(STYLE_PLAIN, 0, document, "platform   {os|?} {kernel|} {arch|}");
    (void)say(STYLE_PLAIN, 0, document, "says       {says}");
    BP_JSON_EACH (tag, bp_json_tree_first(bp_json_tree_object(facts->metadata, "tags"))) {
        print_line(STYLE_PLAIN, 0, "tag        %s=%s", bp_json_tree_key(tag),
                   bp_json_tree_value(tag));
    }
    print_unsearched(facts);
}

static void print_findings(const bp_facts *facts) {
    static const struct {
        const char *sign;
        int style;
    } severities[] = {[BP_SEVERITY_CRITICAL] = {"!!", STYLE_RED},
                      [BP_SEVERITY_WARNING] = {" !", STYLE_YELLOW},
                      [BP_SEVERITY_INFO] = {"  ", STYLE_DIM}};
    const bp_findings *findings = &facts->findings;
    uint64_t other_count = bp_findings_other_count(findings);
    print_title(BP_SECTION_FINDINGS);
    if (findings->count == 0) {
        print_line(STYLE_PLAIN, 0, "   none");
    }
    for (size_t i = 0; i < findings->count; i++) {
        const bp_finding *finding = &findings->rows[i];
        bp_severity severity = bp_finding_severity(finding);
        const char *next = bp_findings_next(findings, i);
        print_line(severities[severity].style, 3, "%s %s  [%s]", severities[severity].sign,
                   finding->sentence.text, finding->entry);
        if (next[0] != '\0') {
            print_line(STYLE_DIM, 9, "   next: %s", next);
        }
    }
    if (other_count > 0) {
        print_line(STYLE_PLAIN, 0, "   and %" PRIu64 " more, %" PRIu64 " of them critical",
                   other_count, findings->other_counts[BP_SEVERITY_CRITICAL]);
    }
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
    for (size_t i = 0; i < facts->first.sample_count; i++) {
        double value = value_of(&facts->first.samples[i]);
        lowest = value >= 0 && (lowest < 0 || value < lowest) ? value : lowest;
        highest = value > highest ? value : highest;
    }
    if (highest < 0) {
        return;
    }
    (void)snprintf(range, sizeof range, "%.0f to %.0f %s", lowest, highest, unit);
    size_t count = columns_left(strlen("memory       ") + strlen(range));
    count = count < bar_max ? count : bar_max;
    count = count < facts->first.sample_count ? count : facts->first.sample_count;
    for (size_t i = 0; i < count; i++) {
        values[i] = -1;
    }
    for (size_t i = 0; count > 0 && i < facts->first.sample_count; i++) {
        double value = value_of(&facts->first.samples[i]);
        double *bar = &values[i * count / facts->first.sample_count];
        *bar = value > *bar ? value : *bar;
    }
    for (size_t i = 0, used = 0; i < count; i++) {
        double share = highest > 0 ? values[i] / highest : 0;
        const char *bar = bars[screen.has_utf8][values[i] < 0 ? 0 : (int)(share * 7 + 0.5)];
        used += (size_t)snprintf(row + used, sizeof row - used, "%s", values[i] < 0 ? " " : bar);
    }
    (void)printf("%-10s %s  %s\n", title, row, range);
}

static void print_metrics(const bp_facts *facts) {
    const bp_json_tree *heap = bp_json_tree_object(facts->document, "heap");
    bool has_use = bp_json_tree_is_true(facts->document, "has_use");
    bool has_heap = bp_json_tree_member(heap, "allocated_bytes") != NULL;
    if (!has_use && facts->first.sample_count == 0 && !has_heap) {
        return;
    }
    print_title(BP_SECTION_METRICS);
    if (!say(STYLE_PLAIN, 11, bp_json_tree_object(facts->document, "group"),
             "group      " BP_FILL_GROUP)) {
        (void)say(STYLE_PLAIN, 0, facts->document,
                  "{has_use:!}now        {[{has_rate:!}{process.cpu_percent:.1f} % of one CPU over "
                  "{process.sample_window_ms:.2t} s, ]}{[{process.rss_kb:k} resident, ]}"
                  "{process.thread_count:u} thread{process.thread_count:p}"
                  "{[, up {process.uptime_secs:.0f s}]}");
    }
    print_sparkline(facts, "CPU", "%", bp_sample_cpu);
    print_sparkline(facts, "memory", "MiB", bp_sample_memory);
    (void)say(STYLE_PLAIN, 0, heap,
              "heap       {allocated_bytes:b} allocated{[, resident {resident_bytes:b}]}, "
              "{allocator|}");
}

/* All frames of each thread, one a line. */
typedef struct stack_lines {
    const bp_facts *facts;
    bp_buffer line;
    size_t count, thread_count;
    const bp_json_tree *process; /* one whose title was not printed yet; NULL: it was */
} stack_lines;

/* A bp_frame_taker. */
static void print_frame(void *context, const bp_frame_text *frame) {
    stack_lines *lines = context;
    bp_buffer_clear(&lines->line);
    bp_frame_append_line(&lines->line, frame, lines->count++);
    print_line(STYLE_PLAIN, 0, "  %.*s", (int)strcspn(bp_buffer_text(&lines->line), "\n"),
               bp_buffer_text(&lines->line));
}

/* A bp_json_tree_taker. */
static bugpack_status print_stack(void *context, bp_json_tree *row, bugpack_error *error) {
    stack_lines *lines = context;
    (void)error;
    if (lines->thread_count++ == 0) {
        print_title(BP_SECTION_STACKS);
    }
    if (lines->process != NULL && bp_json_tree_object(lines->facts->document, "group") != NULL) {
        (void)say(STYLE_BOLD, 0, lines->process,
                  "process {pid:u|?} {[{title}]}{[{title:~}{name}]}");
    }
    lines->process = NULL;
    (void)say(STYLE_BOLD, 0, row, "{tid:7u|?} {name|}{[, {state}]}{[, {reason}]}");
    lines->count = 0;
    bp_frames_each(bp_json_tree_array(row, "frames"), &lines->facts->finder, print_frame, lines);
    lines->count = 0;
    if (bp_json_tree_rows(row, "python_frames") != NULL) {
        print_line(STYLE_PLAIN, 0, "  Python:");
        bp_frames_each_python(row, print_frame, lines);
        (void)say(STYLE_PLAIN, 2, row, "{python_reason}");
    }
    return lines->line.status;
}

/* Says nothing of a damaged entry, which is a finding. */
static void print_stacks(const bp_facts *facts) {
    static const bp_json_tree_list lists[] = {{"threads", print_stack, false}, {NULL, NULL, false}};
    stack_lines lines = {.facts = facts};
    bp_buffer_init(&lines.line, SIZE_MAX / 4);
    BP_JSON_EACH (process, bp_json_tree_rows(facts->document, "processes_of_interest")) {
        uint64_t byte_count;
        char entry[128];
        (void)snprintf(entry, sizeof entry, "%sstacks.json",
                       bp_json_tree_text_or(process, "folder", ""));
        if (bp_report_file_has(facts->report, entry, &byte_count) &&
            byte_count <= facts->left_bytes) {
            lines.process = process;
            (void)bp_report_file_each(facts->report, entry, lists, &lines, NULL, NULL);
        }
    }
    bp_buffer_release(&lines.line);
}

static void print_waits(const bp_facts *facts) {
    bool has_any = false;
    for (size_t i = 0; i < facts->waits.node_count; i++) {
        bp_buffer line;
        bp_buffer_init(&line, SIZE_MAX / 4);
        if (bp_waits_print(&facts->waits, i, &line)) {
            if (!has_any) {
                print_title(BP_SECTION_WAITS);
            }
            has_any = true;
            print_line(STYLE_PLAIN, 5, "   %s", bp_buffer_text(&line));
        }
        bp_buffer_release(&line);
    }
    if (facts->waits.is_cut) {
        print_line(STYLE_PLAIN, 0, "   and more");
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
    print_line(STYLE_PLAIN, 0, "  %s", text);
}

/* The last whole lines of a text log. */
static void print_tail(const bp_facts *facts) {
    const char *text = bp_buffer_text(&facts->first.log_tail),
               *end = text + facts->first.log_tail.size;
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

static void print_record(const bp_facts *facts, const bp_log_row *record) {
    char before[24] = "";
    if (record->wall_ns != 0 && facts->triggered_wall_ns != 0) {
        (void)snprintf(before, sizeof before, "%+.3f s",
                       ((double)record->wall_ns - (double)facts->triggered_wall_ns) / 1e9);
    }
    print_line(record->level == BUGPACK_LEVEL_WARN ? STYLE_YELLOW : STYLE_RED, 0,
               "%12s  %-5s %s%s%s", before, bp_level_name((uint8_t)record->level), record->channel,
               record->channel[0] != '\0' ? ": " : "", record->message);
}

static void print_log(const bp_facts *facts) {
    const bp_process_reader *first = &facts->first;
    bool has_output = bp_json_tree_rows(facts->document, "output") != NULL, has_any = false;
    for (uint64_t i = bp_reader_first_record(first); i < first->record_count; i++) {
        const bp_log_row *record = &first->records[i % BP_READER_RECORD_MAX];
        if (has_output && strcmp(record->channel, "stderr") == 0) {
            continue; /* it was shown as output */
        }
        if (!has_any) {
            print_heading("Newest warnings and errors, in seconds from the trigger",
                          "  [logs.jsonl]");
        }
        has_any = true;
        print_record(facts, record);
    }
    if (!has_any && facts->first.log_tail.size > 0) {
        char note[sizeof facts->first.log_name + 8];
        (void)snprintf(note, sizeof note, "  [%s]", facts->first.log_name);
        print_heading("End of the log", note);
        print_tail(facts);
    }
}

static void print_screen(const bp_facts *facts, bool is_all, bool has_findings) {
    /* Sections that are more than lines. */
    static void (*const own[BP_SECTION_COUNT])(const bp_facts *facts) = {
        [BP_SECTION_FINDINGS] = print_findings,
        [BP_SECTION_WAITS] = print_waits,
        [BP_SECTION_METRICS] = print_metrics,
        [BP_SECTION_LOG] = print_log};
    print_identity(facts);
    for (size_t i = 0; i < BP_SECTION_COUNT; i++) {
        if (i == BP_SECTION_FINDINGS && !has_findings) {
            continue;
        }
        if (own[i] != NULL) {
            own[i](facts);
        } else {
            print_lines(&bp_sections[i], facts->document, is_all);
        }
    }
    if (is_all) {
        print_stacks(facts);
    }
}

/* --- Markdown ----------------------------------------------------------------------------- */

static void put_backticks(size_t count) {
    for (size_t i = 0; i < count; i++) {
        (void)putchar('`');
    }
}

/* Prints a text of the report as code, in which an issue tracker interprets nothing: no markup, no
 * name of a person, no number of an issue. */
static void put_code(const char *text) {
    char safe[4 * BP_SENTENCE_BYTES];
    size_t longest = 0, run = 0;
    bp_cli_escape(text, safe, sizeof safe);
    for (const char *at = safe; *at != '\0'; at++) {
        run = *at == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    const char *blank = longest > 0 ? " " : ""; /* beside a backtick of the text */
    put_backticks(longest + 1);
    (void)printf("%s%s%s", blank, safe, blank);
    put_backticks(longest + 1);
}

static void put_findings(const bp_findings *findings) {
    uint64_t other_count = bp_findings_other_count(findings);
    for (size_t i = 0; i < findings->count; i++) {
        const char *next = bp_findings_next(findings, i);
        (void)printf("- **%s**: ", bp_severity_name(bp_finding_severity(&findings->rows[i])));
        put_code(findings->rows[i].sentence.text);
        if (next[0] != '\0') {
            (void)fputs("; next: ", stdout);
            put_code(next);
        }
        (void)putchar('\n');
    }
    if (findings->count == 0) {
        (void)puts("- no finding");
    } else if (other_count > 0) {
        (void)printf("- and %" PRIu64 " more\n", other_count);
    }
}

static void put_attached(const bp_facts *facts, const char *path) {
    const char *separator = ": ";
    (void)fputs("\nAttached: ", stdout);
    put_code(strcmp(path, "-") == 0 ? "the report" : bp_file_base_name(path));
    BP_JSON_EACH (line, bp_json_tree_rows(facts->manifest, "artefacts")) {
        const char *status = bp_json_tree_text_or(line, "status", "");
        if (strcmp(status, "ok") == 0 || strcmp(status, "truncated") == 0) {
            (void)fputs(separator, stdout);
            put_code(bp_json_tree_text_or(line, "name", "?"));
            separator = ", ";
        }
    }
    (void)putchar('\n');
}

/* For an issue tracker or a mail. Lines of the screen are shorter than the fence around them, so
 * that nothing in the report ends it. */
static void print_markdown(const bp_facts *facts, const char *path, bool is_all) {
    static const char fence[] = "````````````````````````````````````````"
                                "````````````````````````````````````````";
    const bp_json_tree *report = bp_json_tree_object(facts->document, "report");
    char title[256];
    (void)snprintf(title, sizeof title, "%s %s", bp_json_tree_text_or(report, "app", "a program"),
                   bp_json_tree_text_or(report, "version", ""));
    title[strcspn(title, "\n")] = '\0';
    (void)fputs("## ", stdout);
    put_code(title);
    (void)printf(": %s\n\n", bp_json_tree_text_or(facts->document, "kind", "report"));
    put_findings(&facts->findings);
    (void)printf("\n%stext\n", fence);
    screen.columns = sizeof fence - 2;
    screen.has_colour = false;
    screen.has_utf8 = true;
    print_screen(facts, is_all, false);
    (void)printf("%s\n", fence);
    put_attached(facts, path);
}

/* --- the command -------------------------------------------------------------------------- */

static bp_cli_exit show_facts(const char *path, const show_options *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_facts *facts = NULL;
    bugpack_status status =
        bp_facts_open(path, options->max_bytes, false, bp_frame_finder_new(NULL), &facts, &error);
    if (status == BUGPACK_OK && options->as_json) {
        bp_buffer text;
        bp_buffer_init(&text, SIZE_MAX / 4);
        status = bp_facts_print(facts, &text, &error);
        (void)fwrite(bp_buffer_text(&text), 1, text.size, stdout);
        bp_buffer_release(&text);
    } else if (status == BUGPACK_OK && options->as_markdown) {
        print_markdown(facts, path, options->is_all);
    } else if (status == BUGPACK_OK) {
        look_at_screen(&options->screen);
        if (!options->screen.has_no_pager) {
            bp_cli_pager_begin();
        }
        print_screen(facts, options->is_all, true);
        bp_cli_pager_end();
    }
    bp_facts_close(facts);
    return status == BUGPACK_OK ? bp_cli_finish_output() : bp_cli_say_failed(&error);
}

/* A bp_sink: escaped, except what lays out a text. */
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
    bool is_unsaid = status != BUGPACK_OK && result == BP_CLI_COMPLETE;
    return is_unsaid ? bp_cli_say_failed(&error) : result;
}

static const bp_cli_option option_rows[] = {
    BP_CLI_FLAG(show_options, as_json, 0, "json", "JSON instead of text"),
    BP_CLI_FLAG(show_options, as_markdown, 0, "markdown",
                "Markdown for an issue tracker or a mail"),
    BP_CLI_FLAG(show_options, is_all, 0, "all", "also every frame, and the threads of bugpack"),
    BP_CLI_SCREEN_OPTIONS(show_options, screen),
    BP_CLI_CONTENT_OPTION(show_options),
    BP_CLI_OPTIONS_END};

static const show_options defaults = {.max_bytes = BP_CLI_CONTENT_BYTES};

bp_cli_exit bp_cli_show_report(const char *path, const bp_cli_screen *wanted) {
    show_options options = defaults;
    options.screen = *wanted;
    return show_facts(path, &options);
}

bp_cli_exit bp_cli_show_markdown(const char *path) {
    show_options options = defaults;
    options.as_markdown = true;
    return show_facts(path, &options);
}

static bp_cli_exit run(void *context, char **operands) {
    const show_options *options = context;
    if (options->as_markdown && (options->as_json || operands[1] != NULL)) {
        return bp_cli_say_usage("--markdown is of the whole report, and excludes --json and ENTRY");
    }
    return operands[1] != NULL ? show_entry(operands[0], operands[1], options)
                               : show_facts(operands[0], options);
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
    .run = run,
    .options_bytes = sizeof(show_options),
    .defaults = &defaults,
    .needed = "a report"};
