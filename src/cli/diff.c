#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bugpack/sample.h>

#include "cli/option.h"
#include "cli/output.h"
#include "inspect/diff.h"

typedef struct diff_options {
    bp_host_key key;
    const char *counter;
    uint32_t limit;
    bool as_json;
} diff_options;

static void say_absent(const char *artefact, const bp_diff_side *side, const char *reason) {
    bp_cli_say("no %s to compare in \"%s\"%s%s", artefact, side->path,
               reason[0] != '\0' ? ": " : "", reason);
}

/* Names what only one side has, and why the other has none. */
static void say_absences(const bp_diff *diff) {
    for (int i = 0; i < BP_DIFF_ARTEFACT_COUNT; i++) {
        const bp_diff_presence *before = &diff->before.presence[i];
        const bp_diff_presence *after = &diff->after.presence[i];
        const char *name = bp_diff_artefact_name((bp_diff_artefact)i);
        if (!before->is_there && (after->is_there || before->reason[0] != '\0')) {
            say_absent(name, &diff->before, before->reason);
        }
        if (!after->is_there && (before->is_there || after->reason[0] != '\0')) {
            say_absent(name, &diff->after, after->reason);
        }
    }
}

/* Fits a 64-bit number with its sign and a point, and a percentage. */
enum { cell_bytes = 48, column_count = 4 };

/* A line of a table: numbers, aligned to the right, before the name, which may be any text. */
typedef struct line {
    char cells[column_count][cell_bytes];
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
    line made = {{"(unknown)", "(unknown)", "-", "-"}, name};
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

/*
 * Prints a heading and the lines that `make_line_of` gives a name, at most `limit`. Returns how
 * many there are.
 */
static size_t print_table(const bp_diff *diff, const char *what, size_t count, size_t limit,
                          line (*make_line_of)(const bp_diff *diff, size_t index)) {
    const line heading = {{"before", "after", "delta", "percent"}, what};
    int widths[column_count] = {0};
    size_t named_count = 0;
    measure(&heading, widths);
    for (size_t i = 0; i < count; i++) {
        line made = make_line_of(diff, i);
        if (made.name != NULL && named_count++ < limit) {
            measure(&made, widths);
        }
    }
    size_t left_count = named_count < limit ? named_count : limit;
    if (left_count > 0) {
        print_line(&heading, widths);
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

/* Without a name if nothing changed. */
static line make_host_line(const bp_diff *diff, size_t index) {
    const bp_host_row *row = &diff->host.rows[index];
    bool is_changed = !row->change.has_delta || row->change.delta != 0;
    const char *name = row->name[0] != '\0' ? row->name : "(unknown)";
    return make_line(is_changed ? name : NULL, &row->change, 0);
}

static void print_host(const bp_diff *diff, size_t limit, bool emphasis) {
    char title[128];
    const char *key = bp_diff_key_name(diff->key);
    (void)snprintf(title, sizeof title, "%s by %s", diff->counter, key);
    print_title(title, emphasis);
    size_t changed_count = print_table(diff, key, diff->host.row_count, limit, make_host_line);
    (void)printf("  (%zu did not change", diff->host.row_count - changed_count);
    if (changed_count > limit) {
        (void)printf(", %zu more did", changed_count - limit);
    }
    (void)fputs(")\n", stdout);
}

static line make_figure_line(const bp_diff *diff, size_t index) {
    const bp_diff_figure *figure = &diff->figures[index];
    return make_line(figure->key, &figure->change, figure->decimals);
}

static void print_metrics(const bp_diff *diff, bool emphasis) {
    print_title("runtime-metrics.json", emphasis);
    (void)print_table(diff, "process", BP_DIFF_FIGURE_COUNT, SIZE_MAX, make_figure_line);
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

/* At most `limit` groups of a capture. `emphasis`: headings are bold. False without memory. */
static bool print_text(const bp_diff *diff, size_t limit, bool emphasis) {
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

static bp_cli_exit show(const bp_diff *diff, const diff_options *options) {
    bool emphasis = bp_cli_is_terminal(STDOUT_FILENO) && bp_cli_wants_colour();
    say_absences(diff);
    if (!diff->has_any) {
        bp_cli_say("nothing to compare: \"%s\" and \"%s\" have nothing in common",
                   diff->before.path, diff->after.path);
        return BP_CLI_FAILED;
    }
    if (strcmp(diff->before.facts.timestamp, diff->after.facts.timestamp) > 0 &&
        diff->after.facts.timestamp[0] != '\0') {
        bp_cli_say("\"%s\" is older than \"%s\"", diff->after.path, diff->before.path);
    }
    bool is_printed = options->as_json ? print_json(diff, options->limit)
                                       : print_text(diff, options->limit, emphasis);
    bp_cli_exit result = bp_cli_finish_output();
    return is_printed ? result : BP_CLI_FAILED;
}

static bp_cli_exit compare(char **paths, const diff_options *options) {
    bp_diff diff;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_diff_compute(paths[0], paths[1], options->key, options->counter, &diff, &error);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    bp_cli_exit result = show(&diff, options);
    bp_diff_release(&diff);
    return result;
}

static bool read_key(const bp_cli_option *option, const char *text, void *field) {
    static const bp_host_key keys[] = {BP_HOST_BY_PROCESS, BP_HOST_BY_CGROUP, BP_HOST_BY_THREAD};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(text, bp_diff_key_name(keys[i])) == 0) {
            *(bp_host_key *)field = keys[i];
            return true;
        }
    }
    bp_cli_say_usage("--%s takes process, cgroup or thread, not '%s'", option->name, text);
    return false;
}

static bool read_counter(const bp_cli_option *option, const char *text, void *field) {
    if (!bp_host_diff_has_counter(text)) {
        bp_cli_say_usage("there is no counter '%s'", text);
        return false;
    }
    return bp_cli_read_text(option, text, field);
}

static const bp_cli_bounds limits = {"a number", 1, UINT32_MAX, 1};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(diff_options, key, 0, "by", "KEY",
                 "group threads by process (the default), cgroup or thread", read_key, NULL),
    BP_CLI_VALUE(diff_options, counter, 0, "counter", "NAME",
                 "what to compare (default schedstat.run_ns: CPU time in\nnanoseconds)",
                 read_counter, NULL),
    BP_CLI_VALUE(diff_options, limit, 0, "limit", "N", "show only the N largest changes",
                 bp_cli_read_number, &limits),
    BP_CLI_FLAG(diff_options, as_json, 0, "json", "JSON instead of text"), BP_CLI_OPTIONS_END};

static bp_cli_exit run(int argument_count, char **arguments) {
    diff_options options = {.counter = "schedstat.run_ns", .limit = UINT32_MAX};
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
    "process what it cost and how its heap stood. Each file is a report, or a\n"
    "host-threads.json, runtime-metrics.json or heap-state.json by itself.\n",
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
    "Exit status: 0 compared, whether there are differences or not, 1 failed, or\n"
    "there is nothing to compare, 2 usage.\n",
    2,
    run};
