#include "redact/redactor.h"

#include <stdlib.h>
#include <string.h>

#include "redact/redactor_private.h"

enum {
    block_bytes = 64 * 1024, /* searched at a time */
    record_max_bytes = BP_REDACT_RECORD_MAX,
    overlap_bytes = 8 * 1024
};

bp_redactor *bp_redactor_new(const bp_rule_set *set) {
    bp_redactor *redactor = calloc(1, sizeof *redactor);
    if (redactor == NULL) {
        return NULL;
    }
    redactor->set = set;
    redactor->counts = calloc(bp_rule_set_count(set) + 1, sizeof *redactor->counts);
    bp_tag_key_new(&redactor->key);
    bp_buffer_init(&redactor->entry.held, record_max_bytes + 1);
    bool has_base64 = set->list.reads_base64;
    redactor->base64 = has_base64 ? bp_base64_new(set) : NULL;
    if (bp_scan_init(&redactor->scan, set) != BUGPACK_OK || redactor->counts == NULL ||
        (has_base64 && redactor->base64 == NULL)) {
        bp_redactor_free(redactor);
        return NULL;
    }
    return redactor;
}

void bp_redactor_free(bp_redactor *redactor) {
    if (redactor != NULL) {
        bp_tag_key_clear(&redactor->key);
        bp_scan_release(&redactor->scan);
        bp_view_release(&redactor->view);
        bp_base64_free(redactor->base64);
        bp_buffer_release(&redactor->entry.held);
        free(redactor->counts);
        free(redactor);
    }
}

void bp_redactor_begin(bp_redactor *redactor, bp_redact_form form) {
    struct bp_redact_entry *entry = &redactor->entry;
    bp_scan_reset(&redactor->scan);
    memset(redactor->counts, 0, bp_rule_set_count(redactor->set) * sizeof *redactor->counts);
    bp_buffer_clear(&entry->held);
    *entry = (struct bp_redact_entry){.form = form, .held = entry->held};
    redactor->names.count = 0;
}

bool bp_redactor_is_searched(const bp_redactor *redactor) {
    return redactor->entry.form != BP_REDACT_BINARY;
}

const uint64_t *bp_redactor_counts(const bp_redactor *redactor) {
    return redactor->counts;
}

static bool is_json(const struct bp_redact_entry *entry) {
    return entry->form == BP_REDACT_JSON || entry->form == BP_REDACT_JSON_LINES;
}

static bugpack_status pass(const struct bp_redact_entry *entry, const void *bytes,
                           size_t byte_count) {
    return byte_count > 0 ? entry->pass_on(entry->context, bytes, byte_count) : BUGPACK_OK;
}

/* A record being rewritten. `view` is NULL where the text is searched as it is. */
struct rewriting {
    const char *raw;
    const bp_view *view;
    size_t done; /* of `raw` */
};

static bugpack_status replace(bp_redactor *redactor, struct rewriting *rewriting,
                              const bp_hit *hit) {
    const bp_view *view = rewriting->view;
    size_t from = view != NULL ? bp_view_raw(view, hit->from) : hit->from;
    size_t to = view != NULL ? bp_view_raw(view, hit->to) : hit->to;
    bool is_bare = view != NULL && bp_view_is_bare(view, hit->from, &from, &to);
    const char *text = view != NULL ? (const char *)view->text : rewriting->raw;
    const char *rule = bp_rule_set_rule(redactor->set, hit->rule)->id;
    char tag[BP_TAG_BYTES];
    size_t length = bp_tag_print(&redactor->key, rule, text + hit->from, hit->to - hit->from, tag);
    redactor->counts[hit->rule]++;
    bugpack_status status =
        pass(&redactor->entry, rewriting->raw + rewriting->done, from - rewriting->done);
    if (status == BUGPACK_OK && is_bare) {
        status = pass(&redactor->entry, "\"", 1);
    }
    if (status == BUGPACK_OK) {
        status = pass(&redactor->entry, tag, length);
    }
    if (status == BUGPACK_OK && is_bare) {
        status = pass(&redactor->entry, "\"", 1);
    }
    rewriting->done = to;
    return status;
}

/* Which thread and channel a record of logs.jsonl is of; 0 where it is another one. */
static uint64_t find_stream(const bp_redactor *redactor, const char *raw, size_t size) {
    static const char begin[] = "\"level\":", end[] = "\"message\":";
    if (redactor->entry.form != BP_REDACT_JSON_LINES) {
        return redactor->entry.stream;
    }
    const char *to = memmem(raw, size, end, sizeof end - 1);
    const char *from = to != NULL ? memmem(raw, (size_t)(to - raw), begin, sizeof begin - 1) : NULL;
    from = from != NULL ? memchr(from, ',', (size_t)(to - from)) : NULL;
    return from != NULL ? bp_tag_hash(&redactor->key, from, (size_t)(to - from)) : 0;
}

/* Makes the view of a record where there is one, and fills `hits`. */
static bugpack_status find_hits(bp_redactor *redactor, const char *raw, size_t size, size_t cut_at,
                                bool has_view) {
    bool is_in_json = is_json(&redactor->entry);
    bp_view *view = &redactor->view;
    bp_scan *scan = &redactor->scan;
    const bp_view_below below = {redactor->set->keywords, bp_nested_value, scan};
    bugpack_status status = BUGPACK_OK;
    scan->hit_count = 0;
    if (is_in_json) {
        view->names = redactor->names;
        status = bp_view_json(view, raw, size, redactor->entry.is_in_string, cut_at, &below);
    } else if (has_view) {
        status = bp_view_text(view, raw, size, cut_at);
    }
    const unsigned char *text = has_view ? view->text : (const unsigned char *)raw;
    size_t seen = has_view ? view->size : size;
    if (status == BUGPACK_OK) {
        status = bp_scan_record(scan, text, seen, is_in_json, find_stream(redactor, raw, size));
    }
    if (status == BUGPACK_OK) {
        status = bp_nested_search(scan, text, seen, is_in_json);
    }
    if (status == BUGPACK_OK && redactor->base64 != NULL) {
        status = bp_base64_search(redactor->base64, text, seen, scan);
    }
    return status;
}

/*
 * Searches a record and passes it on, up to where it may be divided if `cut_at` is given; returns
 * how far that is.
 */
static bugpack_status search_record(bp_redactor *redactor, const char *raw, size_t size,
                                    size_t cut_at, size_t *ret_done) {
    struct bp_redact_entry *entry = &redactor->entry;
    bp_view *view = &redactor->view;
    bool has_view = is_json(entry) || cut_at < size || memmem(raw, size, "\\u00", 4) != NULL;
    bugpack_status status = find_hits(redactor, raw, size, cut_at, has_view);
    struct rewriting rewriting = {.raw = raw, .view = has_view ? view : NULL};
    size_t seen = has_view ? view->size : size, end = size, end_view = seen;
    bool is_cut = has_view && cut_at < size && view->cut_raw > 0;
    bool is_cut_in_string = has_view && (is_cut ? view->is_cut_in_string : view->is_in_string);
    if (is_cut) {
        end = view->cut_raw;
        end_view = view->cut_view;
    }
    for (size_t i = 0; status == BUGPACK_OK && i < redactor->scan.hit_count; i++) {
        bp_hit hit = redactor->scan.hits[i];
        if (hit.from >= end_view) {
            break;
        }
        status = replace(redactor, &rewriting, &hit);
        if (hit.to > end_view) { /* it goes on behind the cut, perhaps behind what is there */
            entry->is_swallowing = hit.to >= seen;
            end = rewriting.done;
            is_cut_in_string = is_json(entry) && (view->is_in_string || hit.to < seen);
        }
    }
    if (status == BUGPACK_OK && rewriting.done < end) {
        status = pass(entry, raw + rewriting.done, end - rewriting.done);
    }
    entry->is_in_string = cut_at < size && is_cut_in_string;
    if (is_json(entry)) { /* a line of JSON Lines ends what it began */
        bool is_line = entry->form == BP_REDACT_JSON_LINES;
        redactor->names = is_cut ? view->cut_names : is_line ? (bp_names){0} : view->names;
    }
    *ret_done = end;
    return status;
}

/* memrchr, which macOS does not have. NULL where it is not there. */
static const char *find_last_line_end(const char *raw, size_t size) {
    while (size > 0 && raw[size - 1] != '\n') {
        size--;
    }
    return size > 0 ? raw + size - 1 : NULL;
}

/*
 * The first escape that may hide a keyword, which is searched for in the record as it is. In JSON
 * \" and \\ hide none; what follows \n would be taken for a part of a word.
 */
static const char *find_escape(const struct bp_redact_entry *entry, const char *from,
                               const char *to) {
    while ((from = memchr(from, '\\', (size_t)(to - from))) != NULL) {
        bool is_ascii = to - from >= 6 && memcmp(from + 1, "u00", 3) == 0;
        bool is_quote = to - from >= 2 && (from[1] == '"' || from[1] == '\\');
        bool is_nested = is_quote && to - from >= 5 && memcmp(from + 2, "u00", 3) == 0;
        if (is_ascii || is_nested || (is_json(entry) && !is_quote)) {
            return from;
        }
        from += is_json(entry) ? 2 : 1;
    }
    return to;
}

/* The first mark at or behind `at`; `size` where there is none. */
static size_t find_mark(const uint64_t *marks, size_t size, size_t at) {
    size_t words = BP_KEYWORD_MARK_WORDS(size);
    for (size_t word = at / 64; word < words; word++) {
        uint64_t bits = marks[word];
        if (word == at / 64) {
            bits &= UINT64_MAX << at % 64;
        }
        if (bits != 0) {
            return word * 64 + (size_t)__builtin_ctzll(bits);
        }
    }
    return size;
}

/* The first byte at or behind `at` whose line has to be looked at; `size` where none has.
 * `*escape` is the first escape that was found. */
static size_t find_next(const bp_redactor *redactor, const char *raw, size_t size, size_t at,
                        size_t *escape) {
    if (redactor->scan.open_count > 0 || redactor->names.count > 0 || redactor->set->searches_all) {
        return at;
    }
    if (*escape < at || at == 0) {
        *escape = (size_t)(find_escape(&redactor->entry, raw + at, raw + size) - raw);
    }
    size_t mark = find_mark(redactor->marks, size, at);
    mark = mark < *escape ? mark : *escape;
    return redactor->base64 != NULL ? bp_base64_find(raw, mark, at) : mark;
}

/* Whole lines, or with JSON of several lines whole values. */
static bugpack_status search_block(bp_redactor *redactor, const char *raw, size_t size) {
    size_t escape = 0, passed = 0, at = 0;
    bugpack_status status = BUGPACK_OK;
    bp_keywords_mark(redactor->set->keywords, (const unsigned char *)raw, size, redactor->marks);
    while (status == BUGPACK_OK && at < size) {
        size_t next = find_next(redactor, raw, size, at, &escape);
        if (next >= size) {
            break;
        }
        size_t from = at, to = size, done = 0;
        if (redactor->entry.form != BP_REDACT_JSON) {
            const char *line = find_last_line_end(raw + at, next - at);
            const char *line_end = memchr(raw + next, '\n', size - next);
            from = line != NULL ? (size_t)(line + 1 - raw) : at;
            to = line_end != NULL ? (size_t)(line_end + 1 - raw) : size;
            to = redactor->base64 != NULL ? bp_base64_find_end(raw, size, to) : to;
        }
        status = pass(&redactor->entry, raw + passed, from - passed);
        if (status == BUGPACK_OK) {
            status = search_record(redactor, raw + from, to - from, SIZE_MAX, &done);
        }
        passed = at = to;
    }
    return status == BUGPACK_OK ? pass(&redactor->entry, raw + passed, size - passed) : status;
}

/* Whether JSON may be divided behind this line end: not between a key, or an option of a command
 * line, and its value. */
static bool is_between_values(const char *raw, size_t end) {
    size_t last = end;
    while (last > 0 && strchr(" \t\r\n", raw[last - 1]) != NULL) {
        last--;
    }
    const char *line = last > 0 ? find_last_line_end(raw, last) : NULL;
    const char *from = line != NULL ? line + 1 : raw;
    return last == 0 ||
           (raw[last - 1] != ':' && memmem(from, (size_t)(raw + last - from), "\"-", 2) == NULL);
}

static size_t find_safe_end(const struct bp_redact_entry *entry) {
    const char *raw = bp_buffer_text(&entry->held);
    size_t end = entry->held.size;
    const char *line;
    while ((line = find_last_line_end(raw, end)) != NULL) {
        end = (size_t)(line - raw);
        if (entry->form != BP_REDACT_JSON || is_between_values(raw, end)) {
            return end + 1;
        }
    }
    return 0;
}

/* How much of the buffer is the rest of a secret that was replaced: to the end of its line or
 * string.
 */
static size_t find_swallowed(struct bp_redact_entry *entry) {
    const char *raw = bp_buffer_text(&entry->held);
    for (size_t i = 0; i < entry->held.size; i++) {
        if (raw[i] == '\n' || (entry->is_in_string && raw[i] == '"')) {
            entry->is_swallowing = false;
            return i;
        }
        i += entry->is_in_string && raw[i] == '\\';
    }
    return entry->held.size;
}

static bugpack_status drop_front(struct bp_redact_entry *entry, size_t count) {
    bp_buffer *held = &entry->held;
    if (count > 0) {
        memmove(held->data, held->data + count, held->size - count);
        held->size -= count;
    }
    return BUGPACK_OK;
}

static bugpack_status search_held(bp_redactor *redactor, bool is_last) {
    struct bp_redact_entry *entry = &redactor->entry;
    bugpack_status status = BUGPACK_OK;
    if (entry->is_swallowing) {
        (void)drop_front(entry, find_swallowed(entry));
    }
    size_t size = entry->held.size, done = is_last ? size : find_safe_end(entry);
    const char *raw = bp_buffer_text(&entry->held);
    if (entry->is_in_string) { /* the rest of a long record: never divided by lines */
        bool is_whole = is_last || size < record_max_bytes;
        if (is_whole && !is_last && done == 0) {
            return BUGPACK_OK;
        }
        status = search_record(redactor, raw, is_whole ? done : size,
                               is_whole ? SIZE_MAX : size - overlap_bytes, &done);
    } else if (done > 0) {
        status = search_block(redactor, raw, done);
    } else if (size >= record_max_bytes) {
        status = search_record(redactor, raw, size, size - overlap_bytes, &done);
    }
    return status == BUGPACK_OK ? drop_front(entry, done) : status;
}

bugpack_status bp_redactor_write(bp_redactor *redactor, const void *bytes, size_t byte_count,
                                 bp_sink *pass_on, void *context) {
    struct bp_redact_entry *entry = &redactor->entry;
    const char *next = bytes;
    bugpack_status status = BUGPACK_OK;
    entry->pass_on = pass_on;
    entry->context = context;
    if (bytes == NULL) {
        return entry->form == BP_REDACT_BINARY ? BUGPACK_OK : search_held(redactor, true);
    }
    if (!entry->is_begun && bp_redact_form_is_binary(entry->form, bytes, byte_count)) {
        entry->form = BP_REDACT_BINARY;
    }
    entry->is_begun = true;
    if (entry->form == BP_REDACT_BINARY) {
        return pass(entry, bytes, byte_count);
    }
    while (status == BUGPACK_OK && byte_count > 0) {
        size_t room = record_max_bytes - entry->held.size;
        size_t aim = entry->held.size < block_bytes ? block_bytes - entry->held.size : room;
        size_t count = byte_count < aim ? byte_count : aim;
        status = bp_buffer_append(&entry->held, next, count);
        next += count;
        byte_count -= count;
        if (status == BUGPACK_OK && entry->held.size >= block_bytes) {
            status = search_held(redactor, false);
        }
    }
    return status;
}

bugpack_status bp_redactor_text(bp_redactor *redactor, const char *text, size_t byte_count,
                                bp_buffer *out) {
    return bp_redactor_message(redactor, 0, text, byte_count, out);
}

void bp_redactor_set_key(bp_redactor *redactor, const bp_tag_key *key) {
    if (redactor != NULL && key != NULL) {
        redactor->key = *key;
    }
}

bugpack_status bp_redactor_message(bp_redactor *redactor, uint64_t stream, const char *text,
                                   size_t byte_count, bp_buffer *out) {
    struct bp_redact_entry open = redactor->entry;
    size_t done = 0;
    redactor->entry = (struct bp_redact_entry){
        .form = BP_REDACT_TEXT, .stream = stream, .pass_on = bp_buffer_sink, .context = out};
    bugpack_status status = search_record(redactor, text, byte_count, SIZE_MAX, &done);
    redactor->entry = open;
    return status;
}
