#include "redact/table.h"

#include <ctype.h>
#include <string.h>

#include "redact/nested.h"
#include "redact/view.h"

enum { line_max_bytes = 16 * 1024, idle_max = 1000 };

/* A line, and what divides it. */
struct line {
    const unsigned char *text;
    size_t from, to;
    unsigned char delimiter;
    bool is_in_quotes; /* where the next cell begins, or the line ends */
};

struct cell {
    size_t from, to;
};

/* Takes the next cell, without its quotes and the blanks around it. A cell in quotes may hold the
 * delimiter. False at the end. */
static bool take_cell(struct line *line, size_t *at, struct cell *ret_cell) {
    const unsigned char *text = line->text;
    size_t from = *at, to = from;
    if (from > line->to) {
        return false;
    }
    while (to < line->to && (line->is_in_quotes || text[to] != line->delimiter)) {
        line->is_in_quotes ^= text[to] == '"' && (line->delimiter == ',' || line->delimiter == ';');
        to++;
    }
    *at = to + 1;
    while (from < to && (isspace(text[from]) || text[from] == '"')) {
        from++;
    }
    while (to > from && (isspace(text[to - 1]) || text[to - 1] == '"')) {
        to--;
    }
    *ret_cell = (struct cell){from, to};
    return true;
}

/* mysql draws the border of a table as well. */
static void cut_border(struct line *line) {
    while (line->to > line->from && isspace(line->text[line->to - 1])) {
        line->to--;
    }
    if (line->delimiter == '|' && line->to - line->from > 1 && line->text[line->from] == '|' &&
        line->text[line->to - 1] == '|') {
        line->from++;
        line->to--;
    }
}

static bool is_name(const unsigned char *text, size_t from, size_t to) {
    bool is_name = from < to && to - from < BP_NAME_MAX_BYTES;
    for (size_t at = from; at < to && is_name; at++) {
        is_name = isalnum(text[at]) || memchr("_-.`'", text[at], 5) != NULL;
    }
    return is_name;
}

/* Whether a value that looks like a secret would be replaced below this name. */
static bugpack_status judge_name(bp_scan *scan, const unsigned char *text, size_t from, size_t to,
                                 bp_names *ret_names, bool *ret_is_secret) {
    static const unsigned char sample[] = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b";
    size_t hit_count = scan->hit_count;
    *ret_names = (bp_names){.count = 0};
    bp_names_open(ret_names, scan->set->keywords, text + from, to - from);
    bugpack_status status = bp_nested_try(scan, ret_names, sample, 0, sizeof sample - 1, false);
    *ret_is_secret = scan->hit_count > hit_count;
    scan->hit_count = hit_count;
    return status;
}

static bp_table *find_table(bp_scan *scan, uint64_t stream) {
    for (size_t i = 0; i < BP_OPEN_TABLES; i++) {
        if (scan->tables[i].is_open && scan->tables[i].stream == stream) {
            return &scan->tables[i];
        }
    }
    return NULL;
}

static void close_table(bp_scan *scan, bp_table *table) {
    table->is_open = false;
    scan->open_count--;
}

static void open_table(bp_scan *scan, const bp_table *made) {
    bp_table *table = NULL;
    for (size_t i = 0; i < BP_OPEN_TABLES && table == NULL; i++) {
        table = scan->tables[i].is_open ? NULL : &scan->tables[i];
    }
    if (table == NULL) {
        table = &scan->tables[0];
        scan->open_count--;
    }
    *table = *made;
    scan->open_count++;
}

/* In text, names with commas between them are mostly a sentence: a heading has no blanks there. */
static bool has_spaced_commas(const struct line *line) {
    const unsigned char *text = line->text;
    for (size_t at = line->from; at + 1 < line->to; at++) {
        if (text[at] == line->delimiter && text[at + 1] == ' ') {
            return true;
        }
    }
    return false;
}

/* Reads the names of a heading that this delimiter divides; a table without a secret is none. */
static bugpack_status read_heading(bp_scan *scan, struct line line, bp_table *table) {
    struct cell cell;
    cut_border(&line);
    for (size_t at = line.from; take_cell(&line, &at, &cell); table->cell_count++) {
        bp_names names;
        bool is_secret = false;
        if (!is_name(line.text, cell.from, cell.to) || table->cell_count == UINT16_MAX) {
            table->column_count = 0;
            return BUGPACK_OK;
        }
        bugpack_status status = judge_name(scan, line.text, cell.from, cell.to, &names, &is_secret);
        if (status != BUGPACK_OK) {
            return status;
        }
        if (is_secret && table->column_count < BP_TABLE_COLUMNS) {
            table->columns[table->column_count] = table->cell_count;
            table->names[table->column_count++] = names.names[0];
        }
    }
    return BUGPACK_OK;
}

/* The list of names in "COPY users (id, name, password) FROM stdin;", with tabs between values. */
static bool find_copy(struct line *line) {
    static const char begin[] = "COPY ", end[] = ") FROM stdin";
    const unsigned char *text = line->text + line->from;
    size_t size = line->to - line->from;
    const unsigned char *open = size > sizeof begin && memcmp(text, begin, sizeof begin - 1) == 0
                                    ? memchr(text, '(', size)
                                    : NULL;
    const unsigned char *close =
        open == NULL ? NULL : memmem(open, size - (size_t)(open - text), end, sizeof end - 1);
    if (close == NULL) {
        return false;
    }
    line->from = (size_t)(open + 1 - line->text);
    line->to = (size_t)(close - line->text);
    return true;
}

static bugpack_status begin_table(bp_scan *scan, struct line line, uint64_t stream) {
    static const unsigned char delimiters[] = {'\t', '|', ';', ','};
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    bugpack_status status = BUGPACK_OK;
    if (line.to - line.from > 3 && memcmp(line.text + line.from, byte_order_mark, 3) == 0) {
        line.from += 3;
    }
    bool is_copy = find_copy(&line);
    for (size_t i = is_copy ? 3 : 0; status == BUGPACK_OK && i < sizeof delimiters; i++) {
        bp_table table = {.stream = stream, .delimiter = delimiters[i], .is_open = true};
        line.delimiter = delimiters[i];
        if (memchr(line.text + line.from, line.delimiter, line.to - line.from) == NULL ||
            (!is_copy && (line.delimiter == ',' || line.delimiter == ';') &&
             has_spaced_commas(&line))) {
            continue;
        }
        status = read_heading(scan, line, &table);
        if (status == BUGPACK_OK && table.column_count > 0) {
            table.delimiter = is_copy ? '\t' : line.delimiter;
            open_table(scan, &table);
            break;
        }
    }
    return status;
}

static bool is_ruler(const struct line *line) {
    size_t at = line->from;
    while (at < line->to && memchr("-+=|: \r", line->text[at], 7) != NULL) {
        at++;
    }
    return at == line->to && line->from < line->to;
}

/* A table that a person reads has words too: a secret is one without blanks, and not plain. */
static bool may_be_secret(const struct line *line, struct cell cell) {
    bool is_plain = true;
    for (size_t at = cell.from; at < cell.to; at++) {
        if (isspace(line->text[at])) {
            return false;
        }
        is_plain = is_plain && !isdigit(line->text[at]);
    }
    return cell.from < cell.to && (line->delimiter != '|' || !is_plain);
}

/* A row has as many cells as the heading. Where its line ends in quotes, it goes on in the next. */
static bugpack_status read_row(bp_scan *scan, bp_table *table, struct line line) {
    struct cell cell, cells[BP_TABLE_COLUMNS] = {{0}};
    size_t count = table->done_count;
    line.delimiter = table->delimiter;
    line.is_in_quotes = table->is_in_quotes;
    table->idle_count = 0;
    if (is_ruler(&line)) {
        return BUGPACK_OK;
    }
    cut_border(&line);
    for (size_t at = line.from; take_cell(&line, &at, &cell); count++) {
        for (size_t i = 0; i < table->column_count; i++) {
            cells[i] = table->columns[i] == count ? cell : cells[i];
        }
    }
    table->is_in_quotes = line.is_in_quotes;
    if (count > table->cell_count || (count < table->cell_count && !line.is_in_quotes)) {
        close_table(scan, table);
        return BUGPACK_OK;
    }
    table->done_count = line.is_in_quotes ? (uint16_t)(count - 1) : 0;
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < table->column_count; i++) {
        bp_names names = {.count = 1, .names = {table->names[i]}};
        if (may_be_secret(&line, cells[i])) {
            status = bp_nested_try(scan, &names, line.text, cells[i].from, cells[i].to, false);
        }
    }
    return status;
}

static void close_idle(bp_scan *scan) {
    for (size_t i = 0; i < BP_OPEN_TABLES; i++) {
        if (scan->tables[i].is_open && ++scan->tables[i].idle_count > idle_max) {
            close_table(scan, &scan->tables[i]);
        }
    }
}

bugpack_status bp_tables_search(bp_scan *scan, const bp_scan_text *text, uint64_t stream) {
    static const char message[] = "message";
    const unsigned char *bytes = text->bytes;
    bool is_searched = !text->is_json;
    bugpack_status status = BUGPACK_OK;
    close_idle(scan);
    for (size_t from = 0, to; status == BUGPACK_OK && from < text->size; from = to + 1) {
        for (to = from;
             to < text->size && bytes[to] != '\n' && (!text->is_json || bytes[to] < BP_VIEW_KEY);) {
            to++;
        }
        if (text->is_json && to < text->size && bytes[to] == BP_VIEW_KEY) {
            is_searched = stream != 0 && to - from == sizeof message - 1 &&
                          memcmp(bytes + from, message, sizeof message - 1) == 0;
            continue;
        }
        struct line line = {.text = bytes, .from = from, .to = to};
        bp_table *table = find_table(scan, stream);
        if (is_searched && to - from <= line_max_bytes) {
            status = table != NULL ? read_row(scan, table, line) : begin_table(scan, line, stream);
        }
        is_searched = is_searched && (!text->is_json || to == text->size || bytes[to] == '\n');
    }
    return status;
}
