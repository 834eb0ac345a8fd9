/*
 * The secrets of one record: what it looks like, what the rules find there, where that is in the
 * record, and up to where that is certain.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "redact/redactor_private.h"
#include "redact/table.h"

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
    search->text = (bp_scan_text){
        .bytes = view->text, .size = view->size, .is_json = record->is_json, .goes_on = goes_on};
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
        status = bp_tables_search(scan, &search->text, search->record->stream);
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
