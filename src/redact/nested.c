#include "redact/record.h"

#include <ctype.h>
#include <string.h>

enum {
    value_max_bytes = 1024, /* that a rule sees; a longer one is replaced as a whole */
    blanks_max = 64,        /* between a key and its array */
    slashes_max = 63        /* before a quote */
};

/* What a rule is tried with: a name, and a value as if it were its only one. */
struct pair {
    unsigned char text[BP_NAME_MAX_BYTES + 1 + 1 + value_max_bytes + 1];
    size_t name_bytes, value_from, size;
    bool is_cut;
};

static void make_pair(struct pair *pair, const bp_name *name, const unsigned char *value,
                      size_t byte_count, bool is_bare) {
    pair->is_cut = byte_count > value_max_bytes;
    byte_count = pair->is_cut ? value_max_bytes : byte_count;
    memcpy(pair->text, name->text, name->size);
    pair->name_bytes = pair->size = name->size;
    if (is_bare) {
        pair->text[pair->size++] = BP_VIEW_BARE;
    }
    pair->value_from = pair->size;
    for (size_t i = 0; i < byte_count; i++) {
        pair->text[pair->size++] = value[i] >= BP_VIEW_BARE ? '?' : value[i];
    }
    pair->text[pair->size++] = BP_VIEW_END;
}

/* Tries one rule with a value at [from, to). */
static bool try_rule(bp_scan *scan, const struct pair *pair, uint16_t rule, size_t offset,
                     size_t from, size_t to, bp_hit *ret_hit) {
    bp_match match;
    *ret_hit = (bp_hit){.from = from, .to = to, .match_from = from, .rule = rule};
    if (bp_rule_set_rule(scan->set, rule)->until != NULL) {
        return false;
    }
    bp_match_result result =
        scan->gave_up_counts[rule] == BP_GAVE_UP_MAX
            ? BP_MATCH_GAVE_UP
            : bp_matcher_match(scan->matcher, rule, pair->text, pair->size, offset, &match);
    if (result == BP_MATCH_GAVE_UP) {
        if (scan->gave_up_counts[rule] < BP_GAVE_UP_MAX) {
            scan->gave_up_counts[rule]++;
        }
        ret_hit->gave_up = true;
        return true;
    }
    if (result != BP_MATCH_FOUND || match.secret_to <= pair->value_from) {
        return false;
    }
    if (match.secret_from > pair->value_from) {
        ret_hit->from = from + (match.secret_from - pair->value_from);
    }
    if (!pair->is_cut && match.secret_to < pair->size) {
        ret_hit->to = from + (match.secret_to - pair->value_from);
    }
    return bp_rule_set_rule(scan->set, rule)->check == NULL;
}

static bool find_hit(bp_scan *scan, const struct pair *pair, size_t from, size_t to,
                     bp_hit *ret_hit) {
    const bp_keywords *keywords = scan->set->keywords;
    bp_keyword_state state = bp_keywords_start(keywords);
    bool is_found = false;
    size_t at = 0;
    while (!is_found && (at = bp_keywords_next(keywords, pair->text, pair->name_bytes, at,
                                               &state)) != SIZE_MAX) {
        const bp_keyword_hit *ends = NULL;
        size_t count = bp_keywords_hits(keywords, state, &ends);
        for (size_t i = 0; i < count && !is_found; i++) {
            is_found = try_rule(scan, pair, ends[i].owner, at - ends[i].length, from, to, ret_hit);
        }
    }
    return is_found;
}

bugpack_status bp_nested_try(bp_scan *scan, const bp_names *names, const unsigned char *text,
                             size_t from, size_t to, bool is_bare) {
    static const char tag[] = BP_TAG_PREFIX;
    struct pair pair;
    bp_hit hit;
    if (from == to ||
        (to - from >= sizeof tag - 1 && memcmp(text + from, tag, sizeof tag - 1) == 0)) {
        return BUGPACK_OK;
    }
    for (uint32_t i = 0; i < names->count; i++) {
        make_pair(&pair, &names->names[i], text + from, to - from, is_bare);
        if (find_hit(scan, &pair, from, to, &hit)) {
            return bp_scan_add(scan, &hit);
        }
    }
    return BUGPACK_OK;
}

bool bp_nested_value(void *scan, const bp_view *view, size_t from, size_t to, bool is_bare) {
    return bp_nested_try(scan, &view->names, view->text, from, to, is_bare) == BUGPACK_OK;
}

/* JSON in a text. */
struct walk {
    bp_scan *scan;
    const unsigned char *text;
    size_t at, end, line_end;
    bool is_json;
    unsigned char quote;
    size_t slashes; /* before each quote that is not inside of a string */
    bp_names names;
    size_t key_from, key_to; /* the last key; equal: its value has begun */
};

static bool is_one_of(unsigned char byte, const char *set) {
    return byte != '\0' && strchr(set, byte) != NULL;
}

static bool is_end(const struct walk *walk, unsigned char byte) {
    return walk->is_json ? byte >= BP_VIEW_BARE : byte == '\n';
}

static size_t skip_back(const unsigned char *text, size_t at, size_t max, const char *set) {
    size_t from = at > max ? at - max : 0;
    while (at > from && is_one_of(text[at - 1], set)) {
        at--;
    }
    return at;
}

/* Whether the bracket at `at` follows a key in quotes and a colon. */
static bool find_key(struct walk *walk, size_t at) {
    const unsigned char *text = walk->text;
    at = skip_back(text, at, blanks_max, " \t");
    if (at == 0 || text[at - 1] != ':') {
        return false;
    }
    at = skip_back(text, at - 1, blanks_max, " \t");
    if (at == 0 || !is_one_of(text[at - 1], "\"'`")) {
        return false;
    }
    walk->quote = text[--at];
    walk->key_to = skip_back(text, at, slashes_max, "\\");
    walk->slashes = at - walk->key_to;
    at = walk->key_to;
    while (at > 0 && text[at - 1] != walk->quote && !is_end(walk, text[at - 1]) &&
           walk->key_to - at <= BP_NAME_MAX_BYTES) {
        at--;
    }
    walk->key_from = at;
    return at > 0 && text[at - 1] == walk->quote && at < walk->key_to;
}

/* Whether what was just read is followed by a colon: then it is a key. */
static bool take_key(struct walk *walk, size_t from, size_t to) {
    size_t next = walk->at;
    while (next < walk->end && next - walk->at < blanks_max && is_one_of(walk->text[next], " \t")) {
        next++;
    }
    if (next == walk->end || walk->text[next] != ':') {
        return false;
    }
    walk->key_from = from;
    walk->key_to = to;
    return true;
}

/* From behind the quote of a string to behind the one that ends it: a quote inside has more
 * backslashes than that, or they are escapes of each other. */
static bugpack_status read_string(struct walk *walk) {
    size_t from = walk->at, to = walk->end, run = 0;
    for (; walk->at < walk->end; walk->at++) {
        unsigned char byte = walk->text[walk->at];
        if (byte == walk->quote && run % (2 * (walk->slashes + 1)) == walk->slashes) {
            to = walk->at++ - walk->slashes;
            break;
        }
        run = byte == '\\' ? run + 1 : 0;
    }
    if (take_key(walk, from, to)) {
        return BUGPACK_OK;
    }
    walk->key_from = walk->key_to;
    return bp_nested_try(walk->scan, &walk->names, walk->text, from, to, false);
}

static bugpack_status read_bare(struct walk *walk) {
    size_t from = walk->at++;
    while (walk->at < walk->end && !is_one_of(walk->text[walk->at], " \t\r\n,:[]{}\"'`\\")) {
        walk->at++;
    }
    if (take_key(walk, from, walk->at)) {
        return BUGPACK_OK;
    }
    walk->key_from = walk->key_to;
    return bp_nested_try(walk->scan, &walk->names, walk->text, from, walk->at, true);
}

static void open_bracket(struct walk *walk) {
    bool has_key = walk->key_from < walk->key_to;
    bp_names_open(&walk->names, walk->scan->set->keywords,
                  has_key ? walk->text + walk->key_from : NULL, walk->key_to - walk->key_from);
    walk->key_from = walk->key_to;
    walk->at++;
}

static bugpack_status read_token(struct walk *walk) {
    const unsigned char *text = walk->text;
    size_t slashes = 0;
    while (walk->at + slashes < walk->end && text[walk->at + slashes] == '\\') {
        slashes++;
    }
    unsigned char byte = walk->at + slashes < walk->end ? text[walk->at + slashes] : ' ';
    if (byte == walk->quote && slashes == walk->slashes) {
        walk->at += slashes + 1;
        return read_string(walk);
    }
    if (slashes > 0) { /* an escaped line end between values */
        walk->at += slashes + is_one_of(byte, "nrt");
    } else if (byte == '[' || byte == '{') {
        open_bracket(walk);
    } else if (byte == ']' || byte == '}') {
        bp_names_close(&walk->names);
        walk->at++;
    } else if (is_one_of(byte, " \t\r\n,:\"'`")) {
        walk->at++;
    } else {
        return read_bare(walk);
    }
    return BUGPACK_OK;
}

/* The first one at or behind `at`; `last` is what the call before returned, or 0. */
static size_t find_byte(const unsigned char *text, size_t size, size_t last, size_t at, char byte) {
    if (last > at || at >= size) {
        return last > at ? last : size;
    }
    const unsigned char *found = memchr(text + at, byte, size - at);
    return found != NULL ? (size_t)(found - text) : size;
}

/* What was found below the key at `key_from` is found again only with that key. */
static void end_walk(const struct walk *walk, size_t first_hit, size_t key_from, bool goes_on) {
    bp_scan *scan = walk->scan;
    for (size_t i = first_hit; i < scan->hit_count; i++) {
        scan->hits[i].match_from = key_from;
    }
    if (goes_on && walk->names.count > 0) {
        size_t last = walk->end - 1;
        bp_scan_add_undecided(scan,
                              &(bp_hit){.from = last, .to = last + 1, .match_from = key_from});
    }
}

bugpack_status bp_nested_search(bp_scan *scan, const bp_view *searched) {
    const unsigned char *text = searched->text;
    size_t byte_count = searched->size;
    struct walk walk = {
        .scan = scan, .text = text, .end = byte_count, .is_json = searched->is_json};
    bugpack_status status = BUGPACK_OK;
    size_t list = 0, object = 0; /* the next one of each; most texts have none */
    for (size_t at = 0; status == BUGPACK_OK; at = walk.at) {
        list = find_byte(text, byte_count, list, at, '[');
        object = find_byte(text, byte_count, object, at, '{');
        at = list < object ? list : object;
        walk.at = at + 1;
        if (at >= byte_count) {
            break;
        }
        if (!find_key(&walk, at)) {
            continue;
        }
        size_t key_from = walk.key_from, first_hit = scan->hit_count;
        walk.at = at;
        open_bracket(&walk);
        walk.line_end = walk.line_end < walk.at ? walk.at : walk.line_end;
        while (walk.names.count > 0 && walk.line_end < byte_count &&
               !is_end(&walk, text[walk.line_end])) {
            walk.line_end++;
        }
        walk.end = walk.line_end;
        while (status == BUGPACK_OK && walk.names.count > 0 && walk.at < walk.end) {
            status = read_token(&walk);
        }
        end_walk(&walk, first_hit, key_from, searched->goes_on && walk.end == byte_count);
        walk.names = (bp_names){.count = 0};
        walk.end = byte_count;
    }
    return status;
}

/*
 * Values in the columns of a table whose heading names a secret: CSV, what psql and mysql print,
 * and the rows of COPY. Each is replaced if it would be as the value of that name.
 */

enum { table_line_max_bytes = 16 * 1024, table_idle_max = 1000 };

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
        if (scan->tables[i].is_open && ++scan->tables[i].idle_count > table_idle_max) {
            close_table(scan, &scan->tables[i]);
        }
    }
}

bugpack_status bp_nested_search_tables(bp_scan *scan, const bp_view *view, uint64_t stream) {
    static const char message[] = "message";
    const unsigned char *bytes = view->text;
    bool is_searched = !view->is_json;
    bugpack_status status = BUGPACK_OK;
    close_idle(scan);
    for (size_t from = 0, to; status == BUGPACK_OK && from < view->size; from = to + 1) {
        for (to = from;
             to < view->size && bytes[to] != '\n' && (!view->is_json || bytes[to] < BP_VIEW_KEY);) {
            to++;
        }
        if (view->is_json && to < view->size && bytes[to] == BP_VIEW_KEY) {
            is_searched = stream != 0 && to - from == sizeof message - 1 &&
                          memcmp(bytes + from, message, sizeof message - 1) == 0;
            continue;
        }
        struct line line = {.text = bytes, .from = from, .to = to};
        bp_table *table = find_table(scan, stream);
        if (is_searched && to - from <= table_line_max_bytes) {
            status = table != NULL ? read_row(scan, table, line) : begin_table(scan, line, stream);
        }
        is_searched = is_searched && (!view->is_json || to == view->size || bytes[to] == '\n');
    }
    return status;
}
