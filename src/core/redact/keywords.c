#include "redact/keywords.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/pages.h"
#include "base/status.h"
#include "base/utf8.h"

/*
 * The automaton is made from positions: one for each set of each keyword, and one behind its last
 * that says it is complete. A state is the list of those that may come next, beside the first of
 * each keyword, which always may. Its successor has what is behind those whose set has the byte.
 */
enum { max_positions = 8192, max_states = 16384, max_members = 1 << 22 };

/* A set of bytes, as one position of a keyword is written. */
typedef struct byte_set {
    uint64_t words[4];
} byte_set;

typedef struct keyword_position {
    byte_set set;       /* empty behind a keyword */
    bp_keyword_hit end; /* there: the keyword that is complete */
} keyword_position;

typedef struct state_hits {
    uint32_t first, count; /* in `hits` */
    bool is_final;
} state_hits;

struct bp_keywords {
    keyword_position *positions; /* room for `max_positions`; NULL once the automaton is made */
    size_t position_count;
    size_t longest; /* bytes of a keyword, with its context */
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
    bp_keywords *keywords = calloc(1, sizeof *keywords);
    if (keywords != NULL) {
        keywords->positions = bp_pages_new(max_positions * sizeof *keywords->positions);
    }
    if (keywords != NULL && keywords->positions == NULL) {
        free(keywords);
        return NULL;
    }
    return keywords;
}

void bp_keywords_free(bp_keywords *keywords) {
    if (keywords != NULL) {
        bp_pages_free(keywords->positions);
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

/* Those over the limit are counted alone. */
static void add_position(bp_keywords *keywords, byte_set set, bp_keyword_hit end) {
    if (keywords->position_count < max_positions) {
        keywords->positions[keywords->position_count] = (keyword_position){set, end};
    }
    keywords->position_count++;
}

/* One keyword, to the next space. */
static bugpack_status add(bp_keywords *keywords, const char **text, uint16_t owner,
                          bugpack_error *error) {
    const char *next = *text;
    bool has_context = *next == '[';
    size_t length = 0;
    while (next != NULL && *next != ' ' && *next != '\0') {
        byte_set set;
        next = parse_byte_set(next, &set);
        if (next != NULL) {
            add_position(keywords, set, (bp_keyword_hit){0});
        }
        length++;
    }
    size_t min_length = owner == BP_KEYWORD_NO_OWNER ? 1 : 2;
    if (next == NULL || length > BP_KEYWORD_MAX_BYTES || length < min_length) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "a keyword is too short, too long or not understood: %s", *text);
    }
    bp_keyword_hit end = {.owner = owner, .length = (uint16_t)(length - has_context)};
    add_position(keywords, (byte_set){{0}}, end);
    if (keywords->position_count > max_positions) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "the redaction rules have too many keywords");
    }
    keywords->longest = length > keywords->longest ? length : keywords->longest;
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

typedef struct state_members {
    uint32_t first, count; /* in `members` */
} state_members;

/* While the automaton is made. */
struct making {
    bp_keywords *keywords;
    unsigned char bytes[256]; /* for each class: one of them */
    uint16_t *members;        /* of all states: the positions of each, ascending */
    size_t member_count;
    state_members *states; /* the first one has the starts of all keywords: nothing has begun */
    size_t state_count;
    uint32_t *slots; /* a hash table of the others, plus one */
    uint16_t *next;  /* [state * class_count + class] */
};

enum { slot_count = 4 * max_states };

static bool has(const byte_set *set, unsigned byte) {
    return (set->words[byte / 64] >> byte % 64 & 1) != 0;
}

/* Bytes that every set treats alike are one class. */
static void find_classes(struct making *making) {
    bp_keywords *keywords = making->keywords;
    uint16_t seen[1024] = {0}; /* by hash: one more than a position whose set was looked at */
    keywords->class_count = 1;
    for (size_t i = 0; i < keywords->position_count; i++) {
        const byte_set *set = &keywords->positions[i].set;
        uint16_t *last = &seen[XXH3_64bits(set, sizeof *set) % 1024];
        if (*last > 0 && memcmp(set, &keywords->positions[*last - 1].set, sizeof *set) == 0) {
            continue;
        }
        *last = (uint16_t)(i + 1);
        unsigned numbers[2 * 256] = {0}, count = 0; /* of those that have a byte, and the others */
        for (unsigned byte = 0; byte < 256; byte++) {
            unsigned *number = &numbers[2 * keywords->classes[byte] + has(set, byte)];
            *number = *number > 0 ? *number : ++count;
            keywords->classes[byte] = (unsigned char)(*number - 1);
        }
        keywords->class_count = count;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        making->bytes[keywords->classes[byte]] = (unsigned char)byte;
    }
}

/* max_states where there are too many. */
static size_t add_state(struct making *making, const uint16_t *list, size_t count) {
    if (making->state_count == max_states || making->member_count + count > max_members) {
        return max_states;
    }
    making->states[making->state_count] =
        (state_members){(uint32_t)making->member_count, (uint32_t)count};
    memcpy(making->members + making->member_count, list, count * sizeof *list);
    making->member_count += count;
    return making->state_count++;
}

/* The state of a list: an old one, or a new one, or max_states. */
static size_t find_state(struct making *making, const uint16_t *list, size_t count) {
    size_t slot = (size_t)XXH3_64bits(list, count * sizeof *list) % slot_count;
    for (; making->slots[slot] != 0; slot = (slot + 1) % slot_count) {
        const state_members *state = &making->states[making->slots[slot] - 1];
        if (state->count == count &&
            memcmp(making->members + state->first, list, count * sizeof *list) == 0) {
            return making->slots[slot] - 1;
        }
    }
    making->slots[slot] = (uint32_t)making->state_count + 1;
    return add_state(making, list, count);
}

/* The state behind another one, or max_states: what is behind its members whose set has a byte of
 * the class, among what is behind the starts. */
static size_t make_next(struct making *making, const state_members *from, size_t begun,
                        unsigned class) {
    const state_members *base = &making->states[begun];
    const uint16_t *next = making->members + base->first, *end = next + base->count;
    uint16_t list[max_positions];
    size_t count = 0;
    next = begun == 0 ? end : next;
    for (uint32_t i = 0; i < from->count; i++) {
        uint16_t position = making->members[from->first + i];
        if (has(&making->keywords->positions[position].set, making->bytes[class])) {
            while (next < end && *next <= position) {
                list[count++] = *next++;
            }
            list[count++] = (uint16_t)(position + 1);
        }
    }
    if (count == 0) {
        return begun;
    }
    memcpy(list + count, next, (size_t)(end - next) * sizeof *next);
    return find_state(making, list, count + (size_t)(end - next));
}

static bool make_states(struct making *making) {
    const bp_keywords *keywords = making->keywords;
    uint16_t starts[max_positions];
    size_t count = 0;
    for (size_t i = 0; i < keywords->position_count; i++) {
        if (i == 0 || keywords->positions[i - 1].end.length > 0) {
            starts[count++] = (uint16_t)i;
        }
    }
    (void)add_state(making, starts, count);
    for (size_t state = 0; state < making->state_count; state++) {
        const state_members from = making->states[state];
        byte_set known = {{0}}; /* the bytes that lead on; behind others is what a start leads to */
        for (uint32_t i = 0; i < from.count; i++) {
            const byte_set *set = &keywords->positions[making->members[from.first + i]].set;
            for (size_t k = 0; k < 4; k++) {
                known.words[k] |= set->words[k];
            }
        }
        for (unsigned class = 0; class < keywords->class_count; class ++) {
            size_t next = state > 0 ? making->next[class] : 0;
            if (has(&known, making->bytes[class])) {
                next = make_next(making, &from, next, class);
            }
            if (next == max_states) {
                return false;
            }
            making->next[state * keywords->class_count + class] = (uint16_t)next;
        }
    }
    return true;
}

static bool add_hits(struct making *making, size_t state, state_hits *ret_hits) {
    bp_keywords *keywords = making->keywords;
    const state_members *members = &making->states[state];
    *ret_hits = (state_hits){.first = (uint32_t)keywords->hit_count};
    for (uint32_t i = 0; i < members->count; i++) {
        const bp_keyword_hit *end = &keywords->positions[making->members[members->first + i]].end;
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
    struct making making = {.keywords = keywords};
    find_classes(&making);
    /* Pages that are not written are not resident. */
    making.members = bp_pages_new(max_members * sizeof *making.members);
    making.states = bp_pages_new(max_states * sizeof *making.states);
    making.next = bp_pages_new((size_t)max_states * keywords->class_count * sizeof *making.next);
    making.slots = bp_pages_new(slot_count * sizeof *making.slots);
    bool has_memory = making.members != NULL && making.states != NULL && making.next != NULL &&
                      making.slots != NULL;
    bool is_full = has_memory && !make_states(&making);
    bool is_made = has_memory && !is_full && number_states(&making);
    bp_pages_free(making.members);
    bp_pages_free(making.states);
    bp_pages_free(making.next);
    bp_pages_free(making.slots);
    bp_pages_free(keywords->positions);
    keywords->positions = NULL;
    if (is_full) {
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

bool bp_keywords_find(bp_keyword_search *search, bp_keyword_hit *ret_hit) {
    search->state = search->hits != NULL ? search->state : search->keywords->start;
    while (search->hit_count == 0) {
        search->at = bp_keywords_next(search->keywords, search->text, search->size, search->at,
                                      &search->state);
        if (search->at == SIZE_MAX) {
            return false;
        }
        search->hit_count = bp_keywords_hits(search->keywords, search->state, &search->hits);
    }
    *ret_hit = *search->hits++;
    search->hit_count--;
    return true;
}
