#include "cli/diff_print.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/sample.h>

#include "cli/diff_unit.h"
#include "cli/output.h"

/* Fits a 64-bit number with its sign and a point, a percentage, and two numbers. */
enum { cell_bytes = BP_CLI_AMOUNT_BYTES };

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
        (void)bp_cli_format_amount(name, change->before, decimals, is_raw, made.cells[0]);
    }
    if (change->is_known_after) {
        (void)bp_cli_format_amount(name, change->after, decimals, is_raw, made.cells[1]);
    }
    if (change->has_delta) {
        bp_cli_format_delta(name, change->delta, decimals, is_raw, made.cells[2]);
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

/* Prints a table of lines that have a name, at most `limit`, below `heading`. Returns how many
 * there are. A column of the heading appears if a line has something in it. */
static size_t print_table(const bp_diff *diff, const line *heading, size_t count, size_t limit,
                          line (*make_line_of)(const bp_diff *diff, size_t index)) {
    int widths[COLUMNS] = {0};
    size_t named_count = 0;
    for (size_t i = 0; i < count; i++) {
        line made = make_line_of(diff, i);
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
        line made = make_line_of(diff, i);
        if (made.name != NULL) {
            print_line(&made, widths);
            left_count--;
        }
    }
    return named_count;
}

/* The value of threads that are on one side alone, and their number. */
static void write_rest(char out[cell_bytes], const bp_host_rest *rest) {
    if (rest->measured_count > 0) {
        (void)snprintf(out, cell_bytes, "%" PRIu64 " (%" PRIu64 ")", rest->value, rest->count);
    }
}

/* Without a name if nothing changed. */
static line make_host_line(const bp_diff *diff, size_t index) {
    const bp_host_row *row = &diff->host.rows[index];
    const char *name = row->name[0] != '\0' ? row->name : "(unknown)";
    line made = make_line(name, &row->change, 0, true);
    made.name = bp_host_row_is_changed(row) ? name : NULL;
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

static void print_host(const bp_diff *diff, size_t limit, bool emphasis) {
    char title[128];
    const bp_host_diff *host = &diff->host;
    const char *key = bp_diff_key_name(diff->key);
    line heading = host->is_maximum ? maxima : sums;
    size_t unknown_count = 0;
    heading.name = key;
    for (size_t i = 0; i < host->row_count; i++) {
        unknown_count += bp_host_row_is_unknown(&host->rows[i]);
    }
    (void)snprintf(title, sizeof title, "%s by %s", diff->counter, key);
    print_title(title, emphasis);
    size_t changed_count = print_table(diff, &heading, host->row_count, limit, make_host_line);
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
static line make_figure_line_as(const bp_diff *diff, size_t index, bool is_raw) {
    const bp_diff_figure *figure = &diff->figures[index];
    const bp_change *change = &figure->change;
    bool is_same =
        change->is_known_before == change->is_known_after && change->before == change->after;
    line made = make_line(figure->key, change, figure->decimals, is_raw);
    made.name = is_same ? NULL : figure->key;
    return made;
}

static line make_figure_line(const bp_diff *diff, size_t index) {
    return make_figure_line_as(diff, index, false);
}

static line make_raw_figure_line(const bp_diff *diff, size_t index) {
    return make_figure_line_as(diff, index, true);
}

static void print_metrics(const bp_diff *diff, bool emphasis, bool is_raw) {
    const line heading = {.cells = {"before", "after", "delta", "percent"}, .name = "process"};
    print_title("runtime-metrics.json", emphasis);
    if (print_table(diff, &heading, BP_DIFF_FIGURE_COUNT, SIZE_MAX,
                    is_raw ? make_raw_figure_line : make_figure_line) == 0) {
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

bool bp_cli_print_diff(const bp_diff *diff, size_t limit, bool emphasis, bool is_raw) {
    if (diff->has_heap && !diff->has_host && !diff->has_metrics && diff->changes.count == 0) {
        return print_heap(diff, true, emphasis);
    }
    print_side("before", &diff->before);
    print_side("after ", &diff->after);
    print_relation(&diff->relation);
    if (diff->has_host) {
        print_host(diff, limit, emphasis);
    }
    for (size_t i = 0; i < diff->further_count; i++) {
        if (diff->further[i].is_compared) {
            bp_diff other = bp_diff_with_counter(diff, i);
            print_host(&other, limit, emphasis);
        }
    }
    if (diff->has_metrics) {
        print_metrics(diff, emphasis, is_raw);
    }
    print_changes(diff, limit, emphasis, is_raw);
    return !diff->has_heap || print_heap(diff, false, emphasis);
}
