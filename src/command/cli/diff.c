#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/option.h"
#include "cli/output.h"
#include "compare/diff.h"
#include "model/fields.h"
#include "model/metadata.h"
#include "print/fill.h"

typedef struct diff_options {
    uint32_t limit;
    bool as_json, is_raw;
} diff_options;

/* As of diff(1), and not as of the other commands. */
static const bp_cli_exit is_equal = BP_CLI_COMPLETE, is_different = BP_CLI_FAILED,
                         is_trouble = BP_CLI_USAGE;

/* Fits a number with its sign, its point and its unit. */
enum { amount_bytes = 64, screen_columns = 80, line_bytes = 4 * screen_columns };

typedef enum unit_kind { PLAIN, BYTES, SECONDS, SHARE } unit_kind;

/* The unit of a value by how its key ends. */
static const struct unit {
    const char *end;
    unit_kind kind;
    double scale;
} units[] = {{"_kb", BYTES, 1024},    {"_bytes", BYTES, 1},    {"_chars", BYTES, 1},
             {"_ns", SECONDS, 1e-9},  {"_us", SECONDS, 1e-6},  {"_ms", SECONDS, 1e-3},
             {"_secs", SECONDS, 1.0}, {"_percent", SHARE, 1.0}};

static struct unit unit_of(const char *path, bool is_raw) {
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof units / sizeof units[0] && !is_raw; i++) {
        size_t end_bytes = strlen(units[i].end);
        if (length >= end_bytes && strcmp(path + length - end_bytes, units[i].end) == 0) {
            return units[i];
        }
    }
    return (struct unit){"", PLAIN, 1};
}

/* A number whose last `decimals` digits are behind its point. */
static void format_plain(uint64_t value, unsigned decimals, char out[amount_bytes]) {
    uint64_t scale = 1;
    for (unsigned i = 0; i < decimals; i++) {
        scale *= 10;
    }
    int length = snprintf(out, amount_bytes, "%" PRIu64, value / scale);
    if (decimals > 0) {
        (void)snprintf(out + length, amount_bytes - (size_t)length, ".%0*" PRIu64, (int)decimals,
                       value % scale);
    }
}

/* "4.3 MiB" for 4408 with the unit of "rss_kb". */
static void format_amount(struct unit unit, uint64_t value, unsigned decimals,
                          char out[amount_bytes]) {
    double amount = (double)value * unit.scale;
    for (unsigned i = 0; i < decimals; i++) {
        amount /= 10;
    }
    if (unit.kind == BYTES && amount < 18e18) {
        char text[BP_FILL_BYTES];
        (void)snprintf(out, amount_bytes, "%s", bp_fill_bytes((double)(uint64_t)amount, text));
    } else if (unit.kind == SECONDS && amount >= 1) {
        (void)snprintf(out, amount_bytes, "%.3f s", amount);
    } else if (unit.kind == SECONDS) {
        (void)snprintf(out, amount_bytes, "%.3f ms", amount * 1e3);
    } else {
        format_plain(value, decimals, out);
    }
}

/* With its sign. */
static void format_delta(const bp_json_change *change, struct unit unit, char out[amount_bytes]) {
    int64_t delta = change->delta;
    uint64_t size = delta < 0 ? (uint64_t) - (delta + 1) + 1 : (uint64_t)delta;
    const char *sign = size > 0 ? "+" : "";
    char amount[amount_bytes];
    format_amount(unit, size, change->decimals, amount);
    (void)snprintf(out, amount_bytes, "%s%.60s", delta < 0 ? "-" : sign, amount);
}

/* Appends a value as it is in the document, at most so many bytes of it. */
static void add_value(bp_buffer *line, const bp_json_token *value, size_t max_bytes) {
    size_t shown = value->byte_count;
    if (shown > max_bytes) {
        for (shown = max_bytes; shown > 0 && ((unsigned char)value->text[shown] & 0xC0) == 0x80;) {
            shown--; /* not within a character */
        }
    }
    (void)bp_buffer_append(line, value->text, shown);
    (void)bp_buffer_append_text(line, shown < value->byte_count ? "..." : "");
}

/* A plain number is as in the document. */
static void add_number(bp_buffer *line, const bp_json_token *value, uint64_t number,
                       unsigned decimals, struct unit unit) {
    char amount[amount_bytes];
    if (unit.kind == BYTES || unit.kind == SECONDS) {
        format_amount(unit, number, decimals, amount);
        (void)bp_buffer_append_text(line, amount);
    } else {
        add_value(line, value, SIZE_MAX);
        (void)bp_buffer_append_text(line, unit.kind == SHARE ? " %" : "");
    }
}

/* The text behind the path of a change. */
static void describe(const bp_json_change *change, bool is_raw, bp_buffer *line) {
    enum { pair_bytes = screen_columns / 2 - 8, single_bytes = screen_columns - 20 };
    struct unit unit = unit_of(change->path, is_raw);
    if (change->is_number) {
        char delta[amount_bytes];
        format_delta(change, unit, delta);
        add_number(line, &change->before, change->numbers[0], change->decimals, unit);
        (void)bp_buffer_append_text(line, " \u2192 ");
        add_number(line, &change->after, change->numbers[1], change->decimals, unit);
        (void)bp_buffer_printf(line, " (%s%s)", delta, unit.kind == SHARE ? " points" : "");
    } else if (change->before.byte_count > 0 && change->after.byte_count > 0) {
        add_value(line, &change->before, pair_bytes);
        (void)bp_buffer_append_text(line, " \u2192 ");
        add_value(line, &change->after, pair_bytes);
    } else if (change->before.byte_count > 0) {
        (void)bp_buffer_append_text(line, "gone, was ");
        add_value(line, &change->before, single_bytes);
    } else {
        (void)bp_buffer_append_text(line, "added ");
        add_value(line, &change->after, single_bytes);
    }
}

/* In one line where it fits, otherwise in two. */
static void print_change(const bp_json_change *change, bool is_raw, bp_buffer *line) {
    bp_buffer_clear(line);
    describe(change, is_raw, line);
    (void)fputs("  ", stdout);
    bp_cli_print_escaped(stdout, change->path[0] != '\0' ? change->path : "all");
    bool fits = strlen(change->path) + line->size + 4 <= screen_columns;
    (void)fputs(fits ? ": " : ":\n    ", stdout);
    bp_cli_print_escaped(stdout, bp_buffer_text(line));
    (void)fputc('\n', stdout);
}

/* True if a row is of another entry, or another kind of rows of one, than that before. */
static bool begins_kind(const bp_json_changes *list, size_t index) {
    const bp_json_change *row = &list->rows[index];
    return index == 0 || strcmp(row[-1].entry, row->entry) != 0 ||
           strcmp(bp_json_change_kind(&row[-1]), bp_json_change_kind(row)) != 0;
}

/* False without memory for a line. */
static bool print_changes(const bp_json_changes *list, const diff_options *options) {
    bool emphasis = bp_cli_is_terminal(STDOUT_FILENO) && bp_cli_wants_colour();
    bp_buffer line;
    size_t count = 0; /* of its kind */
    bp_buffer_init(&line, line_bytes);
    bool has_memory = bp_buffer_reserve(&line, line_bytes) != NULL;
    for (size_t i = 0; i < list->count && has_memory; i++) {
        const bp_json_change *row = &list->rows[i];
        if (i == 0 || strcmp(row[-1].entry, row->entry) != 0) {
            (void)printf("\n%s%s%s\n", emphasis ? "\033[1m" : "", row->entry,
                         emphasis ? "\033[0m" : "");
        }
        count = begins_kind(list, i) ? 1 : count + 1;
        if (count <= options->limit) {
            print_change(row, options->is_raw, &line);
        } else if (i + 1 == list->count || begins_kind(list, i + 1)) {
            (void)printf("  (%zu more)\n", count - options->limit);
        }
    }
    if (list->is_cut) {
        (void)fputs("\n(and more)\n", stdout);
    }
    bp_buffer_release(&line);
    return has_memory;
}

static const bp_json_tree *metadata_of(const bp_diff_side *side) {
    return side->report != NULL ? bp_report_file_metadata(side->report) : NULL;
}

static void print_side(const char *title, const bp_diff_side *side) {
    const bp_json_tree *metadata = metadata_of(side);
    const char *const texts[] = {
        side->path, bp_json_tree_text_or(metadata, "timestamp", ""),
        bp_json_tree_text_or(bp_json_tree_object(metadata, "app"), "name", "")};
    (void)fputs(title, stdout);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        (void)fputs(texts[i][0] != '\0' ? "  " : "", stdout);
        bp_cli_print_escaped(stdout, texts[i]);
    }
    (void)fputc('\n', stdout);
}

static bool print_text(const bp_diff *diff, const diff_options *options) {
    print_side("before", &diff->before);
    print_side("after ", &diff->after);
    bool has_memory = print_changes(&diff->changes, options);
    if (diff->changes.count == 0 && !diff->changes.is_cut) {
        (void)fputs("\nno difference\n", stdout);
    }
    return has_memory;
}

static void add_side(bp_json *json, const char *key, const bp_diff_side *side) {
    const bp_json_tree *metadata = metadata_of(side);
    bp_json_object_begin(json, key);
    bp_json_add_text(json, "path", side->path);
    bp_json_quote(json, true);
    bp_model_add_known_text(json, "report_id", bp_json_tree_text_or(metadata, "report_id", ""));
    bp_model_add_known_text(json, "app",
                            bp_json_tree_text_or(bp_json_tree_object(metadata, "app"), "name", ""));
    bp_model_add_known_text(json, "timestamp", bp_json_tree_text_or(metadata, "timestamp", ""));
    bp_json_quote(json, false);
    bp_json_object_end(json);
}

/* A value of a report; of no bytes where there is none. */
static void add_json_value(bp_json *json, const char *key, const bp_json_token *value) {
    if (value->byte_count > 0) {
        bp_json_add_raw(json, key, value->text, value->byte_count);
    }
}

static void add_change(bp_json *json, const bp_json_change *change) {
    bp_json_object_begin(json, NULL);
    bp_json_add_text(json, "entry", change->entry);
    bp_json_quote(json, true);
    bp_json_add_text(json, "path", change->path);
    bp_json_quote(json, false);
    add_json_value(json, "before", &change->before);
    add_json_value(json, "after", &change->after);
    if (change->is_number) {
        char delta[amount_bytes];
        format_delta(change, unit_of("", true), delta);
        const char *digits = delta + (delta[0] == '+');
        bp_json_add_raw(json, "delta", digits, strlen(digits));
    }
    bp_json_object_end(json);
}

static void print_json(const bp_diff *diff, const diff_options *options) {
    const bp_json_changes *list = &diff->changes;
    size_t count = 0; /* of its kind */
    bp_buffer text;
    bp_json json;
    bp_buffer_init(&text, BP_CLI_JSON_BYTES);
    bp_json_begin_as(&json, BP_JSON_TABLE, &text);
    bp_json_add_uint(&json, "schema", BP_SCHEMA_NUMBER);
    add_side(&json, "before", &diff->before);
    add_side(&json, "after", &diff->after);
    bp_json_add_bool(&json, "equal", list->count == 0 && !list->is_cut);
    bp_json_add_bool(&json, "changes_complete", !list->is_cut);
    bp_json_array_begin(&json, "changes");
    for (size_t i = 0; i < list->count; i++) {
        count = begins_kind(list, i) ? 1 : count + 1;
        if (count <= options->limit) {
            add_change(&json, &list->rows[i]);
            (void)fwrite(bp_buffer_text(&text), 1, text.size, stdout); /* they may be many */
            text.size = 0;
        }
    }
    bp_json_array_end(&json);
    bp_cli_print_json(stdout, &json);
}

static const bp_cli_bounds limits = {"a number", 1, UINT32_MAX, 1};

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(diff_options, limit, 0, "limit", "N",
                 "show only the N largest changes of each kind, such as\nthe CPU time of threads",
                 bp_cli_read_number, &limits),
    BP_CLI_FLAG(diff_options, is_raw, 0, "bytes", "print numbers as in the reports, without units"),
    BP_CLI_FLAG(diff_options, as_json, 0, "json", "JSON instead of text"), BP_CLI_OPTIONS_END};

static const diff_options defaults = {.limit = UINT32_MAX};

static bp_cli_exit run(void *context, char **paths) {
    const diff_options *options = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_diff diff;
    if (paths[0] == NULL || paths[1] == NULL) {
        return bp_cli_say_usage("two files are needed, BEFORE and AFTER");
    }
    if (bp_diff_compute(paths[0], paths[1], &diff, &error) != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return is_trouble;
    }
    if (options->as_json) {
        print_json(&diff, options);
    } else if (!print_text(&diff, options)) {
        bp_cli_say("out of memory");
        bp_diff_release(&diff);
        return is_trouble;
    }
    bool are_equal = diff.changes.count == 0 && !diff.changes.is_cut;
    bp_diff_release(&diff);
    if (bp_cli_finish_output() != BP_CLI_COMPLETE) {
        return is_trouble;
    }
    return are_equal ? is_equal : is_different;
}

const bp_cli_command bp_cli_diff_command = {
    "diff",
    "show what changed from one report to another",
    "Usage: bugpack diff [OPTION]... BEFORE AFTER\n"
    "\n"
    "Show what changed from one report to another: what the process and its threads\n"
    "cost, its limits, loaded objects and gaps, how its heap stood, what it said of\n"
    "itself, and where its CPU time went; of captures of the machine its threads and\n"
    "cgroups. Or compare two JSON documents, such as two entries. One of the files\n"
    "may be -, for standard input.\n",
    option_rows,
    "Exit status: 0 equal, 1 different, 2 trouble: a file that cannot be read, or a\n"
    "wrong command line.\n",
    2,
    .run = run,
    .options_bytes = sizeof(diff_options),
    .defaults = &defaults};
