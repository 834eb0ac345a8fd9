#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/sample.h>

#include "cli/option.h"
#include "cli/output.h"
#include "inspect/diff.h"

/*
 * Numbers of a report with the unit that their key has.
 */

/* Fits a 64-bit number with its sign and a point, a percentage, and two numbers. */
enum { cell_bytes = 64 };

typedef enum unit_kind { BYTES, SECONDS, SHARE, PLAIN } unit_kind;

/* How a path ends, or what is in it: the name of a limit is in brackets. */
static const struct {
    const char *part;
    bool is_end;
    unit_kind kind;
    double scale;
} units[] = {
    {"_kb", true, BYTES, 1024},     {"_bytes", true, BYTES, 1},   {"_chars", true, BYTES, 1},
    {"_ns", true, SECONDS, 1e-9},   {"_us", true, SECONDS, 1e-6}, {"_ms", true, SECONDS, 1e-3},
    {"_secs", true, SECONDS, 1},    {"_percent", true, SHARE, 1}, {" size].", false, BYTES, 1},
    {" memory].", false, BYTES, 1}, {" set].", false, BYTES, 1},  {" space].", false, BYTES, 1}};

static bool has_part(const char *path, size_t index) {
    size_t length = strlen(path), part_bytes = strlen(units[index].part);
    return units[index].is_end
               ? length >= part_bytes && strcmp(path + length - part_bytes, units[index].part) == 0
               : strncmp(path, "limits[", 7) == 0 && strstr(path, units[index].part) != NULL;
}

static void format_plain(uint64_t value, unsigned decimals, char out[cell_bytes]) {
    uint64_t scale = 1;
    for (unsigned i = 0; i < decimals; i++) {
        scale *= 10;
    }
    int length = snprintf(out, cell_bytes, "%" PRIu64, value / scale);
    if (decimals > 0) {
        (void)snprintf(out + length, cell_bytes - (size_t)length, ".%0*" PRIu64, (int)decimals,
                       value % scale);
    }
}

/*
 * "4.3 MiB" for 4408 of "process.rss_kb", "1.500 s" for 1500 of "uptime_ms"; a number by itself
 * where the path of its member names no unit, and with `is_raw`. The last `decimals` (at most 9)
 * digits of the value are behind its point. Returns `out`.
 */
static const char *format_amount(const char *path, uint64_t value, unsigned decimals, bool is_raw,
                                 char out[cell_bytes]) {
    unit_kind kind = PLAIN;
    double amount = (double)value;
    for (unsigned i = 0; i < decimals; i++) {
        amount /= 10;
    }
    for (size_t i = 0; kind == PLAIN && !is_raw && i < sizeof units / sizeof units[0]; i++) {
        if (has_part(path, i)) {
            kind = units[i].kind;
            amount *= units[i].scale;
        }
    }
    if (kind == BYTES && amount < 18e18) {
        char text[BP_CLI_BYTES_BYTES];
        (void)snprintf(out, cell_bytes, "%s", bp_cli_format_bytes((uint64_t)amount, text));
    } else if (kind == SECONDS) {
        static const struct {
            double scale;
            const char *name;
        } units_of_time[] = {{1, "s"}, {1e3, "ms"}, {1e6, "us"}};
        size_t unit = amount >= 1 ? 0 : 1;
        unit += amount > 0 && amount < 1e-3;
        (void)snprintf(out, cell_bytes, "%.3f %s", amount * units_of_time[unit].scale,
                       units_of_time[unit].name);
    } else {
        format_plain(value, decimals, out);
        if (kind == SHARE) {
            size_t length = strlen(out);
            (void)snprintf(out + length, cell_bytes - length, " %%");
        }
    }
    return out;
}

/* Likewise, with its sign; of two percentages in points. */
static void format_delta(const char *path, int64_t delta, unsigned decimals, bool is_raw,
                         char out[cell_bytes]) {
    static const char percent[] = " %", points[] = " points";
    char amount[cell_bytes];
    uint64_t size = delta < 0 ? (uint64_t) - (delta + 1) + 1 : (uint64_t)delta;
    char *end = strstr(format_amount(path, size, decimals, is_raw, amount), percent);
    if (end != NULL) {
        *end = '\0';
    }
    const char *sign = size > 0 ? "+" : "";
    (void)snprintf(out, cell_bytes, "%s%.50s%s", delta < 0 ? "-" : sign, amount,
                   end != NULL ? points : "");
}

/*
 * A comparison of two reports as text.
 */

/* The columns of a table. The last ones are of captures of the machine. */
enum {
    BEFORE,
    AFTER,
    DELTA,
    PERCENT,
    CHANGE_COLUMNS,
    THREADS = CHANGE_COLUMNS,
    ENDED,
    BORN,
    NOT_COMPARED,
    COLUMNS
};

/* A line of a table: numbers, aligned to the right, before the name, which may be any text. */
typedef struct line {
    char cells[COLUMNS][cell_bytes]; /* a column that is "" in all lines is not printed */
    const char *name;
} line;

static void print_escaped(const char *text) {
    char escaped[1024];
    bp_cli_escape(text, escaped, sizeof escaped);
    (void)fputs(escaped, stdout);
}

static void print_title(const char *title, bool emphasis) {
    (void)printf("\n%s%s%s\n", emphasis ? "\033[1m" : "", title, emphasis ? "\033[0m" : "");
}

static line make_line(const char *name, const bp_change *change, unsigned decimals, bool is_raw) {
    line made = {.cells = {"(unknown)", "(unknown)", "-", "-"}, .name = name};
    if (change->is_known_before) {
        (void)format_amount(name, change->before, decimals, is_raw, made.cells[0]);
    }
    if (change->is_known_after) {
        (void)format_amount(name, change->after, decimals, is_raw, made.cells[1]);
    }
    if (change->has_delta) {
        format_delta(name, change->delta, decimals, is_raw, made.cells[2]);
    }
    if (change->has_percent) {
        (void)snprintf(made.cells[3], cell_bytes, "%+.2f %%", change->percent);
    }
    return made;
}

/* Widens the columns for a line. */
static void measure(const line *made, int widths[COLUMNS]) {
    for (size_t i = 0; i < COLUMNS; i++) {
        int width = (int)strlen(made->cells[i]);
        widths[i] = width > widths[i] ? width : widths[i];
    }
}

static void print_line(const line *made, const int widths[COLUMNS]) {
    for (size_t i = 0; i < COLUMNS; i++) {
        if (widths[i] > 0) {
            (void)printf("  %*s", widths[i], made->cells[i]);
        }
    }
    (void)fputs("  ", stdout);
    print_escaped(made->name);
    (void)fputc('\n', stdout);
}

typedef line line_maker(const void *rows, size_t index, bool is_raw);

/* Prints a table of lines that have a name, at most `limit`, below `heading`. Returns how many
 * there are. A column of the heading appears if a line has something in it. */
static size_t print_table(const void *rows, const line *heading, size_t count, size_t limit,
                          bool is_raw, line_maker *make_line_of) {
    int widths[COLUMNS] = {0};
    size_t named_count = 0;
    for (size_t i = 0; i < count; i++) {
        line made = make_line_of(rows, i, is_raw);
        if (made.name != NULL && named_count++ < limit) {
            measure(&made, widths);
        }
    }
    for (size_t i = 0; i < COLUMNS; i++) {
        int width = (int)strlen(heading->cells[i]);
        widths[i] = widths[i] > 0 && width > widths[i] ? width : widths[i];
    }
    size_t left_count = named_count < limit ? named_count : limit;
    if (left_count > 0) {
        print_line(heading, widths);
    }
    for (size_t i = 0; left_count > 0; i++) {
        line made = make_line_of(rows, i, is_raw);
        if (made.name != NULL) {
            print_line(&made, widths);
            left_count--;
        }
    }
    return named_count;
}

/* The value of threads that are on one side alone, and their number. */
static void write_rest(char out[cell_bytes], const bp_machine_rest *rest) {
    if (rest->measured_count > 0) {
        (void)snprintf(out, cell_bytes, "%" PRIu64 " (%" PRIu64 ")", rest->value, rest->count);
    }
}

/* Without a name if nothing changed. */
static line make_host_line(const void *host, size_t index, bool is_raw) {
    const bp_machine_row *row = &((const bp_machine_diff *)host)->rows[index];
    const char *name = row->name[0] != '\0' ? row->name : "(unknown)";
    line made = make_line(name, &row->change, 0, is_raw);
    made.name = bp_machine_row_is_changed(row) ? name : NULL;
    for (size_t i = BEFORE; i <= AFTER && row->threads_in_both == 0; i++) {
        (void)snprintf(made.cells[i], cell_bytes, "-");
    }
    (void)snprintf(made.cells[THREADS], cell_bytes, "%" PRIu64, row->threads_in_both);
    write_rest(made.cells[ENDED], &row->ended);
    write_rest(made.cells[BORN], &row->born);
    if (row->not_compared_count > 0) {
        (void)snprintf(made.cells[NOT_COMPARED], cell_bytes, "%" PRIu64, row->not_compared_count);
    }
    return made;
}

#define REST_HEADINGS "threads in both", "ended (threads)", "born (threads)", "threads not compared"
static const line sums = {.cells = {"sum before", "sum after", "delta", "percent", REST_HEADINGS}};
static const line maxima = {
    .cells = {"max before", "max after", "delta", "percent", REST_HEADINGS}};

static void print_host(const bp_diff_counter *counter, bp_machine_key by, size_t limit,
                       bool emphasis) {
    char title[128];
    const bp_machine_diff *host = &counter->host;
    const char *key = bp_diff_key_name(by);
    line heading = host->is_maximum ? maxima : sums;
    size_t unknown_count = 0;
    heading.name = key;
    for (size_t i = 0; i < host->row_count; i++) {
        unknown_count += bp_machine_row_is_unknown(&host->rows[i]);
    }
    (void)snprintf(title, sizeof title, "%s by %s", counter->name, key);
    print_title(title, emphasis);
    size_t changed_count =
        print_table(host, &heading, host->row_count, limit, true, make_host_line);
    (void)fputs("  (", stdout);
    if (unknown_count > 0) {
        (void)printf("%zu not measured, ", unknown_count);
    }
    (void)printf("%zu did not change", host->row_count - changed_count - unknown_count);
    if (changed_count > limit) {
        (void)printf(", %zu more did", changed_count - limit);
    }
    (void)fputs(")\n", stdout);
}

/* Without a name if nothing changed. */
static line make_figure_line(const void *figures, size_t index, bool is_raw) {
    const bp_diff_figure *figure = &((const bp_diff_figure *)figures)[index];
    const bp_change *change = &figure->change;
    bool is_same =
        change->is_known_before == change->is_known_after && change->before == change->after;
    line made = make_line(figure->key, change, figure->decimals, is_raw);
    made.name = is_same ? NULL : figure->key;
    return made;
}

static void print_metrics(const bp_diff *diff, bool emphasis, bool is_raw) {
    const line heading = {.cells = {"before", "after", "delta", "percent"}, .name = "process"};
    print_title("runtime-metrics.json", emphasis);
    if (print_table(diff->figures, &heading, BP_DIFF_FIGURE_COUNT, SIZE_MAX, is_raw,
                    make_figure_line) == 0) {
        (void)fputs("(no change)\n", stdout);
    }
}

/* `alone`: the lines are all the output, so that it is empty for equal states. */
static bool print_heap(const bp_diff *diff, bool alone, bool emphasis) {
    char *text = NULL;
    if (bugpack_heap_state_diff(&diff->heap_before, &diff->heap_after, &text, NULL) != BUGPACK_OK) {
        return false;
    }
    if (!alone) {
        print_title("heap-state.json", emphasis);
    }
    (void)fputs(alone || text[0] != '\0' ? text : "(no change)\n", stdout);
    bugpack_free(text);
    return true;
}

static void print_side(const char *title, const bp_diff_side *side) {
    const char *const facts[] = {side->facts.timestamp, side->facts.app_name};
    (void)printf("%s  ", title);
    print_escaped(side->path);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if (facts[i][0] != '\0') {
            (void)fputs("  ", stdout);
            print_escaped(facts[i]);
        }
    }
    (void)fputc('\n', stdout);
}

/* What two reports are of. */
static void print_relation(const bp_diff_relation *relation) {
    static const char *const words[] = {[BP_SAME_YES] = "same", [BP_SAME_NO] = "another"};
    const struct {
        const char *what;
        bp_diff_same same;
    } rows[] = {
        {"program", relation->program}, {"build", relation->build}, {"session", relation->session}};
    const char *before = "";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].same != BP_SAME_UNKNOWN) {
            (void)printf("%s%s %s", before, words[rows[i].same], rows[i].what);
            before = ", ";
        }
    }
    (void)fputs(before[0] != '\0' ? "\n" : "", stdout);
}

/* A value as JSON, or "" with what happened to it. */
static void print_value(const char *text) {
    enum { shown_bytes = 300 };
    char cut[shown_bytes + 8];
    (void)snprintf(cut, sizeof cut, "%.*s%s", shown_bytes, text,
                   strlen(text) > shown_bytes ? "..." : "");
    print_escaped(cut);
}

static void print_change(const bp_json_difference *row, const char *texts, bool is_raw) {
    const char *path = texts + row->path;
    (void)fputs("  ", stdout);
    print_escaped(path[0] != '\0' ? path : "the entry");
    (void)fputs(": ", stdout);
    if (row->is_redacted) {
        (void)fputs("redacted on both sides", stdout);
    } else if (row->is_number) {
        line made = make_line(path, &row->change, row->decimals, is_raw);
        (void)printf("%s \u2192 %s (%s)", made.cells[BEFORE], made.cells[AFTER], made.cells[DELTA]);
    } else if (row->has_before && row->has_after) {
        print_value(texts + row->before);
        (void)fputs(" \u2192 ", stdout);
        print_value(texts + row->after);
    } else {
        (void)fputs(row->has_before ? "gone, was " : "new, ", stdout);
        print_value(texts + (row->has_before ? row->before : row->after));
    }
    (void)fputc('\n', stdout);
}

/* The members that differ, by document. */
static void print_changes(const bp_diff *diff, size_t limit, bool emphasis, bool is_raw) {
    const bp_json_differences *list = &diff->changes;
    size_t shown = 0;
    for (size_t i = 0; i < list->count; i++) {
        const bp_json_difference *row = &list->rows[i];
        bool is_first = i == 0 || strcmp(list->rows[i - 1].entry, row->entry) != 0;
        bool is_last = i + 1 == list->count || strcmp(list->rows[i + 1].entry, row->entry) != 0;
        shown = is_first ? 1 : shown + 1;
        if (is_first) {
            print_title(row->entry, emphasis);
        }
        if (shown <= limit) {
            print_change(row, bp_buffer_text(&list->texts), is_raw);
        }
        if (is_last && shown > limit) {
            (void)printf("  (%zu more)\n", shown - limit);
        }
    }
    if (list->is_cut) {
        (void)printf("\n(and more than the first %d)\n", BP_JSON_DIFFERENCE_MAX);
    }
}

/*
 * Prints what changed to standard output, at most `limit` groups of a capture, and members of a
 * document. `emphasis`: headings are bold. `is_raw`: numbers are as in the documents, without
 * units. False without memory.
 */
static bool print_diff(const bp_diff *diff, size_t limit, bool emphasis, bool is_raw) {
    if (diff->has_heap && !diff->has_host && !diff->has_metrics && diff->changes.count == 0) {
        return print_heap(diff, true, emphasis);
    }
    print_side("before", &diff->before);
    print_side("after ", &diff->after);
    print_relation(&diff->relation);
    for (size_t i = 0; i < diff->counter_count; i++) {
        if (diff->counters[i].is_compared) {
            print_host(&diff->counters[i], diff->key, limit, emphasis);
        }
    }
    if (diff->has_metrics) {
        print_metrics(diff, emphasis, is_raw);
    }
    print_changes(diff, limit, emphasis, is_raw);
    return !diff->has_heap || print_heap(diff, false, emphasis);
}

typedef struct diff_options {
    bp_machine_key key;
    const char *counter; /* NULL: not given */
    uint32_t limit;
    bool as_json, is_raw;
} diff_options;

/* As of diff(1), and not as of the other commands. */
static const bp_cli_exit is_equal = BP_CLI_COMPLETE, is_different = BP_CLI_FAILED,
                         is_trouble = BP_CLI_USAGE;

static const char default_counter[] = "schedstat.run_ns";

static void say_absent(const bp_diff_side *side, bp_diff_artefact artefact) {
    const bp_diff_presence *presence = &side->presence[artefact];
    if (presence->lacks_counter) {
        bp_cli_say("\"%s\": %s", side->path, presence->reason);
    } else {
        bp_cli_say("no %s to compare in \"%s\"%s%s", bp_diff_artefact_name(artefact), side->path,
                   presence->reason[0] != '\0' ? ": " : "", presence->reason);
    }
}

/* Names what only one side has, and why the other has none. */
static void say_absences(const bp_diff *diff) {
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT; i++) {
        const bp_diff_presence *before = &diff->before.presence[i];
        const bp_diff_presence *after = &diff->after.presence[i];
        if (!before->is_there && (after->is_there || before->reason[0] != '\0')) {
            say_absent(&diff->before, (bp_diff_artefact)i);
        }
        if (!after->is_there && (before->is_there || after->reason[0] != '\0')) {
            say_absent(&diff->after, (bp_diff_artefact)i);
        }
    }
}

static bool print_json(const bp_diff *diff, size_t limit) {
    char *text = NULL;
    size_t text_bytes = 0;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_diff_json(diff, limit, &text, &text_bytes, &error) != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return false;
    }
    (void)fwrite(text, 1, text_bytes, stdout);
    free(text);
    return true;
}

/* Whether there is what was asked for; if not, the reason was said. */
static bool has_what_was_asked(const bp_diff *diff, const diff_options *options) {
    say_absences(diff);
    if (options->counter != NULL && !diff->has_host) {
        bool is_unmeasured = diff->before.presence[BP_DIFF_HOST].lacks_counter ||
                             diff->after.presence[BP_DIFF_HOST].lacks_counter;
        bp_cli_say("cannot compare %s", is_unmeasured ? diff->counters[0].name : options->counter);
        return false;
    }
    if (!diff->has_any && !diff->before.presence[BP_DIFF_HOST].lacks_counter &&
        !diff->after.presence[BP_DIFF_HOST].lacks_counter) {
        bp_cli_say("nothing to compare: \"%s\" and \"%s\" have nothing in common",
                   diff->before.path, diff->after.path);
    }
    return diff->has_any;
}

/* What limits the comparison of two captures. */
static void say_limits(const bp_diff *diff) {
    const bp_machine_diff *host = &diff->counters[0].host;
    const struct {
        const char *path;
        bool is_complete;
    } sides[] = {{diff->before.path, host->is_complete_before},
                 {diff->after.path, host->is_complete_after}};
    if (!host->is_same_boot) {
        bp_cli_say("\"%s\" and \"%s\" are not of one boot of a machine: no thread is in both",
                   diff->before.path, diff->after.path);
    }
    for (size_t i = 0; i < 2; i++) {
        if (!sides[i].is_complete) {
            bp_cli_say(
                "the capture of \"%s\" missed threads: what is only in the other is not compared",
                sides[i].path);
        }
    }
}

/* What should be known before the figures are read. */
static void say_relation(const bp_diff *diff) {
    if (diff->relation.program == BP_SAME_NO) {
        bp_cli_say("\"%s\" and \"%s\" are of different programs: %s and %s", diff->before.path,
                   diff->after.path, diff->before.facts.app_name, diff->after.facts.app_name);
    }
    if (strcmp(diff->before.facts.timestamp, diff->after.facts.timestamp) > 0 &&
        diff->after.facts.timestamp[0] != '\0') {
        bp_cli_say("\"%s\" is older than \"%s\"", diff->after.path, diff->before.path);
    }
    for (size_t i = 1; diff->has_host && i < diff->counter_count; i++) {
        if (!diff->counters[i].is_compared) {
            bp_cli_say("%s was not measured on both sides", diff->counters[i].name);
        }
    }
}

static bp_cli_exit show(const bp_diff *diff, const diff_options *options) {
    bool emphasis = bp_cli_is_terminal(STDOUT_FILENO) && bp_cli_wants_colour();
    if (!has_what_was_asked(diff, options)) {
        return is_trouble;
    }
    if (diff->has_host) {
        say_limits(diff);
    }
    say_relation(diff);
    bool is_printed = options->as_json
                          ? print_json(diff, options->limit)
                          : print_diff(diff, options->limit, emphasis, options->is_raw);
    if (bp_cli_finish_output() != BP_CLI_COMPLETE || !is_printed) {
        return is_trouble;
    }
    return bp_diff_is_equal(diff) ? is_equal : is_different;
}

static bp_cli_exit compare(char **paths, const diff_options *options) {
    bp_diff diff;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_diff_compute(
        paths[0], paths[1], options->key,
        options->counter != NULL ? options->counter : default_counter, &diff, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return is_trouble;
    }
    bp_cli_exit result = show(&diff, options);
    bp_diff_release(&diff);
    return result;
}

static bool read_key(const bp_cli_option *option, const char *text, void *field) {
    static const bp_machine_key keys[] = {BP_MACHINE_BY_PROCESS, BP_MACHINE_BY_CGROUP,
                                          BP_MACHINE_BY_THREAD};
    enum { key_count = sizeof keys / sizeof keys[0] };
    const char *names[key_count + 1] = {NULL};
    size_t index;
    for (size_t i = 0; i < key_count; i++) {
        names[i] = bp_diff_key_name(keys[i]);
    }
    if (!bp_cli_find_choice(option, text, names, &index)) {
        return false;
    }
    *(bp_machine_key *)field = keys[index];
    return true;
}

/* Of a table that it fills: a name that was returned is needed until the last one. */
static const char *name_of_counter(const void *context, size_t index) {
    static char names[BP_MACHINE_COUNTER_COUNT][48];
    (void)context;
    return bp_machine_diff_name_counter(index, names[index < BP_MACHINE_COUNTER_COUNT ? index : 0],
                                        sizeof names[0])
               ? names[index]
               : NULL;
}

/* Names with commas between them. */
static bool read_counter(const bp_cli_option *option, const char *text, void *field) {
    char suggestion[BP_CLI_SUGGESTION_BYTES], name[64];
    size_t count = 0, length = 0;
    for (const char *at = text; count == 0 || at[-1] == ','; at += length + 1, count++) {
        length = strcspn(at, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (!bp_machine_diff_has_counter(name)) {
            bp_cli_say_usage("there is no counter '%s'%s", name,
                             bp_cli_suggest(name, "", name_of_counter, NULL, suggestion));
            return false;
        }
    }
    if (count > BP_DIFF_COUNTER_MAX) {
        bp_cli_say_usage("--counter takes at most %d counters", BP_DIFF_COUNTER_MAX);
        return false;
    }
    return bp_cli_read_text(option, text, field);
}

static const bp_cli_bounds limits = {"a number", 1, UINT32_MAX, 1};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(diff_options, key, 0, "by", "KEY",
                 "group threads by process (the default), cgroup or thread", read_key, NULL),
    BP_CLI_VALUE(diff_options, counter, 0, "counter", "NAMES",
                 "what to compare of two captures of the machine, with\n"
                 "commas between them (default schedstat.run_ns: CPU\n"
                 "time in nanoseconds)",
                 read_counter, NULL),
    BP_CLI_VALUE(diff_options, limit, 0, "limit", "N", "show only the N largest changes",
                 bp_cli_read_number, &limits),
    BP_CLI_FLAG(diff_options, is_raw, 0, "bytes", "numbers as in the reports, without units"),
    BP_CLI_FLAG(diff_options, as_json, 0, "json", "JSON instead of text"),
    BP_CLI_OPTIONS_END};

static bp_cli_exit run(int argument_count, char **arguments) {
    diff_options options = {.limit = UINT32_MAX};
    char **paths;
    bp_cli_exit result;
    if (!bp_cli_read_options(&bp_cli_diff_command, argument_count, arguments, &options, &paths,
                             &result)) {
        return result;
    }
    if (paths[0] == NULL || paths[1] == NULL) {
        return bp_cli_say_usage("two files are needed, BEFORE and AFTER");
    }
    return compare(paths, &options);
}

const bp_cli_command bp_cli_diff_command = {
    "diff",
    "show what changed from one report to another",
    "Usage: bugpack diff [OPTION]... BEFORE AFTER\n"
    "\n"
    "Show what changed from one report to another: of two captures of the machine\n"
    "what each process name, cgroup or thread name cost; of two reports about a\n"
    "process what it cost, its threads, limits, loaded objects and gaps, how its\n"
    "heap stood, and what it said of itself. Each file is a report, or a\n"
    "host-threads.json, runtime-metrics.json or heap-state.json by itself; one of\n"
    "them may be -, for standard input.\n",
    option_rows,
    "Counters:\n"
    "  stat.user_cpu_ns stat.system_cpu_ns stat.minor_faults stat.major_faults\n"
    "  stat.block_io_delay_ns\n"
    "  schedstat.run_ns schedstat.run_delay_ns schedstat.timeslices\n"
    "  status.voluntary_switches status.involuntary_switches\n"
    "  io.read_chars io.written_chars io.read_calls io.write_calls io.read_bytes\n"
    "  io.written_bytes io.cancelled_bytes\n"
    "  sched.exec_runtime_ns sched.switches sched.migrations\n"
    "  wakeups.wakeups wakeups.sync wakeups.migrate wakeups.local wakeups.remote\n"
    "  wakeups.affine wakeups.affine_attempts\n"
    "  waits.wait_sum_ns waits.wait_max_ns waits.wait_count waits.sleep_sum_ns\n"
    "  waits.sleep_max_ns waits.iowait_sum_ns waits.iowait_count\n"
    "  blocks.block_sum_ns blocks.block_max_ns\n"
    "  smaps_rollup.rss_kb smaps_rollup.pss_kb smaps_rollup.shared_clean_kb\n"
    "  smaps_rollup.shared_dirty_kb smaps_rollup.private_clean_kb\n"
    "  smaps_rollup.private_dirty_kb smaps_rollup.referenced_kb\n"
    "  smaps_rollup.anonymous_kb smaps_rollup.anonymous_huge_kb\n"
    "  smaps_rollup.swap_kb smaps_rollup.swap_pss_kb smaps_rollup.locked_kb\n"
    "  heap.allocated_bytes heap.deallocated_bytes\n"
    "\n"
    "Exit status: 0 equal, 1 different, 2 trouble: a file that cannot be read, or\n"
    "nothing to compare, or not that counter, or a wrong command line.\n",
    2,
    run};
