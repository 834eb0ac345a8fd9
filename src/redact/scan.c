#include "redact/scan.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "redact/tag.h"
#include "redact/view.h"

enum { block_max_lines = 1000, block_max_misses = 16, block_min_line = 16 };

struct record {
    bp_scan *scan;
    const unsigned char *text;
    size_t size;
    bool is_json;
    bool has_block_begin;
    bugpack_status status;
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
    scan->hit_count = 0;
}

static bool is_end(const struct record *record, unsigned char byte) {
    return record->is_json ? byte >= BP_VIEW_KEY : byte == '\n';
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

static void add_hit(struct record *record, bp_hit hit) {
    bp_scan *scan = record->scan;
    const unsigned char *text = record->text;
    static const char tag[] = BP_TAG_PREFIX;
    /* A pattern counts bytes; a character goes as a whole. */
    while (hit.from > 0 && hit.from < hit.to && (text[hit.from] & 0xC0) == 0x80) {
        hit.from--;
    }
    while (hit.to < record->size && (text[hit.to] & 0xC0) == 0x80) {
        hit.to++;
    }
    for (size_t at = hit.from; record->is_json && at < hit.to; at++) {
        if (text[at] >= BP_VIEW_KEY) { /* a string is replaced in its bounds */
            hit.to = at;
        }
    }
    bool is_tag =
        hit.to - hit.from >= sizeof tag - 1 && memcmp(text + hit.from, tag, sizeof tag - 1) == 0;
    if (hit.from >= hit.to || is_tag) {
        return;
    }
    bugpack_status status = bp_scan_add(scan, &hit);
    record->status = status != BUGPACK_OK ? status : record->status;
}

/* ISO/IEC 7812-1, annex B. */
static bool passes_luhn(const unsigned char *text, size_t size) {
    unsigned sum = 0, count = 0;
    for (size_t i = size; i-- > 0;) {
        if (isdigit(text[i])) {
            unsigned digit = (unsigned)(text[i] - '0') << (count++ % 2);
            sum += digit > 9 ? digit - 9 : digit;
        }
    }
    return sum % 10 == 0;
}

static void give_up(struct record *record, uint16_t rule, size_t at) {
    bp_hit hit = {.rule = rule, .gave_up = true};
    find_segment(record, at, &hit.from, &hit.to);
    if (record->scan->gave_up_counts[rule] < BP_GAVE_UP_MAX) {
        record->scan->gave_up_counts[rule]++;
    }
    add_hit(record, hit);
}

/* Tries a rule in `text`, which may end before the record does. */
static bool try_rule(struct record *record, uint16_t index, size_t size, size_t offset,
                     bp_match *ret_match) {
    bp_scan *scan = record->scan;
    const bp_rule *rule = bp_rule_set_rule(scan->set, index);
    if (scan->gave_up_counts[index] == BP_GAVE_UP_MAX) {
        give_up(record, index, offset);
        return false;
    }
    bp_match_result result =
        bp_matcher_match(scan->matcher, index, record->text, size, offset, ret_match);
    if (result == BP_MATCH_GAVE_UP) {
        give_up(record, index, offset);
    }
    if (result != BP_MATCH_FOUND) {
        return false;
    }
    if (rule->until != NULL) {
        record->has_block_begin = true;
        return true;
    }
    size_t from = ret_match->secret_from, to = ret_match->secret_to;
    if (!rule->has_luhn || passes_luhn(record->text + from, to - from)) {
        add_hit(record, (bp_hit){.from = from, .to = to, .rule = index});
    }
    return true;
}

static void search_keywords(struct record *record) {
    const bp_keywords *keywords = record->scan->set->keywords;
    bp_keyword_state state = bp_keywords_start(keywords);
    size_t at = 0;
    while (record->status == BUGPACK_OK &&
           (at = bp_keywords_next(keywords, record->text, record->size, at, &state)) != SIZE_MAX) {
        const bp_keyword_hit *ends = NULL;
        size_t count = bp_keywords_hits(keywords, state, &ends);
        for (size_t i = 0; i < count; i++) {
            const bp_scan *scan = record->scan;
            const bp_hit *last = scan->hit_count > 0 ? &scan->hits[scan->hit_count - 1] : NULL;
            size_t from = at - ends[i].length;
            bp_match match;
            if (last == NULL || from < last->from || at > last->to) {
                (void)try_rule(record, ends[i].owner, record->size, from, &match);
            }
        }
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
        from = to + 1;
    }
}

static int compare_hits(const void *one, const void *other) {
    const bp_hit *a = one, *b = other;
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : (a->to > b->to ? -1 : a->to < b->to);
}

void bp_scan_merge(bp_scan *scan) {
    size_t count = 0;
    if (scan->hit_count > 1) {
        qsort(scan->hits, scan->hit_count, sizeof *scan->hits, compare_hits);
    }
    for (size_t i = 0; i < scan->hit_count; i++) {
        bp_hit hit = scan->hits[i];
        if (count > 0 && hit.from < scan->hits[count - 1].to) {
            bp_hit *last = &scan->hits[count - 1];
            last->to = hit.to > last->to ? hit.to : last->to;
        } else {
            scan->hits[count++] = hit;
        }
    }
    scan->hit_count = count;
}

static bool is_base64(unsigned char byte) {
    return isalnum(byte) || byte == '+' || byte == '/' || byte == '=';
}

static size_t find(const struct record *record, size_t from, size_t to, const char *what) {
    const unsigned char *found = memmem(record->text + from, to - from, what, strlen(what));
    return found != NULL ? (size_t)(found - record->text) : to;
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
    scan->open_count += !block->is_open;
    *block = (bp_open_block){.stream = stream, .key = key, .rule = rule, .is_open = true};
}

static void close_block(bp_scan *scan, bp_open_block *block) {
    block->is_open = false;
    scan->open_count--;
}

/* A line behind one that began a block. */
static void continue_block(struct record *record, bp_open_block *block, size_t from, size_t to) {
    const char *until = bp_rule_set_rule(record->scan->set, block->rule)->until;
    size_t end = find(record, from, to, until);
    bp_hit hit = {.rule = block->rule};
    bool is_key = find_key_line(record, from, end, &hit);
    if (is_key) {
        add_hit(record, hit);
    }
    block->line_count++;
    block->miss_count = (uint16_t)(is_key ? 0 : block->miss_count + 1);
    if (end < to || block->line_count > block_max_lines || block->miss_count > block_max_misses) {
        close_block(record->scan, block);
    }
}

/* A block begins at `match`, in the line that ends at `to`. */
static void begin_block(struct record *record, uint16_t rule, uint64_t stream, uint64_t key,
                        const bp_match *match, size_t to) {
    const char *until = bp_rule_set_rule(record->scan->set, rule)->until;
    size_t end = find(record, match->to, to, until);
    bp_hit hit = {.from = match->from, .to = match->to, .rule = rule};
    if (end < to) {
        hit.to = end + strlen(until);
        while (hit.to < to &&
               (isupper(record->text[hit.to]) || isdigit(record->text[hit.to]) ||
                strchr(" -", record->text[hit.to]) != NULL) &&
               memcmp(record->text + hit.to - 5, "-----", 5) != 0) {
            hit.to++;
        }
    } else {
        while (hit.to < to && (is_base64(record->text[hit.to]) ||
                               strchr("\\ \t\r,:-", record->text[hit.to]) != NULL)) {
            hit.to++;
        }
        while (hit.to > match->to && isspace(record->text[hit.to - 1])) {
            hit.to--;
        }
        open_block(record->scan, stream, key, rule);
    }
    add_hit(record, hit);
}

/* The rule that begins a block in a line. */
static bool find_begin(struct record *record, size_t from, size_t to, uint16_t *ret_rule,
                       bp_match *ret_match) {
    const bp_rule_set *set = record->scan->set;
    const bp_keywords *keywords = set->keywords;
    bp_keyword_state state = bp_keywords_start(keywords);
    size_t at = from;
    while (record->has_block_begin &&
           (at = bp_keywords_next(keywords, record->text, to, at, &state)) != SIZE_MAX) {
        const bp_keyword_hit *ends = NULL;
        size_t count = bp_keywords_hits(keywords, state, &ends);
        for (size_t i = 0; i < count; i++) {
            *ret_rule = ends[i].owner;
            if (bp_rule_set_rule(set, ends[i].owner)->until != NULL &&
                bp_matcher_match(record->scan->matcher, ends[i].owner, record->text, to,
                                 at - ends[i].length, ret_match) == BP_MATCH_FOUND) {
                return true;
            }
        }
    }
    return false;
}

static uint64_t hash_key(const unsigned char *text, size_t size) {
    uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a: which key it is, no secret */
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ text[i]) * 0x100000001B3u;
    }
    return hash;
}

/* Goes through the lines of a record, those inside of JSON strings too, for blocks. */
static void search_blocks(struct record *record, uint64_t stream) {
    uint64_t key = 0;
    for (size_t from = 0, to; from < record->size; from = to + 1) {
        for (to = from; to < record->size && record->text[to] != '\n' &&
                        (!record->is_json || record->text[to] < BP_VIEW_KEY);) {
            to++;
        }
        uint16_t rule = 0;
        bp_match match;
        bp_open_block *block;
        if (to < record->size && record->is_json && record->text[to] == BP_VIEW_KEY) {
            key = hash_key(record->text + from, to - from);
            continue;
        }
        if (find_begin(record, from, to, &rule, &match)) {
            begin_block(record, rule, stream, key, &match, to);
        } else if ((block = find_block(record->scan, stream, key)) != NULL) {
            continue_block(record, block, from, to);
        }
        if (to < record->size && record->is_json && record->text[to] == BP_VIEW_END) {
            key = 0;
        }
    }
}

bugpack_status bp_scan_record(bp_scan *scan, const unsigned char *text, size_t byte_count,
                              bool is_json, uint64_t stream) {
    struct record record = {.scan = scan, .text = text, .size = byte_count, .is_json = is_json};
    search_keywords(&record);
    if (scan->set->searches_all) {
        for (size_t i = 0; i < bp_rule_set_count(scan->set); i++) {
            if (scan->set->codes[i] != NULL && bp_rule_set_rule(scan->set, i)->keywords == NULL) {
                search_everywhere(&record, (uint16_t)i);
            }
        }
    }
    if (record.has_block_begin || scan->open_count > 0) {
        search_blocks(&record, stream);
    }
    bp_scan_merge(scan);
    return record.status;
}
