#include "cli/diff_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/sample.h>

#include "cli/output.h"

/* Room for a 64-bit number with its sign and a point, and for a percentage. */
enum { cell_bytes = 48, column_count = 4 };

/* A line of a table: numbers to the right, in front of the name, which may hold anything. */
typedef struct line {
    char cells[column_count][cell_bytes];
    const char *name;
} line;

static const char *const titles[column_count] = {"before", "after", "delta", "percent"};

static void print_escaped(const char *text) {
    char escaped[1024];
    bp_cli_escape(text, escaped, sizeof escaped);
    (void)fputs(escaped, stdout);
}

static void print_title(const char *title, bool emphasis) {
    (void)printf("%s%s%s\n", emphasis ? "\033[1m" : "", title, emphasis ? "\033[0m" : "");
}

/* A number whose last `decimals` digits are behind the point. */
static void write_fixed(char out[cell_bytes], const char *sign, uint64_t value, unsigned decimals) {
    uint64_t scale = 1;
    for (unsigned i = 0; i < decimals; i++) {
        scale *= 10;
    }
    if (decimals == 0) {
        (void)snprintf(out, cell_bytes, "%s%" PRIu64, sign, value);
    } else {
        (void)snprintf(out, cell_bytes, "%s%" PRIu64 ".%0*" PRIu64, sign, value / scale,
                       (int)decimals, value % scale);
    }
}

static void write_value(char out[cell_bytes], bool is_known, uint64_t value, unsigned decimals) {
    if (is_known) {
        write_fixed(out, "", value, decimals);
    } else {
        (void)snprintf(out, cell_bytes, "(unknown)");
    }
}

static line make_line(const char *name, const bp_change *change, unsigned decimals) {
    line made = {.name = name};
    write_value(made.cells[0], change->is_known_before, change->before, decimals);
    write_value(made.cells[1], change->is_known_after, change->after, decimals);
    (void)snprintf(made.cells[2], cell_bytes, "-");
    (void)snprintf(made.cells[3], cell_bytes, "-");
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
static void measure(const line *made, int widths[column_count]) {
    for (size_t i = 0; i < column_count; i++) {
        int width = (int)strlen(made->cells[i]);
        widths[i] = width > widths[i] ? width : widths[i];
    }
}

static void print_line(const line *made, const int widths[column_count]) {
    for (size_t i = 0; i < column_count; i++) {
        (void)printf("  %*s", widths[i], made->cells[i]);
    }
    (void)fputs("  ", stdout);
    print_escaped(made->name);
    (void)fputc('\n', stdout);
}

static line make_heading(const char *what, int widths[column_count]) {
    line made = {.name = what};
    for (size_t i = 0; i < column_count; i++) {
        (void)snprintf(made.cells[i], cell_bytes, "%s", titles[i]);
        widths[i] = 0;
    }
    measure(&made, widths);
    return made;
}

static bool is_changed(const bp_change *change) {
    return !change->has_delta || change->delta != 0;
}

static line make_row(const bp_host_row *row) {
    return make_line(row->name[0] != '\0' ? row->name : "(unknown)", &row->change, 0);
}

/* Those that changed come first, and are all that is shown; then those of which it is not known. */
static void print_host(const bp_diff *diff, size_t limit, bool emphasis) {
    int widths[column_count];
    char title[128];
    size_t changed_count = 0, shown_count = 0, shown_last = 0;
    line heading = make_heading(bp_diff_key_name(diff->key), widths);
    for (size_t i = 0; i < diff->host.row_count; i++) {
        if (is_changed(&diff->host.rows[i].change) && changed_count++ < limit) {
            line made = make_row(&diff->host.rows[i]);
            measure(&made, widths);
            shown_last = i + 1;
            shown_count++;
        }
    }
    (void)snprintf(title, sizeof title, "%s by %s", diff->counter, bp_diff_key_name(diff->key));
    print_title(title, emphasis);
    if (shown_count > 0) {
        print_line(&heading, widths);
    }
    for (size_t i = 0; i < shown_last; i++) {
        if (is_changed(&diff->host.rows[i].change)) {
            line made = make_row(&diff->host.rows[i]);
            print_line(&made, widths);
        }
    }
    (void)printf("  (%zu did not change", diff->host.row_count - changed_count);
    if (changed_count > shown_count) {
        (void)printf(", %zu more did", changed_count - shown_count);
    }
    (void)fputs(")\n", stdout);
}

static void print_metrics(const bp_diff *diff, bool emphasis) {
    int widths[column_count];
    line heading = make_heading("process", widths);
    for (size_t i = 0; i < BP_DIFF_FIGURE_COUNT; i++) {
        line made = make_line("", &diff->figures[i].change, diff->figures[i].decimals);
        measure(&made, widths);
    }
    print_title("runtime-metrics.json", emphasis);
    print_line(&heading, widths);
    for (size_t i = 0; i < BP_DIFF_FIGURE_COUNT; i++) {
        const bp_diff_figure *figure = &diff->figures[i];
        line made = make_line(figure->key, &figure->change, figure->decimals);
        print_line(&made, widths);
    }
}

static bool print_heap(const bp_diff *diff, bool emphasis) {
    char *text = NULL;
    if (bugpack_heap_state_diff(&diff->heap_before, &diff->heap_after, &text, NULL) != BUGPACK_OK) {
        return false;
    }
    print_title("heap-state.json", emphasis);
    (void)fputs(text[0] != '\0' ? text : "(no change)\n", stdout);
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

bool bp_cli_diff_print(const bp_diff *diff, size_t limit, bool emphasis) {
    print_side("before", &diff->before);
    print_side("after ", &diff->after);
    if (diff->has_host) {
        (void)fputc('\n', stdout);
        print_host(diff, limit, emphasis);
    }
    if (diff->has_metrics) {
        (void)fputc('\n', stdout);
        print_metrics(diff, emphasis);
    }
    if (diff->has_heap) {
        (void)fputc('\n', stdout);
        return print_heap(diff, emphasis);
    }
    return true;
}
