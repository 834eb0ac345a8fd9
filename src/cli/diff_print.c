#include "cli/diff_print.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/sample.h>

#include "cli/output.h"

/* Fits a 64-bit number with its sign and a point, a percentage, and two numbers. */
enum { cell_bytes = 64 };

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

/* A number whose last `decimals` digits are after the point. */
static void write_fixed(char out[cell_bytes], const char *sign, uint64_t value, unsigned decimals) {
    uint64_t scale = 1;
    for (unsigned i = 0; i < decimals; i++) {
        scale *= 10;
    }
    int length = snprintf(out, cell_bytes, "%s%" PRIu64, sign, value / scale);
    if (decimals > 0) {
        (void)snprintf(out + length, cell_bytes - (size_t)length, ".%0*" PRIu64, (int)decimals,
                       value % scale);
    }
}

static line make_line(const char *name, const bp_change *change, unsigned decimals) {
    line made = {.cells = {"(unknown)", "(unknown)", "-", "-"}, .name = name};
    if (change->is_known_before) {
        write_fixed(made.cells[0], "", change->before, decimals);
    }
    if (change->is_known_after) {
        write_fixed(made.cells[1], "", change->after, decimals);
    }
    if (change->has_delta) {
        bool is_less = change->delta < 0;
        uint64_t size = is_less ? (uint64_t) - (change->delta + 1) + 1 : (uint64_t)change->delta;
        write_fixed(made.cells[2], is_less ? "-" : size > 0 ? "+" : "", size, decimals);
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
    line made = make_line(bp_host_row_is_changed(row) ? name : NULL, &row->change, 0);
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
static line make_figure_line(const bp_diff *diff, size_t index) {
    const bp_diff_figure *figure = &diff->figures[index];
    const bp_change *change = &figure->change;
    bool is_same =
        change->is_known_before == change->is_known_after && change->before == change->after;
    return make_line(is_same ? NULL : figure->key, change, figure->decimals);
}

static void print_metrics(const bp_diff *diff, bool emphasis) {
    const line heading = {.cells = {"before", "after", "delta", "percent"}, .name = "process"};
    print_title("runtime-metrics.json", emphasis);
    if (print_table(diff, &heading, BP_DIFF_FIGURE_COUNT, SIZE_MAX, make_figure_line) == 0) {
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

bool bp_cli_print_diff(const bp_diff *diff, size_t limit, bool emphasis) {
    if (diff->has_heap && !diff->has_host && !diff->has_metrics) {
        return print_heap(diff, true, emphasis);
    }
    print_side("before", &diff->before);
    print_side("after ", &diff->after);
    if (diff->has_host) {
        print_host(diff, limit, emphasis);
    }
    if (diff->has_metrics) {
        print_metrics(diff, emphasis);
    }
    return !diff->has_heap || print_heap(diff, false, emphasis);
}
