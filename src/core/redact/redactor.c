#include "redact/redactor.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "redact/record.h"

enum {
    block_bytes = 64 * 1024, /* searched at a time */
    record_max_bytes = BP_REDACT_RECORD_MAX,
    lines_max_bytes = 8 * 1024, /* of a match over several lines */
    name_max_bytes = 1024       /* from a keyword to the end of its line, where that may be all */
};
enum { line_max_bytes = 32 * 1024 /* that is kept of a line in several records */ };
enum { look_bytes = 8 * 1024, log_nul_share = 8 };

bp_redact_form bp_redact_form_of(const char *entry) {
    static const struct {
        const char *ending;
        bp_redact_form form;
    } forms[] = {
        {".json", BP_REDACT_JSON},   {".jsonl", BP_REDACT_JSON_LINES}, {".png", BP_REDACT_BINARY},
        {".pcap", BP_REDACT_BINARY}, {".pcapng", BP_REDACT_BINARY},    {".jpg", BP_REDACT_BINARY},
        {".gz", BP_REDACT_BINARY},   {".xz", BP_REDACT_BINARY},        {".zst", BP_REDACT_BINARY},
        {".zip", BP_REDACT_BINARY},  {".log", BP_REDACT_LOG},          {".txt", BP_REDACT_LOG},
    };
    size_t length = strlen(entry);
    const char *slash = strrchr(entry, '/');
    if (strcmp(slash != NULL ? slash + 1 : entry, "traffic.pcap") == 0) {
        return BP_REDACT_FRAMES;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t ending = strlen(forms[i].ending);
        if (length > ending && strcasecmp(entry + length - ending, forms[i].ending) == 0) {
            return forms[i].form;
        }
    }
    return BP_REDACT_TEXT;
}

/* True if the first bytes of a text say that it is none. */
static bool is_binary_text(bp_redact_form form, const void *bytes, size_t byte_count) {
    const char *text = bytes;
    size_t size = byte_count < look_bytes ? byte_count : look_bytes, nul_count = 0;
    for (size_t i = 0; i < size; i++) {
        nul_count += text[i] == '\0';
    }
    /* A log may have holes where it was torn or preallocated. UTF-16 has a NUL in every other byte,
     * and no rule would find anything in it. */
    return (form == BP_REDACT_TEXT && nul_count > 0) ||
           (form == BP_REDACT_LOG && nul_count > size / log_nul_share);
}

bp_redactor *bp_redactor_new(const bp_rule_set *set) {
    bp_redactor *redactor = calloc(1, sizeof *redactor);
    if (redactor == NULL) {
        return NULL;
    }
    redactor->set = set;
    redactor->counts = calloc(set->list.count + 1, sizeof *redactor->counts);
    bp_tag_key_new(&redactor->key);
    bp_buffer_init(&redactor->entry.held, record_max_bytes + 1);
    for (size_t i = 0; i < BP_REDACT_LINES; i++) {
        bp_buffer_init(&redactor->lines[i].text, line_max_bytes);
    }
    if (bp_scan_init(&redactor->scan, set) != BUGPACK_OK || redactor->counts == NULL) {
        bp_redactor_free(redactor);
        return NULL;
    }
    return redactor;
}

static void forget_lines(bp_redactor *redactor) {
    for (size_t i = 0; i < BP_REDACT_LINES; i++) {
        bp_buffer_release(&redactor->lines[i].text);
        redactor->lines[i].stream = 0;
        redactor->lines[i].lines_left = 0;
    }
}

void bp_redactor_free(bp_redactor *redactor) {
    if (redactor != NULL) {
        bp_tag_key_clear(&redactor->key);
        bp_scan_release(&redactor->scan);
        bp_view_release(&redactor->view);
        bp_buffer_release(&redactor->entry.held);
        forget_lines(redactor);
        free(redactor->spans);
        free(redactor->counts);
        free(redactor);
    }
}

void bp_redactor_begin(bp_redactor *redactor, bp_redact_form form) {
    struct bp_redact_entry *entry = &redactor->entry;
    bp_scan_reset(&redactor->scan);
    memset(redactor->counts, 0, redactor->set->list.count * sizeof *redactor->counts);
    bp_buffer_clear(&entry->held);
    *entry = (struct bp_redact_entry){.form = form,
                                      .aim = form == BP_REDACT_FRAMES ? BP_REDACT_FRAMES_BEGIN
                                                                      : block_bytes,
                                      .held = entry->held};
    forget_lines(redactor);
    redactor->near_count = 0;
    redactor->names.count = 0;
}

bool bp_redactor_is_searched(const bp_redactor *redactor) {
    return redactor->entry.form != BP_REDACT_BINARY;
}

const uint64_t *bp_redactor_counts(const bp_redactor *redactor) {
    return redactor->counts;
}

static bool is_passed_on(const struct bp_redact_entry *entry) {
    return entry->form == BP_REDACT_BINARY || entry->form == BP_REDACT_MESSAGES;
}

static bool is_json(const struct bp_redact_entry *entry) {
    return entry->form == BP_REDACT_JSON || entry->form == BP_REDACT_JSON_LINES;
}

static bugpack_status pass(const struct bp_redact_entry *entry, const void *bytes,
                           size_t byte_count) {
    return byte_count > 0 ? entry->pass_on(entry->context, bytes, byte_count) : BUGPACK_OK;
}

/* Puts a tag in the place of a secret; `*done` bytes of the record were passed on. */
static bugpack_status replace(bp_redactor *redactor, const char *raw, const bp_redact_span *span,
                              size_t *done) {
    char text[1 + BP_TAG_BYTES + 1] = "\"";
    const char *rule = redactor->set->list.rules[span->rule].id;
    size_t length = bp_tag_print(&redactor->key, rule, span->hash, text + 1);
    text[1 + length] = '"';
    redactor->counts[span->rule]++;
    bugpack_status status = pass(&redactor->entry, raw + *done, span->from - *done);
    *done = span->to;
    if (status != BUGPACK_OK) {
        return status;
    }
    return span->is_bare ? pass(&redactor->entry, text, length + 2)
                         : pass(&redactor->entry, text + 1, length);
}

/* Searches a record and passes on what was searched of it. */
static bugpack_status redact(bp_redactor *redactor, bp_redact_record *record) {
    size_t done = 0;
    bugpack_status status = bp_redact_record_search(redactor, record);
    for (size_t i = 0; status == BUGPACK_OK && i < redactor->span_count; i++) {
        status = replace(redactor, record->raw, &redactor->spans[i], &done);
    }
    return status == BUGPACK_OK ? pass(&redactor->entry, record->raw + done, record->end - done)
                                : status;
}

/* Names the thread and channel of a record of logs.jsonl; 0 where it is another record. */
static uint64_t find_stream(const bp_redactor *redactor, const char *raw, size_t size) {
    static const char begin[] = "\"level\":", end[] = "\"message\":";
    const char *to = memmem(raw, size, end, sizeof end - 1);
    const char *from = to != NULL ? memmem(raw, (size_t)(to - raw), begin, sizeof begin - 1) : NULL;
    from = from != NULL ? memchr(from, ',', (size_t)(to - from)) : NULL;
    return from != NULL ? bp_tag_hash(&redactor->key, from, (size_t)(to - from)) : 0;
}

/* True if the end of a log record has `"key":true`, which cannot be in a string. */
static bool says(const char *raw, size_t size, const char *member) {
    enum { flags_max_bytes = 80 };
    size_t from = size > flags_max_bytes ? size - flags_max_bytes : 0;
    return memmem(raw + from, size - from, member, strlen(member)) != NULL;
}

/* Redacts what is at the front of the buffer: a line, or all that is left of a document; or with
 * `is_piece` the beginning of a record whose end is not there yet, up to `*ret_done`. */
static bugpack_status redact_front(bp_redactor *redactor, const char *raw, size_t size,
                                   bool is_piece, size_t *ret_done) {
    struct bp_redact_entry *entry = &redactor->entry;
    bp_redact_record record = {.raw = raw,
                               .size = size,
                               .is_json = is_json(entry),
                               .is_piece = is_piece,
                               .is_in_string = entry->is_in_string};
    if (entry->form == BP_REDACT_JSON_LINES) {
        uint64_t stream = find_stream(redactor, raw, size);
        entry->stream = entry->is_in_string && stream == 0 ? entry->stream : stream;
        record.stream = entry->stream;
        record.part = (says(raw, size, "\"continues\":true") ? BUGPACK_PART_CONTINUES : 0u) |
                      (says(raw, size, "\"unfinished\":true") ? BUGPACK_PART_UNFINISHED : 0u) |
                      (says(raw, size, "\"truncated\":true") ? BP_PART_WAS_CUT : 0u);
    }
    bugpack_status status = redact(redactor, &record);
    entry->is_in_string = is_piece && record.is_in_string;
    entry->is_swallowing = record.is_swallowed;
    if (!is_piece) {
        redactor->names = (bp_names){.count = 0};
    }
    *ret_done = record.end;
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
 * The first escape of JSON that may hide a keyword, which is searched for in the record as it is.
 * \" and \\ hide none; what follows \n would be taken for a part of a word.
 */
static const char *find_escape(const char *from, const char *to) {
    while ((from = memchr(from, '\\', (size_t)(to - from))) != NULL) {
        if (to - from < 2 || (from[1] != '"' && from[1] != '\\')) {
            return from;
        }
        from += 2;
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
    const struct bp_redact_entry *entry = &redactor->entry;
    if (redactor->scan.open_count > 0 || redactor->names.count > 0 || entry->is_in_string ||
        redactor->near_count > 0 || redactor->set->searches_all) {
        return at;
    }
    size_t mark = find_mark(redactor->marks, size, at);
    if (is_json(entry)) {
        if (*escape < at || at == 0) {
            *escape = (size_t)(find_escape(raw + at, raw + size) - raw);
        }
        mark = mark < *escape ? mark : *escape;
    }
    return mark;
}

/* The lines behind the one that ends at `end` that a rule may reach whose keyword is near its end,
 * where nothing may be behind a name. */
static unsigned count_lines(const bp_redactor *redactor, const char *raw, size_t end) {
    const bp_rule_set *set = redactor->set;
    size_t from = end > name_max_bytes ? end - name_max_bytes : 0;
    const char *line = end > from ? find_last_line_end(raw + from, end - 1 - from) : NULL;
    size_t at = line != NULL ? (size_t)(line + 1 - raw) : from;
    unsigned count = 0;
    for (; (at = find_mark(redactor->marks, end, at)) < end; at++) {
        const bp_keyword_hit *hits = NULL;
        bp_keyword_state state =
            bp_keywords_state(set->keywords, (const unsigned char *)raw, at + 1);
        size_t hit_count = bp_keywords_hits(set->keywords, state, &hits);
        for (size_t i = 0; i < hit_count; i++) {
            unsigned lines = set->list.rules[hits[i].owner].line_count;
            count = lines > count ? lines : count;
        }
    }
    return count;
}

/* The end of the lines that a match may reach which begins in the line that ends at `at`; `*is_cut`
 * where more than there are. */
static size_t find_lines_end(const bp_redactor *redactor, const char *raw, size_t size, size_t at,
                             bool *is_cut) {
    static const char indents[] = " \t\r\n<-C"; /* of a value, or the head of a part of a form */
    size_t to = at;
    *is_cut = false;
    if (at < size && memchr(indents, raw[at], sizeof indents - 1) == NULL) {
        return at;
    }
    unsigned left = count_lines(redactor, raw, at);
    for (; left > 0 && to < size; left--) {
        const char *line_end = memchr(raw + to, '\n', size - to);
        size_t next = line_end != NULL ? (size_t)(line_end + 1 - raw) : size;
        if (next - at > lines_max_bytes) {
            return to;
        }
        to = next;
        unsigned lines = count_lines(redactor, raw, to);
        left = lines >= left ? lines + 1 : left;
    }
    *is_cut = left > 0;
    return to;
}

/* Whole lines, or all that is left of a document. Returns how much was searched in `*size_inout`,
 * which is all if `is_last`. */
static bugpack_status search_block(bp_redactor *redactor, const char *raw, bool is_last,
                                   size_t *size_inout) {
    size_t size = *size_inout;
    size_t escape = 0, passed = 0, at = 0;
    bugpack_status status = BUGPACK_OK;
    bp_keywords_mark(redactor->set->keywords, (const unsigned char *)raw, size, redactor->marks);
    while (status == BUGPACK_OK && at < size) {
        size_t next = find_next(redactor, raw, size, at, &escape);
        if (next >= size) {
            break;
        }
        size_t from = at, to = size;
        bool is_cut = false;
        if (redactor->entry.form != BP_REDACT_JSON) {
            const char *line = find_last_line_end(raw + at, next - at);
            const char *line_end = memchr(raw + next, '\n', size - next);
            from = line != NULL ? (size_t)(line + 1 - raw) : at;
            to = line_end != NULL ? (size_t)(line_end + 1 - raw) : size;
            if (redactor->entry.form != BP_REDACT_JSON_LINES) {
                to = find_lines_end(redactor, raw, size, to, &is_cut);
            }
            if (is_cut && !is_last && from > 0) { /* with the lines that are not there yet */
                size = *size_inout = from;
                break;
            }
        }
        status = pass(&redactor->entry, raw + passed, from - passed);
        if (status == BUGPACK_OK) {
            status = redact_front(redactor, raw + from, to - from, false, &passed);
        }
        passed = at = to;
    }
    return status == BUGPACK_OK ? pass(&redactor->entry, raw + passed, size - passed) : status;
}

/* The front of a document, up to where it may be divided. */
static bugpack_status search_document(bp_redactor *redactor, const char *raw, size_t size,
                                      size_t *ret_done) {
    size_t escape = 0;
    bp_keywords_mark(redactor->set->keywords, (const unsigned char *)raw, size, redactor->marks);
    const char *line_end = find_last_line_end(raw, size);
    if (line_end == NULL || find_next(redactor, raw, size, 0, &escape) < size) {
        return redact_front(redactor, raw, size, true, ret_done);
    }
    *ret_done = (size_t)(line_end + 1 - raw);
    return pass(&redactor->entry, raw, *ret_done);
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

static void drop_front(struct bp_redact_entry *entry, size_t count) {
    bp_buffer *held = &entry->held;
    if (count > 0) {
        memmove(held->data, held->data + count, held->size - count);
        held->size -= count;
    }
}

static bugpack_status search_held(bp_redactor *redactor, bool is_last) {
    struct bp_redact_entry *entry = &redactor->entry;
    bugpack_status status = BUGPACK_OK;
    if (entry->form == BP_REDACT_FRAMES) {
        return bp_redact_frames(redactor);
    }
    entry->aim = block_bytes;
    if (entry->is_swallowing) {
        drop_front(entry, find_swallowed(entry));
    }
    if (entry->is_swallowing) {
        return BUGPACK_OK;
    }
    size_t size = entry->held.size, done = size;
    const char *raw = bp_buffer_text(&entry->held);
    if (!is_last && entry->form != BP_REDACT_JSON) {
        const char *line_end = find_last_line_end(raw, size);
        done = line_end != NULL ? (size_t)(line_end + 1 - raw) : 0;
    }
    if (!is_last && entry->form == BP_REDACT_JSON) {
        status = search_document(redactor, raw, size, &done);
    } else if (done > 0) {
        status = search_block(redactor, raw, is_last, &done);
    } else if (size >= record_max_bytes) {
        status = redact_front(redactor, raw, size, true, &done);
    }
    if (status == BUGPACK_OK) {
        drop_front(entry, done);
        /* The bytes held back are searched again when there is as much behind them. */
        size_t aim = 2 * entry->held.size;
        aim = aim < block_bytes ? block_bytes : aim;
        entry->aim = aim < record_max_bytes ? aim : record_max_bytes;
    }
    return status;
}

bugpack_status bp_redactor_write(bp_redactor *redactor, const void *bytes, size_t byte_count,
                                 bp_sink *pass_on, void *context) {
    struct bp_redact_entry *entry = &redactor->entry;
    const char *next = bytes;
    bugpack_status status = BUGPACK_OK;
    entry->pass_on = pass_on;
    entry->context = context;
    if (bytes == NULL) {
        return is_passed_on(entry) ? BUGPACK_OK : search_held(redactor, true);
    }
    if (!entry->is_begun && is_binary_text(entry->form, bytes, byte_count)) {
        entry->form = BP_REDACT_BINARY;
    }
    entry->is_begun = true;
    while (status == BUGPACK_OK && byte_count > 0 && !is_passed_on(entry)) {
        size_t room = entry->aim - entry->held.size;
        size_t count = byte_count < room ? byte_count : room;
        status = bp_buffer_append(&entry->held, next, count);
        next += count;
        byte_count -= count;
        if (status == BUGPACK_OK && entry->held.size >= entry->aim) {
            status = search_held(redactor, false);
        }
    }
    return status == BUGPACK_OK ? pass(entry, next, byte_count) : status;
}

void bp_redactor_set_key(bp_redactor *redactor, const bp_tag_key *key) {
    if (redactor != NULL && key != NULL) {
        redactor->key = *key;
    }
}

bugpack_status bp_redactor_text(bp_redactor *redactor, const char *text, size_t byte_count,
                                bp_buffer *out) {
    return bp_redactor_message(redactor, 0, 0, text, byte_count, out);
}

bugpack_status bp_redactor_message(bp_redactor *redactor, uint64_t stream, unsigned part,
                                   const char *text, size_t byte_count, bp_buffer *out) {
    struct bp_redact_entry open = redactor->entry;
    bp_redact_record record = {.raw = text, .size = byte_count, .stream = stream, .part = part};
    redactor->entry = (struct bp_redact_entry){.pass_on = bp_buffer_sink, .context = out};
    bugpack_status status = redact(redactor, &record);
    redactor->entry = open;
    return status;
}
