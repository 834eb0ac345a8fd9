#include "redact/record.h"

#include <string.h>

enum {
    value_max_bytes = 1024, /* that a rule sees; a longer one is replaced as a whole */
    blanks_max = 64,        /* between a key and its array */
    slashes_max = 63,       /* before a quote */
    tries_max = 32          /* of rules with one value */
};

/* The text that a rule is tried with: a name, and a value as if it were its only one. */
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
    if (scan->set->list.rules[rule].until != NULL) {
        return false;
    }
    bp_match_result result = bp_scan_match(scan, rule, pair->text, pair->size, offset, &match);
    if (result == BP_MATCH_GAVE_UP) {
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
    return scan->set->list.rules[rule].check == NULL;
}

/* Also true where it takes too many tries. */
static bool find_hit(bp_scan *scan, const struct pair *pair, size_t from, size_t to,
                     unsigned *tries, bp_hit *ret_hit) {
    bp_keyword_search search = {
        .keywords = scan->set->keywords, .text = pair->text, .size = pair->name_bytes};
    bp_keyword_hit end;
    while (bp_keywords_find(&search, &end)) {
        if (try_rule(scan, pair, end.owner, search.at - end.length, from, to, ret_hit)) {
            return true;
        }
        if (++*tries == tries_max) {
            *ret_hit = (bp_hit){.from = from, .to = to, .match_from = from, .rule = end.owner};
            return true;
        }
    }
    return false;
}

/* Adds the hit of a value below the innermost of `names` that has one. NO_MEMORY. */
static bugpack_status try_value(bp_scan *scan, const bp_names *names, const unsigned char *text,
                                size_t from, size_t to, bool is_bare) {
    struct pair pair;
    bp_hit hit;
    unsigned tries = 0;
    if (from == to || bp_tag_begins(text + from, to - from)) {
        return BUGPACK_OK;
    }
    for (uint32_t i = 0; i < names->count; i++) {
        make_pair(&pair, &names->names[i], text + from, to - from, is_bare);
        if (find_hit(scan, &pair, from, to, &tries, &hit)) {
            return bp_scan_add(scan, &hit);
        }
    }
    return BUGPACK_OK;
}

bool bp_nested_value(void *scan, const bp_view *view, size_t from, size_t to, bool is_bare) {
    return try_value(scan, &view->names, view->text, from, to, is_bare) == BUGPACK_OK;
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

/* True if the bracket at `at` follows a key in quotes and a colon. */
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

/* True if what was just read is followed by a colon: then it is a key. */
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
    return try_value(walk->scan, &walk->names, walk->text, from, to, false);
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
    return try_value(walk->scan, &walk->names, walk->text, from, walk->at, true);
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

/* Hits below the key at `key_from` are found again only with that key. */
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
