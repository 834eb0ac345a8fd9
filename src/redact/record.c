/*
 * The secrets of one record: what it looks like, what the rules find there, where that is in the
 * record, and up to where that is certain.
 */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "redact/nested.h"
#include "redact/redactor_private.h"
#include "redact/scan.h"
#include "redact/view.h"

/*
 * Values in the columns of a table whose heading names a secret: CSV, what psql and mysql print,
 * and the rows of COPY. Each is replaced if it would be as the value of that name.
 */

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

/*
 * Adds the hits in rows, and notes headings; the rows may be in later records of the stream. Of
 * JSON only the message of a log record is searched. NO_MEMORY.
 */
static bugpack_status tables_search(bp_scan *scan, const bp_scan_text *text, uint64_t stream) {
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

enum {
    margin_bytes = 1024,           /* before the end of a piece, where a keyword may be cut */
    blank_max_bytes = 1024,        /* before that, for a place between words */
    line_end_max_bytes = 8 * 1024, /* the same, between lines of a document */
    earlier_min_bytes = 1024,      /* of a line, that are seen with its next part */
    earlier_max_bytes = 16 * 1024
};

/* A record being searched. */
struct search {
    bp_redactor *redactor;
    bp_redact_record *record;
    struct bp_redact_line *line; /* the parts before this one and of this one; or NULL */
    bp_scan_text text;           /* as it was seen last */
    bp_code_mode mode;
    bool has_codes;        /* a text: of any kind */
    bool has_lines;        /* may hold rows of a table */
    bool is_plain;         /* a text without codes is seen as it is, without a view */
    size_t undecided_from; /* in the record: where a match begins that depends on what follows */
    size_t safe_end;       /* the last place to divide the record at */
    size_t earlier_from;   /* in the view: what the next part of the line is seen with */
};

static struct bp_redact_line *find_line(bp_redactor *redactor, uint64_t stream, bool makes) {
    struct bp_redact_line *oldest = &redactor->lines[0];
    for (size_t i = 0; i < BP_REDACT_LINES; i++) {
        struct bp_redact_line *line = &redactor->lines[i];
        if (line->stream == stream) {
            return line;
        }
        oldest = line->age < oldest->age ? line : oldest;
    }
    if (!makes) {
        return NULL;
    }
    bp_buffer_clear(&oldest->text);
    *oldest = (struct bp_redact_line){.stream = stream, .text = oldest->text};
    return oldest;
}

/* Whether a text needs a view: codes that are shown as something else are among the others. */
static bool has_codes(const struct search *search, bp_code_mode mode) {
    const bp_redact_record *record = search->record;
    bp_code code;
    return search->has_codes && mode != BP_CODES_KEPT &&
           bp_code_find((const unsigned char *)record->raw, record->size, 0, mode, &code);
}

/* Sees the first `size` bytes of the record. */
static bugpack_status see(struct search *search, bp_code_mode mode, size_t size,
                          bp_view_value *value) {
    bp_redactor *redactor = search->redactor;
    const bp_redact_record *record = search->record;
    const struct bp_redact_line *line = record->continues ? search->line : NULL;
    bp_view *view = &redactor->view;
    bp_view_how how = {.mode = mode,
                       .is_in_string = record->is_in_string,
                       .keywords = redactor->set->keywords,
                       .value = value,
                       .context = &redactor->scan};
    if (line != NULL) {
        how.earlier = bp_buffer_text(&line->text);
        how.earlier_bytes = line->text.size;
    }
    bool goes_on = record->is_piece || record->unfinished || record->was_cut;
    bugpack_status status = BUGPACK_OK;
    search->mode = mode;
    search->is_plain = !record->is_json && line == NULL && !has_codes(search, mode);
    if (search->is_plain) {
        search->text = (bp_scan_text){
            .bytes = (const unsigned char *)record->raw, .size = size, .goes_on = goes_on};
        return BUGPACK_OK;
    }
    view->names = redactor->names;
    status = record->is_json ? bp_view_json(view, record->raw, size, &how)
                             : bp_view_text(view, record->raw, size, &how);
    search->text = (bp_scan_text){.bytes = view->text,
                                  .size = view->size,
                                  .is_json = record->is_json,
                                  .goes_on = goes_on,
                                  .view = view};
    if (goes_on && !record->is_piece && view->message_to > 0) { /* the rest is about the message */
        search->text.size = view->message_to;
    }
    return status;
}

/* From where in the record the byte at `at` came. */
static size_t raw_of(const struct search *search, size_t at) {
    return search->is_plain ? at : bp_view_raw(&search->redactor->view, at);
}

/* Where a hit is in the record; false where it is in earlier records. */
static bool locate(const struct search *search, const bp_hit *hit, bp_redact_span *ret_span) {
    const bp_redactor *redactor = search->redactor;
    const bp_view *view = &redactor->view;
    const unsigned char *secret = search->text.bytes + hit->from;
    *ret_span = (bp_redact_span){.from = raw_of(search, hit->from),
                                 .to = hit->to,
                                 .match_from = raw_of(search, hit->match_from),
                                 .hash = bp_tag_hash(&redactor->key, secret, hit->to - hit->from),
                                 .rule = hit->rule};
    if (!search->is_plain) {
        ret_span->to = bp_view_raw_end(view, hit->to);
        ret_span->is_bare = bp_view_is_bare(view, hit->from, &ret_span->from, &ret_span->to);
    }
    return ret_span->from < ret_span->to;
}

static bugpack_status add_span(struct search *search, const bp_hit *hit) {
    bp_redactor *redactor = search->redactor;
    if (!bp_array_reserve(&redactor->spans, redactor->span_count, &redactor->span_capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    redactor->span_count += locate(search, hit, &redactor->spans[redactor->span_count]);
    return BUGPACK_OK;
}

static void note_undecided(struct search *search, size_t match_from) {
    size_t from = raw_of(search, match_from);
    search->undecided_from = from < search->undecided_from ? from : search->undecided_from;
    if (search->mode == BP_CODES_SHOWN && match_from < search->earlier_from) {
        search->earlier_from = match_from;
    }
}

/* The spans of all hits. A hit up to the end of a text that goes on may go on as well. */
static bugpack_status add_spans(struct search *search) {
    const bp_scan *scan = &search->redactor->scan;
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < scan->hit_count && status == BUGPACK_OK; i++) {
        const bp_hit *hit = &scan->hits[i];
        status = add_span(search, hit);
        if (search->text.goes_on && hit->to >= search->text.size) {
            note_undecided(search, hit->match_from);
        }
    }
    if (scan->is_undecided) {
        note_undecided(search, scan->undecided.match_from);
        bool is_replaced = !search->record->is_piece || search->record->is_full;
        if (is_replaced && status == BUGPACK_OK) {
            status = add_span(search, &scan->undecided);
        }
    }
    return status;
}

static bool is_blank(unsigned char byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte >= BP_VIEW_BARE;
}

/* A place near the end of a piece that divides no word, escape or character if that is possible. */
static size_t find_safe_end(const struct search *search) {
    const unsigned char *text = search->text.bytes;
    const char *raw = search->record->raw;
    size_t size = search->text.size;
    size_t last = size > margin_bytes ? size - margin_bytes : 0, at = last;
    while (at > 0 && last - at < blank_max_bytes && !is_blank(text[at])) {
        at--;
    }
    at = last - at < blank_max_bytes ? at : last;
    while (at > 0 && (text[at] & 0xC0) == 0x80) {
        at--;
    }
    size_t end = raw_of(search, at), line = end;
    while (search->record->is_json && line > 0 && end - line < line_end_max_bytes) {
        if (raw[--line] == '\n') {
            return line + 1;
        }
    }
    return end;
}

static bugpack_status find_hits(struct search *search, bp_code_mode mode) {
    bp_redactor *redactor = search->redactor;
    bp_scan *scan = &redactor->scan;
    scan->hit_count = 0;
    scan->is_undecided = false;
    scan->is_decoded = mode != BP_CODES_KEPT;
    bugpack_status status = see(search, mode, search->record->size, bp_nested_value);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (mode == BP_CODES_SHOWN) {
        size_t size = search->text.size;
        search->earlier_from = size > earlier_min_bytes ? size - earlier_min_bytes : 0;
        search->safe_end = search->record->is_piece ? find_safe_end(search) : 0;
    }
    status = bp_scan_record(scan, &search->text);
    if (status == BUGPACK_OK) {
        status = bp_nested_search(scan, &search->text);
    }
    if (status == BUGPACK_OK && redactor->base64 != NULL) {
        status = bp_base64_search(redactor->base64, search->text.bytes, search->text.size, scan);
    }
    if (status == BUGPACK_OK && search->has_lines && mode == BP_CODES_SHOWN) {
        status = tables_search(scan, &search->text, search->record->stream);
    }
    return status == BUGPACK_OK ? add_spans(search) : status;
}

static int compare_spans(const void *one, const void *other) {
    const bp_redact_span *a = one, *b = other;
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    return a->to != b->to ? (a->to > b->to ? -1 : 1) : 0;
}

/* Sorts them, and joins those that overlap. */
static void merge_spans(bp_redactor *redactor) {
    bp_redact_span *spans = redactor->spans;
    size_t count = 0;
    if (redactor->span_count > 1) {
        qsort(spans, redactor->span_count, sizeof *spans, compare_spans);
    }
    for (size_t i = 0; i < redactor->span_count; i++) {
        bp_redact_span *last = count > 0 ? &spans[count - 1] : NULL;
        if (last == NULL || spans[i].from >= last->to) {
            spans[count++] = spans[i];
            continue;
        }
        last->to = spans[i].to > last->to ? spans[i].to : last->to;
        if (spans[i].match_from < last->match_from) {
            last->match_from = spans[i].match_from;
        }
    }
    redactor->span_count = count;
}

static bool ends_in_key(const struct search *search) {
    const bp_scan_text *text = &search->text;
    return text->is_json && text->size > 0 && text->bytes[text->size - 1] == BP_VIEW_KEY;
}

/* Divides a piece where no match is divided. Where that would hold back more than half of what can
 * be held, all of it is searched, and a secret that goes on takes the rest of its line with it. */
static bugpack_status divide(struct search *search) {
    bp_redactor *redactor = search->redactor;
    bp_redact_record *record = search->record;
    size_t end =
        search->safe_end < search->undecided_from ? search->safe_end : search->undecided_from;
    size_t i = redactor->span_count;
    while (i > 0 && redactor->spans[i - 1].to > end) {
        size_t from = redactor->spans[--i].match_from;
        end = from < end ? from : end;
    }
    bool is_forced = record->is_full && end < record->size / 2;
    record->end = is_forced ? record->size : end;
    record->is_swallowed = is_forced && search->undecided_from < record->size;
    bugpack_status status = see(search, BP_CODES_SHOWN, record->end, NULL);
    while (status == BUGPACK_OK && !is_forced && ends_in_key(search)) {
        size_t key = raw_of(search, redactor->view.key_from);
        record->end = key > 0 ? key - 1 : 0;
        status = see(search, BP_CODES_SHOWN, record->end, NULL);
    }
    while (redactor->span_count > 0 && !is_forced &&
           redactor->spans[redactor->span_count - 1].to > record->end) {
        redactor->span_count--;
    }
    return status;
}

/* The next part of the line is seen with the end of this one. */
static bugpack_status keep_line(struct search *search) {
    struct bp_redact_line *line = search->line;
    const bp_redactor *redactor = search->redactor;
    size_t begin = search->is_plain ? 0 : redactor->view.message_from;
    size_t from = search->earlier_from, to = search->text.size;
    from = from < begin ? begin : from;
    if (to - from > earlier_max_bytes) {
        line->is_swallowed = true;
        line->rule = redactor->span_count > 0 ? redactor->spans[redactor->span_count - 1].rule : 0;
        from = to - earlier_max_bytes;
    }
    bp_buffer_clear(&line->text);
    return bp_buffer_append(&line->text, search->text.bytes + from, to - from);
}

/* What is behind a secret without an end is a part of it, up to the end of the line. */
static bugpack_status swallow_message(struct search *search) {
    const bp_view *view = &search->redactor->view;
    const bp_hit hit = {.from = view->message_from,
                        .to = view->message_to,
                        .match_from = view->message_from,
                        .rule = search->line->rule};
    return view->message_to > 0 ? add_span(search, &hit) : BUGPACK_OK;
}

static bugpack_status end_record(struct search *search) {
    bp_redact_record *record = search->record;
    bp_scan *scan = &search->redactor->scan;
    bool has_blocks = scan->has_block_begin || scan->open_count > 0;
    bugpack_status status = BUGPACK_OK;
    if (search->mode != BP_CODES_SHOWN && (has_blocks || search->line != NULL)) {
        status = see(search, BP_CODES_SHOWN, record->end, NULL);
    }
    if (status == BUGPACK_OK && has_blocks) {
        scan->hit_count = 0;
        status = bp_scan_blocks(scan, &search->text, record->stream);
        for (size_t i = 0; i < scan->hit_count && status == BUGPACK_OK; i++) {
            status = add_span(search, &scan->hits[i]);
        }
    }
    if (status == BUGPACK_OK && record->unfinished && search->line != NULL) {
        status = keep_line(search);
    }
    return status;
}

bugpack_status bp_redact_record_search(bp_redactor *redactor, bp_redact_record *record) {
    struct search search = {.redactor = redactor, .record = record, .undecided_from = SIZE_MAX};
    bp_scan *scan = &redactor->scan;
    search.has_lines =
        !record->is_piece && !scan->is_of_traffic && (!record->is_json || record->stream != 0);
    search.has_codes = true;
    search.has_codes = !record->is_json && has_codes(&search, BP_CODES_DECODED);
    record->end = record->size;
    redactor->span_count = 0;
    if ((record->continues || record->unfinished) && record->stream != 0) {
        search.line = find_line(redactor, record->stream, record->unfinished);
    }
    if (search.line != NULL) {
        search.line->age = ++redactor->line_age;
    }
    bugpack_status status = BUGPACK_OK;
    if (scan->is_of_traffic) {
        status = find_hits(&search, BP_CODES_KEPT);
    }
    if (status == BUGPACK_OK && (!scan->is_of_traffic || has_codes(&search, BP_CODES_SHOWN))) {
        status = find_hits(&search, BP_CODES_SHOWN);
    }
    bool has_block_begin = scan->has_block_begin;
    if (status == BUGPACK_OK && search.line != NULL && search.line->is_swallowed) {
        status = record->continues ? swallow_message(&search) : BUGPACK_OK;
        search.line->is_swallowed = record->continues;
    }
    bool decodes = search.is_plain ? search.has_codes : redactor->view.decodes;
    if (status == BUGPACK_OK && decodes) {
        status = find_hits(&search, BP_CODES_DECODED);
    }
    scan->has_block_begin = has_block_begin;
    merge_spans(redactor);
    if (status == BUGPACK_OK && record->is_piece) {
        status = divide(&search);
    }
    if (record->is_json) {
        record->ends_in_string = redactor->view.is_in_string;
        redactor->names = redactor->view.names;
    }
    if (status == BUGPACK_OK) {
        status = end_record(&search);
        merge_spans(redactor);
    }
    return status;
}

/* Whether a text is what a secret was overwritten with, which may have been cut. */
static bool is_filler(const unsigned char *text, size_t byte_count) {
    size_t length = sizeof BP_TAG_PREFIX - 1;
    return memcmp(text, BP_TAG_PREFIX, byte_count < length ? byte_count : length) == 0;
}

/* The tag, cut or filled up to the length of what it replaces. */
static void overwrite(const bp_redactor *redactor, const bp_redact_span *span,
                      unsigned char *bytes) {
    char tag[BP_TAG_BYTES];
    const char *rule = bp_rule_set_rule(redactor->set, span->rule)->id;
    size_t length = bp_tag_print(&redactor->key, rule, span->hash, tag);
    size_t byte_count = span->to - span->from;
    memset(bytes + span->from, 'x', byte_count);
    memcpy(bytes + span->from, tag, length < byte_count ? length : byte_count);
}

bugpack_status bp_redactor_overwrite(bp_redactor *redactor, unsigned char *bytes, size_t byte_count,
                                     size_t count_from, size_t count_to) {
    bp_scan *scan = &redactor->scan;
    bp_redact_record record = {.raw = (const char *)bytes, .size = byte_count};
    bp_scan_reset(scan);
    scan->is_of_traffic = true;
    bugpack_status status = bp_redact_record_search(redactor, &record);
    for (size_t i = 0; status == BUGPACK_OK && i < redactor->span_count; i++) {
        const bp_redact_span *span = &redactor->spans[i];
        if (!is_filler(bytes + span->from, span->to - span->from)) {
            redactor->counts[span->rule] += span->from >= count_from && span->from < count_to;
            overwrite(redactor, span, bytes);
        }
    }
    bp_scan_reset(scan);
    scan->is_of_traffic = false;
    return status;
}
