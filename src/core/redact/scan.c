#include "redact/scan.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "redact/tag.h"

enum { block_max_lines = 1000, block_max_misses = 16, block_min_line = 16 };

/* A match that fails further from the end of a text does not depend on what follows. */
enum { undecided_max_bytes = 16 * 1024 };

struct record {
    bp_scan *scan;
    const unsigned char *text;
    size_t size;
    size_t from; /* where it begins in the text that hits are of */
    const bp_view *view;
    bugpack_status status;
    bp_hit lines; /* the last one of a rule that may span lines: it may be in one of another */
    /* The last answers of find_ahead: many blocks may begin before one end. */
    struct ahead {
        const char *what;
        size_t from, at;
    } ahead[8];
};

bugpack_status bp_scan_init(bp_scan *scan, const bp_rule_set *set) {
    *scan = (bp_scan){.set = set, .matcher = bp_matcher_new(set)};
    return scan->matcher != NULL ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
}

void bp_scan_release(bp_scan *scan) {
    bp_matcher_free(scan->matcher);
    free(scan->hits);
    *scan = (bp_scan){.set = NULL};
}

void bp_scan_reset(bp_scan *scan) {
    memset(scan->blocks, 0, sizeof scan->blocks);
    memset(scan->gave_up_counts, 0, sizeof scan->gave_up_counts);
    scan->open_count = 0;
    scan->block_key = 0;
    scan->hit_count = 0;
}

static bool is_end(const struct record *record, unsigned char byte) {
    return record->view->is_json ? byte >= BP_VIEW_KEY : byte == '\n';
}

/* The line of a text, or the string of JSON, that `at` is in. */
static void find_segment(const struct record *record, size_t at, size_t *ret_from, size_t *ret_to) {
    size_t from = at, to = at;
    while (from > 0 && !is_end(record, record->text[from - 1])) {
        from--;
    }
    while (to < record->size && !is_end(record, record->text[to])) {
        to++;
    }
    *ret_from = from;
    *ret_to = to;
}

bugpack_status bp_scan_add(bp_scan *scan, const bp_hit *hit) {
    if (!bp_array_reserve(&scan->hits, scan->hit_count, &scan->hit_capacity)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    scan->hits[scan->hit_count++] = *hit;
    return BUGPACK_OK;
}

void bp_scan_add_undecided(bp_scan *scan, const bp_hit *hit) {
    if (!scan->is_undecided || hit->match_from < scan->undecided.match_from) {
        scan->is_undecided = true;
        scan->undecided = *hit;
    }
}

/*
 * A pattern for text knows no end but a space or a quote: in a binary protocol a field ends before
 * the first byte that is not text. False where this is no text at all, but bytes that look like a
 * name and '='.
 */
static bool end_with_text(const struct record *record, bp_hit *hit) {
    enum { field_min = 4, odd_share = 4 };
    const unsigned char *text = record->text;
    size_t at = hit->from, first_odd = SIZE_MAX, odd = 0;
    while (at < hit->to && (text[at] >= 0x20 || memchr("\t\n\r", text[at], 3) != NULL)) {
        size_t length = bp_utf8_sequence_length(text + at, hit->to - at);
        first_odd = length == 0 && first_odd == SIZE_MAX ? at : first_odd;
        odd += length == 0;
        at += length == 0 ? 1 : length;
    }
    bool is_binary = odd * odd_share > at - hit->from; /* else it is another encoding */
    bool is_cut = at < hit->to || is_binary;
    hit->to = is_binary ? first_odd : at;
    return !is_cut || hit->to - hit->from >= field_min;
}

static void add_hit(struct record *record, bp_hit hit) {
    bp_scan *scan = record->scan;
    const unsigned char *text = record->text;
    bool is_of_text = scan->set->list.rules[hit.rule].check == NULL;
    if (scan->is_of_traffic && is_of_text && !end_with_text(record, &hit)) {
        return;
    }
    /* A pattern counts bytes; a character goes as a whole, unless what follows may be no text. */
    while (!scan->is_of_traffic && hit.from > 0 && hit.from < hit.to &&
           (text[hit.from] & 0xC0) == 0x80) {
        hit.from--;
    }
    while (!scan->is_of_traffic && hit.to < record->size && (text[hit.to] & 0xC0) == 0x80) {
        hit.to++;
    }
    for (size_t at = hit.from; record->view->is_json && at < hit.to; at++) {
        if (text[at] >= BP_VIEW_KEY) { /* a string is replaced in its bounds */
            hit.to = at;
        }
    }
    if (hit.from >= hit.to || bp_tag_begins(text + hit.from, hit.to - hit.from)) {
        return;
    }
    hit.from += record->from;
    hit.to += record->from;
    hit.match_from += record->from;
    bugpack_status status = bp_scan_add(scan, &hit);
    record->status = status != BUGPACK_OK ? status : record->status;
}

bp_match_result bp_scan_match(bp_scan *scan, uint16_t rule, const unsigned char *text, size_t size,
                              size_t offset, bp_match *ret_match) {
    if (scan->gave_up_counts[rule] == BP_GAVE_UP_MAX) {
        return BP_MATCH_GAVE_UP;
    }
    bp_match_result result = bp_matcher_match(scan->matcher, rule, text, size, offset, ret_match);
    scan->gave_up_counts[rule] =
        (uint16_t)(scan->gave_up_counts[rule] + (result == BP_MATCH_GAVE_UP));
    return result;
}

static bool applies(const bp_scan *scan, const bp_rule *rule) {
    return !rule->is_of_traffic || (scan->is_of_traffic && !scan->is_decoded);
}

/* A rule does not match at `offset`: would it, if the text went on? Its keyword, if any, ends at
 * `keyword_to`. */
static void try_undecided(struct record *record, uint16_t rule, size_t offset, size_t keyword_to) {
    bp_scan *scan = record->scan;
    size_t near = record->size > undecided_max_bytes ? record->size - undecided_max_bytes : 0;
    const bp_rule *tried = &scan->set->list.rules[rule];
    bool is_later = scan->is_undecided && scan->undecided.match_from <= record->from + offset;
    size_t from = 0;
    bool is_whole = false;
    if (!record->view->goes_on || !applies(scan, tried) || is_later ||
        (tried->keywords != NULL && offset < near)) {
        return;
    }
    offset = offset < near ? near : offset;
    if (bp_matcher_is_undecided(scan->matcher, rule, record->text, record->size, offset, &from,
                                &is_whole)) {
        bp_hit hit = {.from = record->from + (is_whole || keyword_to < from ? from : keyword_to),
                      .to = record->from + record->size,
                      .match_from = record->from + from,
                      .rule = rule};
        bp_scan_add_undecided(scan, &hit);
    }
}

static bool is_base64(unsigned char byte) {
    return isalnum(byte) || byte == '+' || byte == '/' || byte == '=';
}

static size_t find(const struct record *record, size_t from, size_t to, const char *what) {
    const unsigned char *found = memmem(record->text + from, to - from, what, strlen(what));
    return found != NULL ? (size_t)(found - record->text) : to;
}

/* The end of the line at a place, of a text or of a string in JSON. */
static size_t find_line_end(const struct record *record, size_t at) {
    while (at < record->size && record->text[at] != '\n' &&
           (!record->view->is_json || record->text[at] < BP_VIEW_KEY)) {
        at++;
    }
    return at;
}

/* The end of a block of this rule before `to`; or `to`. With NULL the end of the line. */
static size_t find_ahead(struct record *record, const bp_rule *rule, size_t from, size_t to) {
    const bp_rule *rules = record->scan->set->list.rules;
    const char *until = rule != NULL ? rule->until : NULL;
    /* An answer for each: a text may have the begins of two kinds of blocks in turn. */
    struct ahead *ahead = &record->ahead[rule != NULL ? 1 + (size_t)(rule - rules) % 7 : 0];
    if (ahead->what != until || from < ahead->from || from > ahead->at) {
        size_t at =
            until != NULL ? find(record, from, record->size, until) : find_line_end(record, from);
        *ahead = (struct ahead){.what = until, .from = from, .at = at};
    }
    return ahead->at < to ? ahead->at : to;
}

/* The part up to `to` of a block that begins at `match`: all before its end, or as far as its lines
 * look like those of a block. False where its end is not there. */
static bool find_block_begin(struct record *record, uint16_t rule, const bp_match *match, size_t to,
                             bp_hit *ret_hit) {
    size_t end = find_ahead(record, &record->scan->set->list.rules[rule], match->to, to);
    bp_hit hit = {.from = match->from, .to = match->to, .match_from = match->from, .rule = rule};
    if (end < to) {
        hit.to = end;
    }
    while (
        end == to && hit.to < to &&
        (is_base64(record->text[hit.to]) || strchr("\\ \t\r,:-", record->text[hit.to]) != NULL)) {
        hit.to++;
    }
    while (hit.to > match->to && isspace(record->text[hit.to - 1])) {
        hit.to--;
    }
    *ret_hit = hit;
    return end < to;
}

/* Tries a rule in `text`, which may end before the record does. */
static bool try_rule(struct record *record, uint16_t index, size_t size, size_t offset,
                     bp_match *ret_match) {
    bp_scan *scan = record->scan;
    const bp_rule *rule = &scan->set->list.rules[index];
    if (!applies(scan, rule)) {
        return false;
    }
    bp_match_result result = bp_scan_match(scan, index, record->text, size, offset, ret_match);
    if (result == BP_MATCH_GAVE_UP) {
        bp_hit hit = {.rule = index};
        find_segment(record, offset, &hit.from, &hit.to);
        hit.match_from = hit.from;
        add_hit(record, hit);
    }
    if (result != BP_MATCH_FOUND) {
        return false;
    }
    if (rule->until != NULL) {
        scan->has_block_begin = true;
        if (record->view->goes_on) { /* a piece is not divided inside of it */
            bp_hit hit;
            size_t to = find_ahead(record, NULL, ret_match->to, record->size);
            (void)find_block_begin(record, index, ret_match, to, &hit);
            add_hit(record, hit);
        }
        return true;
    }
    if (rule->check == NULL || rule->check(record->text, size, ret_match)) {
        add_hit(record, (bp_hit){.from = ret_match->secret_from,
                                 .to = ret_match->secret_to,
                                 .match_from = ret_match->from,
                                 .rule = index});
    }
    return true;
}

/* Tries the rules whose keyword ends in the first `size` bytes; of a joint those that may match
 * from the first one on. */
static void search_keywords(struct record *record, size_t size, bool is_joint) {
    const bp_scan *scan = record->scan;
    bp_keyword_search search = {
        .keywords = scan->set->keywords, .text = record->text, .size = size};
    bp_keyword_hit end;
    bp_match match;
    while (record->status == BUGPACK_OK && bp_keywords_find(&search, &end)) {
        size_t count = scan->hit_count;
        const bp_hit *last = count > 0 ? &scan->hits[count - 1] : &record->lines;
        size_t from = search.at - end.length;
        if (is_joint && from > scan->set->list.rules[end.owner].before_bytes) {
            continue;
        }
        const bp_rule *rule = &scan->set->list.rules[end.owner];
        if (rule->line_count > scan->line_count && record->from + from >= scan->lines_from) {
            record->scan->line_count = rule->line_count;
        }
        bool has_lines = rule->line_count > 0; /* it may go further than the hit that it is in */
        last = has_lines ? &record->lines : last;
        bool is_new = record->from + from < last->from || record->from + search.at > last->to;
        if (is_new && !try_rule(record, end.owner, record->size, from, &match)) {
            try_undecided(record, end.owner, from, search.at);
        } else if (is_new && has_lines && scan->hit_count > count) {
            record->lines = scan->hits[scan->hit_count - 1];
        }
    }
}

/* Where a sequence was taken out a word may begin, whatever is before it: x ESC[36m hf_... */
static void search_joints(struct record *record) {
    enum { near_bytes = 128 };
    size_t point = 0, at;
    while ((at = bp_view_next_joint(record->view, &point)) < record->size) {
        struct record rest = *record;
        rest.from = at;
        memset(rest.ahead, 0, sizeof rest.ahead);
        rest.text += at;
        rest.size -= at;
        search_keywords(&rest, rest.size < near_bytes ? rest.size : near_bytes, true);
        record->status = rest.status;
        record->lines = rest.lines;
    }
}

/* A rule without a keyword: every match in every line or string. */
static void search_everywhere(struct record *record, uint16_t rule) {
    for (size_t from = 0; from < record->size && record->status == BUGPACK_OK;) {
        size_t begin = 0, to = 0;
        bp_match match;
        find_segment(record, from, &begin, &to);
        size_t at = from;
        while (at < to && record->status == BUGPACK_OK && try_rule(record, rule, to, at, &match)) {
            at = match.to;
        }
        if (to == record->size) {
            try_undecided(record, rule, at, at);
        }
        from = to + 1;
    }
}

/* The last word of a line, if it could be a line of a key: `may_be_short` where it is the whole
 * line. */
static bool find_key_line(const struct record *record, size_t from, size_t to, bp_hit *hit) {
    while (to > from && isspace(record->text[to - 1])) {
        to--;
    }
    size_t begin = to;
    while (begin > from && is_base64(record->text[begin - 1])) {
        begin--;
    }
    bool is_line = to - begin >= block_min_line || (begin == from && to > begin);
    bool is_word = begin == from || !isgraph(record->text[begin - 1]) ||
                   strchr("\"'>|:", record->text[begin - 1]) != NULL;
    hit->from = begin;
    hit->to = to;
    return is_line && is_word;
}

static bp_open_block *find_block(bp_scan *scan, uint64_t stream, uint64_t key) {
    for (size_t i = 0; i < BP_OPEN_BLOCKS; i++) {
        bp_open_block *block = &scan->blocks[i];
        if (block->is_open && block->stream == stream && block->key == key) {
            return block;
        }
    }
    return NULL;
}

static void open_block(bp_scan *scan, uint64_t stream, uint64_t key, uint16_t rule) {
    bp_open_block *block = find_block(scan, stream, key);
    size_t oldest = 0;
    for (size_t i = 0; block == NULL && i < BP_OPEN_BLOCKS; i++) {
        oldest = scan->blocks[i].line_count > scan->blocks[oldest].line_count ? i : oldest;
        block = scan->blocks[i].is_open ? NULL : &scan->blocks[i];
    }
    block = block != NULL ? block : &scan->blocks[oldest];
    bool is_same = block->is_open && block->stream == stream && block->key == key;
    scan->open_count += !block->is_open;
    *block = (bp_open_block){.stream = stream,
                             .key = key,
                             .rule = rule,
                             .begun_count = (uint16_t)(is_same ? block->begun_count + 1 : 1),
                             .is_open = true};
}

/* A line behind one that began a block. */
static void continue_block(struct record *record, bp_open_block *block, size_t from, size_t to) {
    const char *until = record->scan->set->list.rules[block->rule].until;
    size_t end = find(record, from, to, until);
    bp_hit hit = {.rule = block->rule};
    bool is_key = find_key_line(record, from, end, &hit);
    hit.match_from = hit.from;
    if (is_key) {
        add_hit(record, hit);
    }
    block->line_count++;
    block->miss_count = (uint16_t)(is_key ? 0 : block->miss_count + 1);
    block->begun_count = (uint16_t)(block->begun_count - (end < to));
    if (block->begun_count == 0 || block->line_count > block_max_lines ||
        block->miss_count > block_max_misses) {
        block->is_open = false;
        record->scan->open_count--;
    }
}

/* A block begins at `match`, in the line that ends at `to`. */
static void begin_block(struct record *record, uint16_t rule, uint64_t stream, uint64_t key,
                        const bp_match *match, size_t to) {
    bp_hit hit;
    if (!find_block_begin(record, rule, match, to, &hit)) {
        open_block(record->scan, stream, key, rule);
    }
    add_hit(record, hit);
}

/* The rule that begins a block in a line. */
static bool find_begin(struct record *record, size_t from, size_t to, uint16_t *ret_rule,
                       bp_match *ret_match) {
    const bp_rule_set *set = record->scan->set;
    bp_keyword_search search = {
        .keywords = set->keywords, .text = record->text, .size = to, .at = from};
    bp_keyword_hit end;
    while (record->scan->has_block_begin && bp_keywords_find(&search, &end)) {
        *ret_rule = end.owner;
        if (set->list.rules[end.owner].until != NULL &&
            bp_matcher_match(record->scan->matcher, end.owner, record->text, to,
                             search.at - end.length, ret_match) == BP_MATCH_FOUND) {
            return true;
        }
    }
    return false;
}

/* Goes through the lines of a record, those inside of JSON strings too, for blocks. */
static void search_blocks(struct record *record, uint64_t stream) {
    uint64_t key = record->view->is_json ? record->scan->block_key : 0;
    for (size_t from = 0, to; from < record->size; from = to + 1) {
        to = find_line_end(record, from);
        uint16_t rule = 0;
        bp_match match;
        bp_open_block *block;
        if (to < record->size && record->view->is_json && record->text[to] == BP_VIEW_KEY) {
            key = XXH3_64bits(record->text + from, to - from);
            continue;
        }
        if (find_begin(record, from, to, &rule, &match)) {
            begin_block(record, rule, stream, key, &match, to);
        } else if ((block = find_block(record->scan, stream, key)) != NULL) {
            continue_block(record, block, from, to);
        }
    }
    record->scan->block_key = record->view->is_json ? key : record->scan->block_key;
}

bugpack_status bp_scan_record(bp_scan *scan, const bp_view *view) {
    struct record record = {.scan = scan, .text = view->text, .size = view->size, .view = view};
    scan->has_block_begin = false;
    search_keywords(&record, record.size, false);
    search_joints(&record);
    for (size_t i = 0; scan->set->searches_all && i < scan->set->list.count; i++) {
        if (scan->set->codes[i] != NULL && scan->set->list.rules[i].keywords == NULL) {
            search_everywhere(&record, (uint16_t)i);
        }
    }
    return record.status;
}

bugpack_status bp_scan_blocks(bp_scan *scan, const bp_view *view, uint64_t stream) {
    struct record record = {.scan = scan, .text = view->text, .size = view->size, .view = view};
    if (scan->has_block_begin || scan->open_count > 0) {
        search_blocks(&record, stream);
    }
    return record.status;
}
