/*
 * The secrets of one record: what it looks like, what the rules find there, where that is in the
 * record, and up to where that is certain.
 */
#include "redact/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum {
    margin_bytes = 1024,           /* before the end of a piece, where a keyword may be cut */
    blank_max_bytes = 1024,        /* before that, for a place between words */
    line_end_max_bytes = 8 * 1024, /* the same, between lines of a document */
    earlier_min_bytes = 1024,      /* of a line, that are seen with its next part */
    earlier_max_bytes = 16 * 1024,
    lines_max_bytes = 2048, /* of whole lines, that are seen with the next one */
    near_max_count = 16     /* records of others between two of them */
};

/* The line of a stream that is followed; instead of the one that was not for the longest time if
 * `makes`, else NULL. */
static struct bp_redact_line *find_line(bp_redactor *redactor, uint64_t stream, bool makes) {
    struct bp_redact_line *oldest = &redactor->lines[0];
    for (size_t i = 0; i < BP_REDACT_LINES; i++) {
        struct bp_redact_line *line = &redactor->lines[i];
        if (line->stream == stream) {
            line->age = ++redactor->line_age;
            return line;
        }
        oldest = line->age < oldest->age ? line : oldest;
    }
    if (!makes) {
        return NULL;
    }
    bp_buffer_clear(&oldest->text);
    *oldest = (struct bp_redact_line){
        .stream = stream, .age = ++redactor->line_age, .text = oldest->text};
    return oldest;
}

/* True if a text needs a view: codes that are shown as something else are among the others. */
static bool has_codes(const bp_redact_record *record, bp_code_mode mode) {
    bp_code code;
    return record->has_codes && mode != BP_CODES_KEPT &&
           bp_code_find((const unsigned char *)record->raw, record->size, 0, mode, &code);
}

/* Sees the first `size` bytes of the record. */
static bugpack_status see(bp_redactor *redactor, bp_redact_record *record, bp_code_mode mode,
                          size_t size, bp_view_value *value) {
    const struct bp_redact_line *line =
        (record->part & BUGPACK_PART_CONTINUES) != 0 || record->follows ? record->line : NULL;
    bp_view *view = &redactor->view;
    bool is_cut = (record->part & (BUGPACK_PART_UNFINISHED | BP_PART_WAS_CUT)) != 0;
    bugpack_status status = BUGPACK_OK;
    record->mode = mode;
    if (!record->is_json && line == NULL && !has_codes(record, mode)) {
        bp_view_plain(view, record->raw, size);
        view->decodes = record->has_codes;
    } else {
        bp_view_how how = {.mode = mode,
                           .is_in_string = record->is_in_string,
                           .earlier = line != NULL ? bp_buffer_text(&line->text) : NULL,
                           .earlier_bytes = line != NULL ? line->text.size : 0,
                           .keywords = redactor->set->keywords,
                           .value = value,
                           .context = &redactor->scan};
        view->names = redactor->names;
        status = record->is_json ? bp_view_json(view, record->raw, size, &how)
                                 : bp_view_text(view, record->raw, size, &how);
    }
    view->goes_on = record->is_piece || is_cut;
    if (is_cut && !record->is_piece && view->message_to > 0) { /* the rest is about the message */
        view->size = view->message_to;
    }
    return status;
}

/* Adds where a hit is in the record, unless it is in earlier ones. */
static bugpack_status add_span(bp_redactor *redactor, const bp_hit *hit) {
    const bp_view *view = &redactor->view;
    if (!bp_array_reserve(&redactor->spans, redactor->span_count, &redactor->span_capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    bp_redact_span *span = &redactor->spans[redactor->span_count];
    *span = (bp_redact_span){
        .from = bp_view_raw(view, hit->from),
        .to = bp_view_raw_end(view, hit->to),
        .match_from = bp_view_raw(view, hit->match_from),
        .hash = bp_tag_hash(&redactor->key, view->text + hit->from, hit->to - hit->from),
        .rule = hit->rule};
    span->is_bare = bp_view_is_bare(view, hit->from, &span->from, &span->to);
    redactor->span_count += span->from < span->to;
    return BUGPACK_OK;
}

static void note_undecided(const bp_view *view, bp_redact_record *record, size_t match_from) {
    size_t from = bp_view_raw(view, match_from);
    record->undecided_from = from < record->undecided_from ? from : record->undecided_from;
    if (record->mode == BP_CODES_SHOWN && match_from < record->earlier_from) {
        record->earlier_from = match_from;
    }
}

/* No more of it can be held. */
static bool is_full(const bp_redact_record *record) {
    return record->is_piece && record->size >= BP_REDACT_RECORD_MAX;
}

/* The spans of all hits. A hit up to the end of a text that goes on may go on as well. */
static bugpack_status add_spans(bp_redactor *redactor, bp_redact_record *record) {
    const bp_scan *scan = &redactor->scan;
    const bp_view *view = &redactor->view;
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < scan->hit_count && status == BUGPACK_OK; i++) {
        const bp_hit *hit = &scan->hits[i];
        status = add_span(redactor, hit);
        if (view->goes_on && hit->to >= view->size) {
            note_undecided(view, record, hit->match_from);
        }
    }
    if (scan->is_undecided) {
        note_undecided(view, record, scan->undecided.match_from);
        if (status == BUGPACK_OK && (!record->is_piece || is_full(record))) {
            status = add_span(redactor, &scan->undecided);
        }
    }
    return status;
}

/* A place near the end of a piece that divides no word, escape or character if that is possible. */
static size_t find_safe_end(const bp_view *view, const bp_redact_record *record) {
    size_t last = view->size > margin_bytes ? view->size - margin_bytes : 0, at = last;
    while (at > 0 && last - at < blank_max_bytes && view->text[at] < BP_VIEW_BARE &&
           memchr(" \t\n", view->text[at], 3) == NULL) {
        at--;
    }
    at = last - at < blank_max_bytes ? at : last;
    while (at > 0 && (view->text[at] & 0xC0) == 0x80) {
        at--;
    }
    size_t end = bp_view_raw(view, at), line = end;
    while (record->is_json && line > 0 && end - line < line_end_max_bytes) {
        if (record->raw[--line] == '\n') {
            return line + 1;
        }
    }
    return end;
}

/* All that the rules find in the record as it is seen in this way. */
static bugpack_status find_spans(bp_redactor *redactor, bp_redact_record *record,
                                 bp_code_mode mode) {
    bp_scan *scan = &redactor->scan;
    const bp_view *view = &redactor->view;
    scan->hit_count = 0;
    scan->is_undecided = false;
    scan->is_decoded = mode != BP_CODES_KEPT;
    bugpack_status status = see(redactor, record, mode, record->size, bp_nested_value);
    if (status != BUGPACK_OK) {
        return status;
    }
    scan->lines_from = view->message_from + (record->follows ? record->line->text.size : 0);
    if (mode == BP_CODES_SHOWN) {
        record->earlier_from = view->size > earlier_min_bytes ? view->size - earlier_min_bytes : 0;
        record->safe_end = record->is_piece ? find_safe_end(view, record) : 0;
    }
    status = bp_scan_record(scan, view);
    if (status == BUGPACK_OK) {
        status = bp_nested_search(scan, view);
    }
    return status == BUGPACK_OK ? add_spans(redactor, record) : status;
}

static int compare_spans(const void *one, const void *other) {
    const bp_redact_span *a = one, *b = other;
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    return (a->to < b->to) - (a->to > b->to);
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

/* Divides a piece where no match is divided. Where that would hold back more than half of what can
 * be held, all of it is searched, and a secret that goes on takes the rest of its line with it. */
static bugpack_status divide(bp_redactor *redactor, bp_redact_record *record) {
    const bp_view *view = &redactor->view;
    size_t end =
        record->safe_end < record->undecided_from ? record->safe_end : record->undecided_from;
    for (size_t i = redactor->span_count; i > 0 && redactor->spans[i - 1].to > end; i--) {
        size_t from = redactor->spans[i - 1].match_from;
        end = from < end ? from : end;
    }
    bool is_forced = is_full(record) && end < record->size / 2;
    record->end = is_forced ? record->size : end;
    record->is_swallowed = is_forced && record->undecided_from < record->size;
    bugpack_status status = see(redactor, record, BP_CODES_SHOWN, record->end, NULL);
    size_t size = view->size, least = is_full(record) ? size / 2 : 0; /* there may be only keys */
    while (view->is_json && size > least && view->text[size - 1] == BP_VIEW_KEY) {
        do { /* a key goes with its value */
            size--;
        } while (size > 0 && view->text[size - 1] < BP_VIEW_BARE);
    }
    if (status == BUGPACK_OK && !is_forced && size < view->size) {
        size_t key = bp_view_raw(view, size);
        record->end = key > 0 ? key - 1 : 0;
        status = see(redactor, record, BP_CODES_SHOWN, record->end, NULL);
    }
    while (redactor->span_count > 0 && !is_forced &&
           redactor->spans[redactor->span_count - 1].to > record->end) {
        redactor->span_count--;
    }
    return status;
}

/* The next part of the line is seen with the end of this one. */
static bugpack_status keep_line(const bp_redactor *redactor, const bp_redact_record *record) {
    struct bp_redact_line *line = record->line;
    const bp_view *view = &redactor->view;
    size_t from = record->earlier_from, to = view->size;
    from = from < view->message_from ? view->message_from : from;
    if (to - from > earlier_max_bytes) {
        line->is_swallowed = true;
        line->rule = redactor->span_count > 0 ? redactor->spans[redactor->span_count - 1].rule : 0;
        from = to - earlier_max_bytes;
    }
    bp_buffer_clear(&line->text);
    line->lines_left = 0;
    return bp_buffer_append(&line->text, view->text + from, to - from);
}

/* True if a record is a whole line of a log. */
static bool is_whole_line(const bp_redact_record *record) {
    const unsigned parts = BUGPACK_PART_CONTINUES | BUGPACK_PART_UNFINISHED | BP_PART_WAS_CUT;
    return record->is_json && record->stream != 0 && !record->is_piece && !record->is_in_string &&
           (record->part & parts) == 0;
}

/* The lines of its stream that a match may have begun in, where the first one behind the name
 * begins as a value does, or the head of a part of a form. */
static void find_lines_before(bp_redactor *redactor, bp_redact_record *record) {
    static const char message[] = "\"message\":\"", begins[] = " \\\"<-C";
    struct bp_redact_line *line =
        is_whole_line(record) ? find_line(redactor, record->stream, false) : NULL;
    if (line == NULL || line->lines_left == 0) {
        return;
    }
    const char *text = memmem(record->raw, record->size - 1, message, sizeof message - 1);
    if (text != NULL && !line->is_joined) {
        line->is_joined = memchr(begins, text[sizeof message - 1], sizeof begins - 1) != NULL;
    }
    record->follows = line->is_joined;
    record->line = line->is_joined ? line : NULL;
    line->lines_left = line->is_joined ? line->lines_left : 0;
}

/* Keeps a whole line for the next one of its stream, if a match may go on there. */
static bugpack_status keep_whole_line(bp_redactor *redactor, bp_redact_record *record) {
    const bp_view *view = &redactor->view;
    unsigned count = redactor->scan.line_count;
    struct bp_redact_line *line =
        record->line != NULL || count > 0 ? find_line(redactor, record->stream, true) : NULL;
    redactor->near_count -= redactor->near_count > 0;
    bool has_message = view->message_to > 0 && view->message_to <= view->size;
    if (line == NULL || !has_message) {
        return BUGPACK_OK;
    }
    unsigned left = record->line != NULL ? line->lines_left - 1 : 0;
    size_t byte_count = view->message_to - view->message_from, kept = line->text.size;
    size_t from =
        byte_count > lines_max_bytes ? view->message_to - lines_max_bytes : view->message_from;
    line->lines_left = count > left ? count : left;
    line->is_joined = record->line != NULL;
    if (record->line == NULL || kept + byte_count > lines_max_bytes) {
        bp_buffer_clear(&line->text);
    }
    redactor->near_count = line->lines_left > 0 ? near_max_count : redactor->near_count;
    bugpack_status status =
        bp_buffer_append(&line->text, view->text + from, view->message_to - from);
    return status == BUGPACK_OK ? bp_buffer_append_char(&line->text, '\n') : status;
}

/* A secret without an end extends to the end of the line. */
static bugpack_status swallow_message(bp_redactor *redactor, bp_redact_record *record) {
    const bp_view *view = &redactor->view;
    record->line->is_swallowed = (record->part & BUGPACK_PART_CONTINUES) != 0;
    if (!record->line->is_swallowed || view->message_to == 0) {
        return BUGPACK_OK;
    }
    return add_span(redactor, &(bp_hit){.from = view->message_from,
                                        .to = view->message_to,
                                        .match_from = view->message_from,
                                        .rule = record->line->rule});
}

/* Blocks of lines, and what is kept of a line, once it is certain what was searched. */
static bugpack_status end_record(bp_redactor *redactor, bp_redact_record *record) {
    bp_scan *scan = &redactor->scan;
    bool has_blocks = scan->has_block_begin || scan->open_count > 0;
    bugpack_status status = BUGPACK_OK;
    bool sees_again = record->follows || (is_whole_line(record) && scan->line_count > 0 &&
                                          record->mode != BP_CODES_SHOWN);
    record->follows = false;
    if (sees_again || (record->mode != BP_CODES_SHOWN && (has_blocks || record->line != NULL))) {
        status = see(redactor, record, BP_CODES_SHOWN, record->end, NULL);
    }
    if (status == BUGPACK_OK && has_blocks) {
        scan->hit_count = 0;
        status = bp_scan_blocks(scan, &redactor->view, record->stream);
        for (size_t i = 0; i < scan->hit_count && status == BUGPACK_OK; i++) {
            status = add_span(redactor, &scan->hits[i]);
        }
    }
    bool goes_on = (record->part & BUGPACK_PART_UNFINISHED) != 0 && record->line != NULL;
    if (status == BUGPACK_OK && is_whole_line(record)) {
        return keep_whole_line(redactor, record);
    }
    return status == BUGPACK_OK && goes_on ? keep_line(redactor, record) : status;
}

bugpack_status bp_redact_record_search(bp_redactor *redactor, bp_redact_record *record) {
    const unsigned line_flags = BUGPACK_PART_CONTINUES | BUGPACK_PART_UNFINISHED;
    bp_scan *scan = &redactor->scan;
    bugpack_status status = BUGPACK_OK;
    record->end = record->size;
    record->undecided_from = SIZE_MAX;
    record->has_codes = true;
    record->has_codes = !record->is_json && has_codes(record, BP_CODES_DECODED);
    redactor->span_count = 0;
    if ((record->part & line_flags) != 0 && record->stream != 0) {
        bool makes = (record->part & BUGPACK_PART_UNFINISHED) != 0;
        record->line = find_line(redactor, record->stream, makes);
    } else {
        find_lines_before(redactor, record);
    }
    scan->line_count = 0;
    if (scan->is_of_traffic) {
        status = find_spans(redactor, record, BP_CODES_KEPT);
    }
    if (status == BUGPACK_OK && (!scan->is_of_traffic || has_codes(record, BP_CODES_SHOWN))) {
        status = find_spans(redactor, record, BP_CODES_SHOWN);
    }
    bool has_block_begin = scan->has_block_begin; /* not what is in another view */
    if (status == BUGPACK_OK && record->line != NULL && record->line->is_swallowed) {
        status = swallow_message(redactor, record);
    }
    if (status == BUGPACK_OK && redactor->view.decodes) {
        status = find_spans(redactor, record, BP_CODES_DECODED);
    }
    scan->has_block_begin = has_block_begin;
    merge_spans(redactor);
    if (status == BUGPACK_OK && record->is_piece) {
        status = divide(redactor, record);
    }
    if (status == BUGPACK_OK) {
        status = end_record(redactor, record);
        merge_spans(redactor);
    }
    if (record->is_json) {
        record->is_in_string = redactor->view.is_in_string;
        redactor->names = redactor->view.names;
    }
    return status;
}

/* True if a text is what a secret was overwritten with, which may have been cut. */
static bool is_filler(const unsigned char *text, size_t byte_count) {
    size_t length = sizeof BP_TAG_PREFIX - 1;
    return memcmp(text, BP_TAG_PREFIX, byte_count < length ? byte_count : length) == 0;
}

/* The tag, cut or filled up to the length of what it replaces. */
static void overwrite(const bp_redactor *redactor, const bp_redact_span *span,
                      unsigned char *bytes) {
    char tag[BP_TAG_BYTES];
    const char *rule = redactor->set->list.rules[span->rule].id;
    size_t length = bp_tag_print(&redactor->key, rule, span->hash, tag);
    size_t byte_count = span->to - span->from;
    memset(bytes + span->from, 'x', byte_count);
    memcpy(bytes + span->from, tag, length < byte_count ? length : byte_count);
}

bugpack_status bp_redactor_overwrite(bp_redactor *redactor, unsigned char *bytes, size_t byte_count,
                                     size_t from, size_t to) {
    bp_scan *scan = &redactor->scan;
    bp_redact_record record = {.raw = (const char *)bytes, .size = byte_count};
    bp_scan_reset(scan);
    scan->is_of_traffic = true;
    bugpack_status status = bp_redact_record_search(redactor, &record);
    for (size_t i = 0; status == BUGPACK_OK && i < redactor->span_count; i++) {
        const bp_redact_span *span = &redactor->spans[i];
        if (span->from >= from && span->from < to &&
            !is_filler(bytes + span->from, span->to - span->from)) {
            redactor->counts[span->rule]++;
            overwrite(redactor, span, bytes);
        }
    }
    bp_scan_reset(scan);
    scan->is_of_traffic = false;
    return status;
}
