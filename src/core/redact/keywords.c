#include "redact/keywords.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/pages.h"
#include "base/status.h"
#include "base/utf8.h"

/*
 * The automaton is made from a row of bits ("shift-and"): one for each set of each keyword, and one
 * behind its last that says it is complete. A state is the row of those that may come next. Its
 * successor keeps the bits whose set has the byte, and moves them on by one.
 */
enum { max_bits = 8192, max_states = 16384, row_words = max_bits / 64 };

/* A set of bytes, as one position of a keyword is written. */
typedef struct byte_set {
    uint64_t words[4];
} byte_set;

typedef struct state_hits {
    uint32_t first, count; /* in `hits` */
    bool is_final;
} state_hits;

struct bp_keywords {
    byte_set *sets; /* one for each bit; that of a complete keyword is empty */
    size_t bit_count, bit_capacity;
    bp_keyword_hit *ends; /* for each bit: the keyword that is complete there */
    size_t end_capacity;
    uint64_t starts[row_words]; /* the first bit of each keyword */
    size_t longest;             /* bytes of a keyword, with its context */
    unsigned char classes[256];
    unsigned class_count;
    /* A state is the offset of its row in the table, so that a step is one addition and one load.
     */
    uint32_t *table;
    uint32_t first_final; /* states from here on complete a keyword */
    uint32_t start;
    state_hits *state_hits; /* [state / class_count] of the final states */
    bp_keyword_hit *hits;
    size_t hit_count, hit_capacity;
};

bp_keywords *bp_keywords_new(void) {
    return calloc(1, sizeof(bp_keywords));
}

void bp_keywords_free(bp_keywords *keywords) {
    if (keywords != NULL) {
        free(keywords->sets);
        free(keywords->ends);
        bp_pages_free(keywords->table);
        free(keywords->state_hits);
        free(keywords->hits);
        free(keywords);
    }
}

static void set_byte(byte_set *set, unsigned byte) {
    set->words[byte / 64] |= (uint64_t)1 << byte % 64;
}

static void set_letter(byte_set *set, unsigned byte) {
    set_byte(set, byte);
    if (isalpha((int)byte) && byte < 0x80) {
        set_byte(set, byte ^ 0x20);
    }
}

static void set_if(byte_set *set, int (*is)(int)) {
    for (unsigned byte = 0; byte < 0x80; byte++) {
        if (is((int)byte)) {
            set_byte(set, byte);
        }
    }
}

/* The text behind a backslash; NULL where it is not understood. */
static const char *parse_escape(const char *text, byte_set *set) {
    switch (*text) {
    case 'd':
        set_if(set, isdigit);
        return text + 1;
    case 'a':
        set_if(set, isalpha);
        return text + 1;
    case 'w':
        set_if(set, isalnum);
        set_byte(set, '_');
        return text + 1;
    case 's':
        set_byte(set, ' ');
        set_byte(set, '\t');
        return text + 1;
    case 'x': {
        int32_t value = text[1] == '\0' ? -1 : bp_hex_value(text + 1, 2);
        if (value < 0) {
            return NULL;
        }
        set_byte(set, (unsigned)value);
        if (value >= 0xF0) { /* what separates JSON strings in a view is a quote before that */
            set_byte(set, '"');
        }
        return text + 3;
    }
    default:
        if (*text == '\0' || isalnum((unsigned char)*text)) {
            return NULL;
        }
        set_byte(set, (unsigned char)*text);
        return text + 1;
    }
}

static const char *parse_set(const char *text, byte_set *set) {
    bool is_not = *text == '^';
    text += is_not;
    while (text != NULL && *text != ']') {
        if (*text == '\0' || *text == ' ') {
            return NULL;
        }
        if (*text == '\\') {
            text = parse_escape(text + 1, set);
        } else if (text[1] == '-' && text[2] != ']' && text[2] != '\0') {
            for (unsigned byte = (unsigned char)text[0]; byte <= (unsigned char)text[2]; byte++) {
                set_letter(set, byte);
            }
            text += 3;
        } else {
            set_letter(set, (unsigned char)*text++);
        }
    }
    for (size_t i = 0; is_not && i < 4; i++) {
        set->words[i] = ~set->words[i];
    }
    return text == NULL ? NULL : text + 1;
}

/* Reads one position and returns what is behind it; NULL where it is not understood. `text` is not
 * empty. */
static const char *parse_byte_set(const char *text, byte_set *ret_set) {
    *ret_set = (byte_set){{0}};
    if (*text == '[') {
        return parse_set(text + 1, ret_set);
    }
    if (*text == '\\') {
        return parse_escape(text + 1, ret_set);
    }
    set_letter(ret_set, (unsigned char)*text);
    return text + 1;
}

static bool add_bit(bp_keywords *keywords, byte_set set, bp_keyword_hit end) {
    if (!bp_array_reserve(&keywords->sets, keywords->bit_count, &keywords->bit_capacity) ||
        !bp_array_reserve(&keywords->ends, keywords->bit_count, &keywords->end_capacity)) {
        return false;
    }
    keywords->sets[keywords->bit_count] = set;
    keywords->ends[keywords->bit_count++] = end;
    return true;
}

/* One keyword, to the next space. */
static bugpack_status add(bp_keywords *keywords, const char **text, uint16_t owner,
                          bugpack_error *error) {
    const char *next = *text;
    size_t first = keywords->bit_count;
    bool has_context = *next == '[';
    size_t length = 0;
    while (next != NULL && *next != ' ' && *next != '\0') {
        byte_set set;
        next = parse_byte_set(next, &set);
        if (next != NULL && !add_bit(keywords, set, (bp_keyword_hit){0})) {
            return bp_fail_memory(error, "add a redaction rule");
        }
        length++;
    }
    size_t min_length = owner == BP_KEYWORD_NO_OWNER ? 1 : 2;
    if (next == NULL || length > BP_KEYWORD_MAX_BYTES || length < min_length) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "a keyword is too short, too long or not understood: %s", *text);
    }
    bp_keyword_hit end = {.owner = owner, .length = (uint16_t)(length - has_context)};
    if (!add_bit(keywords, (byte_set){{0}}, end)) {
        return bp_fail_memory(error, "add a redaction rule");
    }
    if (keywords->bit_count > max_bits) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "the redaction rules have too many keywords");
    }
    keywords->longest = length > keywords->longest ? length : keywords->longest;
    keywords->starts[first / 64] |= (uint64_t)1 << first % 64;
    *text = next;
    return BUGPACK_OK;
}

bugpack_status bp_keywords_add(bp_keywords *keywords, const char *list, uint16_t owner,
                               bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    while (status == BUGPACK_OK && *(list += strspn(list, " ")) != '\0') {
        status = add(keywords, &list, owner, error);
    }
    return status;
}

/* While the automaton is made. */
struct making {
    bp_keywords *keywords;
    size_t words;       /* of a row */
    uint64_t *matching; /* [class * words]: the bits whose set has it; at first [byte * words] */
    byte_set *going;    /* [bit]: the classes of its set */
    uint64_t *rows;     /* [state * words] */
    size_t state_count, row_capacity;
    uint32_t *slots; /* a hash table of states, plus one */
    uint16_t *next;  /* [state * class_count + class] */
};

enum { slot_count = 4 * max_states };

/* Bytes that every set treats alike are one class. */
static void find_classes(struct making *making) {
    bp_keywords *keywords = making->keywords;
    size_t row_bytes = making->words * sizeof *making->matching;
    for (size_t bit = 0; bit < keywords->bit_count; bit++) {
        for (unsigned word = 0; word < 4; word++) {
            for (uint64_t left = keywords->sets[bit].words[word]; left != 0; left &= left - 1) {
                size_t byte = word * 64 + (unsigned)__builtin_ctzll(left);
                making->matching[byte * making->words + bit / 64] |= (uint64_t)1 << bit % 64;
            }
        }
    }
    keywords->class_count = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        const uint64_t *row = making->matching + byte * making->words;
        unsigned class = 0;
        while (class < keywords->class_count &&
               memcmp(making->matching + class * making->words, row, row_bytes) != 0) {
            class ++;
        }
        if (class == keywords->class_count) { /* never behind the row of its byte */
            memmove(making->matching + class * making->words, row, row_bytes);
            keywords->class_count++;
        }
        keywords->classes[byte] = (unsigned char)class;
    }
    for (size_t bit = 0; bit < keywords->bit_count; bit++) {
        for (unsigned class = 0; class < keywords->class_count; class ++) {
            uint64_t has = making->matching[class * making->words + bit / 64] >> bit % 64 & 1;
            making->going[bit].words[class / 64] |= has << class % 64;
        }
    }
}

/* The state of a row: an old one, or a new one. max_states where there are too many. */
static size_t find_state(struct making *making, const uint64_t *row) {
    uint64_t hash = 0;
    for (size_t i = 0; i < making->words; i++) {
        if (row[i] != 0) { /* most are 0 */
            hash = (hash ^ row[i] ^ i) * 0x9E3779B97F4A7C15u;
            hash ^= hash >> 29;
        }
    }
    size_t slot = hash % slot_count;
    size_t row_bytes = making->words * sizeof *row;
    for (; making->slots[slot] != 0; slot = (slot + 1) % slot_count) {
        size_t state = making->slots[slot] - 1;
        if (memcmp(making->rows + state * making->words, row, row_bytes) == 0) {
            return state;
        }
    }
    if (making->state_count == max_states) {
        return max_states;
    }
    if (making->state_count == making->row_capacity) {
        size_t capacity = making->row_capacity * 2;
        uint64_t *rows = bp_pages_resize(making->rows, capacity * row_bytes);
        if (rows == NULL) {
            return max_states;
        }
        making->rows = rows;
        uint16_t *next =
            bp_pages_resize(making->next, capacity * making->keywords->class_count * sizeof *next);
        if (next == NULL) {
            return max_states;
        }
        making->next = next;
        making->row_capacity = capacity;
    }
    memcpy(making->rows + making->state_count * making->words, row, row_bytes);
    making->slots[slot] = (uint32_t)making->state_count + 1;
    return making->state_count++;
}

/* Adds to a row what the bits of another one become with a class. The last bit of all is that of an
 * end, which never goes on. */
static void add_next(const struct making *making, const uint64_t *from, unsigned class,
                     uint64_t *row) {
    const uint64_t *matching = making->matching + class * making->words;
    for (size_t i = 0; i < making->words; i++) {
        uint64_t bits = from[i] & matching[i];
        row[i] |= bits << 1;
        if (bits >> 63 != 0) {
            row[i + 1] |= 1;
        }
    }
}

/* The classes with which something of a row goes on: a few. */
static byte_set find_going(const struct making *making, const uint64_t *row) {
    byte_set going = {{0}};
    for (size_t i = 0; i < making->words; i++) {
        for (uint64_t bits = row[i]; bits != 0; bits &= bits - 1) {
            const byte_set *set = &making->going[i * 64 + (size_t)__builtin_ctzll(bits)];
            for (unsigned word = 0; word < 4; word++) {
                going.words[word] |= set->words[word];
            }
        }
    }
    return going;
}

/* The states behind one whose row is `from`. Where nothing that has begun goes on, it is the one
 * behind the first state, in which nothing has begun. */
static bool make_next(struct making *making, const uint64_t *from, uint16_t *next) {
    const byte_set going = find_going(making, from);
    size_t row_bytes = making->words * sizeof *from;
    uint64_t row[row_words];
    for (unsigned word = 0; word < 4; word++) {
        for (uint64_t left = going.words[word]; left != 0; left &= left - 1) {
            unsigned class = word * 64 + (unsigned)__builtin_ctzll(left);
            memcpy(row, making->rows + next[class] * making->words, row_bytes);
            add_next(making, from, class, row);
            size_t state = find_state(making, row);
            if (state == max_states) {
                return false;
            }
            next[class] = (uint16_t)state;
        }
    }
    return true;
}

static bool make_states(struct making *making) {
    const bp_keywords *keywords = making->keywords;
    size_t row_bytes = making->words * sizeof *making->rows;
    uint64_t row[row_words] = {0};
    uint16_t next[256] = {0};
    (void)find_state(making, row); /* nothing has begun; behind it, the starts have */
    for (size_t state = 0; state < making->state_count; state++) {
        if (state > 0) {
            memcpy(next, making->next, keywords->class_count * sizeof *next);
        }
        /* `find_state` may move the rows. */
        memcpy(row, state == 0 ? keywords->starts : making->rows + state * making->words,
               row_bytes);
        if (!make_next(making, row, next)) {
            return false;
        }
        memcpy(making->next + state * keywords->class_count, next,
               keywords->class_count * sizeof *next);
    }
    return true;
}

static bool add_hits(struct making *making, size_t state, state_hits *ret_hits) {
    bp_keywords *keywords = making->keywords;
    const uint64_t *row = making->rows + state * making->words;
    *ret_hits = (state_hits){.first = (uint32_t)keywords->hit_count};
    for (size_t i = 0; i < making->words; i++) {
        for (uint64_t bits = row[i]; bits != 0; bits &= bits - 1) {
            const bp_keyword_hit *end = &keywords->ends[i * 64 + (size_t)__builtin_ctzll(bits)];
            ret_hits->is_final = ret_hits->is_final || end->length > 0;
            if (end->length == 0 || end->owner == BP_KEYWORD_NO_OWNER) {
                continue;
            }
            if (!bp_array_reserve(&keywords->hits, keywords->hit_count, &keywords->hit_capacity)) {
                return false;
            }
            keywords->hits[keywords->hit_count++] = *end;
            ret_hits->count++;
        }
    }
    return true;
}

/* Numbers the states anew, those that complete a keyword last: then one comparison finds them. */
static bool number_states(struct making *making) {
    bp_keywords *keywords = making->keywords;
    size_t count = making->state_count, low = 0, high = count;
    uint16_t *numbers = malloc(count * sizeof *numbers);
    keywords->table = bp_pages_new(count * keywords->class_count * sizeof *keywords->table);
    keywords->state_hits = calloc(count, sizeof *keywords->state_hits);
    bool is_made = numbers != NULL && keywords->table != NULL && keywords->state_hits != NULL;
    for (size_t state = 0; is_made && state < count; state++) {
        state_hits hits;
        is_made = add_hits(making, state, &hits);
        numbers[state] = (uint16_t)(hits.is_final ? --high : low++);
        keywords->state_hits[numbers[state]] = hits;
    }
    for (size_t state = 0; is_made && state < count; state++) {
        for (unsigned class = 0; class < keywords->class_count; class ++) {
            keywords->table[numbers[state] * keywords->class_count + class] =
                numbers[making->next[state * keywords->class_count + class]] *
                keywords->class_count;
        }
    }
    if (is_made) {
        keywords->first_final = (uint32_t)(high * keywords->class_count);
        keywords->start =
            keywords->table[numbers[0] * keywords->class_count + keywords->classes['\n']];
    }
    free(numbers);
    return is_made;
}

bugpack_status bp_keywords_compile(bp_keywords *keywords, bugpack_error *error) {
    size_t words = keywords->bit_count / 64 + 1;
    struct making making = {.keywords = keywords, .words = words, .row_capacity = 512};
    making.matching = bp_pages_new(256 * words * sizeof *making.matching);
    making.going = calloc(keywords->bit_count + 1, sizeof *making.going);
    if (making.matching != NULL && making.going != NULL) {
        find_classes(&making);
    }
    making.rows = bp_pages_new(making.row_capacity * words * sizeof *making.rows);
    making.next = bp_pages_new(making.row_capacity * 256 * sizeof *making.next);
    making.slots = bp_pages_new(slot_count * sizeof *making.slots);
    bool is_made = making.matching != NULL && making.going != NULL && making.rows != NULL &&
                   making.next != NULL && making.slots != NULL;
    is_made = is_made && make_states(&making) && number_states(&making);
    bool is_full = making.state_count == max_states;
    bp_pages_free(making.matching);
    free(making.going);
    bp_pages_free(making.rows);
    bp_pages_free(making.next);
    bp_pages_free(making.slots);
    if (!is_made && is_full) {
        return bp_fail(error, BUGPACK_ERR_LIMIT,
                       "the keywords of the redaction rules are too many together");
    }
    return is_made ? BUGPACK_OK : bp_fail_memory(error, "compile redaction rules");
}

bp_keyword_state bp_keywords_start(const bp_keywords *keywords) {
    return keywords->start;
}

size_t bp_keywords_next(const bp_keywords *keywords, const unsigned char *bytes, size_t byte_count,
                        size_t offset, bp_keyword_state *state) {
    const uint32_t *table = keywords->table;
    const unsigned char *classes = keywords->classes;
    uint32_t now = *state, first_final = keywords->first_final;
    for (; offset < byte_count; offset++) {
        now = table[now + classes[bytes[offset]]];
        if (now >= first_final) {
            *state = now;
            return offset + 1;
        }
    }
    *state = now;
    return SIZE_MAX;
}

/* It depends on no more than the longest keyword before it. */
bp_keyword_state bp_keywords_state(const bp_keywords *keywords, const unsigned char *bytes,
                                   size_t offset) {
    bp_keyword_state state = keywords->start;
    for (size_t at = offset > keywords->longest ? offset - keywords->longest : 0; at < offset;
         at++) {
        state = keywords->table[state + keywords->classes[bytes[at]]];
    }
    return state;
}

static void mark(uint64_t *marks, size_t at) {
    marks[at / 64] |= (uint64_t)1 << at % 64;
}

void bp_keywords_mark(const bp_keywords *keywords, const unsigned char *bytes, size_t byte_count,
                      uint64_t *marks) {
    const uint32_t *table = keywords->table;
    const unsigned char *classes = keywords->classes;
    uint32_t first_final = keywords->first_final;
    size_t lane = byte_count / 4; /* four at once, because each waits for its own loads only */
    const unsigned char *two = bytes + lane, *three = two + lane, *four = three + lane;
    uint32_t a = bp_keywords_state(keywords, bytes, 0),
             b = bp_keywords_state(keywords, bytes, lane);
    uint32_t c = bp_keywords_state(keywords, bytes, 2 * lane),
             d = bp_keywords_state(keywords, bytes, 3 * lane);
    memset(marks, 0, BP_KEYWORD_MARK_WORDS(byte_count) * sizeof *marks);
    for (size_t at = 0; at < lane; at++) {
        a = table[a + classes[bytes[at]]];
        b = table[b + classes[two[at]]];
        c = table[c + classes[three[at]]];
        d = table[d + classes[four[at]]];
        if (a >= first_final || b >= first_final || c >= first_final || d >= first_final) {
            const bp_keyword_state states[] = {a, b, c, d};
            for (size_t i = 0; i < 4; i++) {
                if (states[i] >= first_final) {
                    mark(marks, i * lane + at);
                }
            }
        }
    }
    for (size_t at = 4 * lane; at < byte_count; at++) {
        d = table[d + classes[bytes[at]]];
        if (d >= first_final) {
            mark(marks, at);
        }
    }
}

size_t bp_keywords_hits(const bp_keywords *keywords, bp_keyword_state state,
                        const bp_keyword_hit **ret_hits) {
    if (state < keywords->first_final) {
        return 0;
    }
    const state_hits *hits = &keywords->state_hits[state / keywords->class_count];
    *ret_hits = keywords->hits + hits->first;
    return hits->count;
}

bool bp_keywords_are_in(const bp_keywords *keywords, const unsigned char *bytes,
                        size_t byte_count) {
    const bp_keyword_hit *hits = NULL;
    bp_keyword_state state = bp_keywords_start(keywords);
    size_t at = 0;
    while ((at = bp_keywords_next(keywords, bytes, byte_count, at, &state)) != SIZE_MAX) {
        if (bp_keywords_hits(keywords, state, &hits) > 0) {
            return true;
        }
    }
    return false;
}
