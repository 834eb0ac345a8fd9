#include "json/scanner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/utf8.h"

/* --- strings and numbers ------------------------------------------------------------------ */

/* The end of the digits from `at` on. */
static size_t skip_digits(const unsigned char *text, size_t byte_count, size_t at) {
    while (at < byte_count && text[at] >= '0' && text[at] <= '9') {
        at++;
    }
    return at;
}

/* NULL for a well-formed number, with its length; otherwise what is wrong, static, with its offset.
 */
static const char *check_number(const unsigned char *text, size_t byte_count, size_t *ret_at) {
    size_t whole = text[0] == '-';
    size_t at = skip_digits(text, byte_count, whole);
    bool complete = at > whole;
    if (complete && text[whole] == '0' && at > whole + 1) {
        *ret_at = whole;
        return "a number must not begin with 0";
    }
    if (complete && at < byte_count && text[at] == '.') {
        size_t point = at++;
        at = skip_digits(text, byte_count, at);
        complete = at > point + 1;
    }
    if (complete && at < byte_count && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        at += at < byte_count && (text[at] == '+' || text[at] == '-');
        size_t exponent = at;
        at = skip_digits(text, byte_count, at);
        complete = at > exponent;
    }
    *ret_at = at;
    return complete ? NULL : "expected a digit of the number here";
}

/* The same for the string whose opening quote is at `text`; both quotes count. */
static const char *check_string(const unsigned char *text, size_t byte_count, size_t *ret_at) {
    size_t at = 1;
    for (;;) {
        at += bp_json_plain_length(text + at, byte_count - at);
        if (at >= byte_count || text[at] == '"') {
            break;
        }
        const char *wrong = NULL;
        size_t length = 1;
        if (text[at] == '\\') {
            uint32_t code;
            length = bp_json_read_escape(text + at, byte_count - at, &code, &wrong);
        } else if (text[at] < 0x20) {
            wrong = "a control character in a string must be written as an escape";
        } else if (text[at] >= 0x80) {
            length = bp_utf8_sequence_length(text + at, byte_count - at);
            wrong = length == 0 ? "this is not valid UTF-8" : NULL;
        }
        if (wrong != NULL) {
            *ret_at = at;
            return wrong;
        }
        at += length;
    }
    if (at >= byte_count) {
        *ret_at = 0;
        return "the string is not closed";
    }
    *ret_at = at + 1;
    return NULL;
}

/* --- the keys of the objects that are open ------------------------------------------------ */

enum { slots_min = 32 };

/* A hash of its characters by a seed that nobody outside knows: equal for equal keys of one object,
 * and with 128 bits for no others. */
typedef struct bp_json_key {
    uint64_t low, high;
} bp_json_key;

/* However the key was written: with escapes or without. False without memory. */
static bool hash_key(const bp_json_token *token, uint64_t seed, bp_json_key *ret_key) {
    const char *text = token->text + 1;
    size_t byte_count = token->byte_count - 2;
    char *decoded = NULL;
    if (memchr(text, '\\', byte_count) != NULL) {
        text = decoded = malloc(byte_count);
        if (decoded == NULL) {
            return false;
        }
        byte_count = bp_json_token_decode(token, decoded);
    }
    XXH128_hash_t hash = XXH3_128bits_withSeed(text, byte_count, seed);
    *ret_key = (bp_json_key){hash.low64, hash.high64};
    free(decoded);
    return true;
}

/* The slot of a key, or the free one where it belongs. */
static size_t find_slot(const bp_json_keys *keys, const bp_json_key *key) {
    size_t at = (size_t)key->low & (keys->slot_count - 1);
    while (keys->slots[at] != 0) {
        const bp_json_key *other = &keys->keys[keys->slots[at] - 1];
        if (other->low == key->low && other->high == key->high) {
            break;
        }
        at = (at + 1) & (keys->slot_count - 1);
    }
    return at;
}

/* Keeps half of the slots free. They are filled in the order of the keys, as before. */
static bool reserve(bp_json_keys *keys) {
    if (!bp_array_reserve(&keys->keys, keys->count, &keys->capacity)) {
        return false;
    }
    if (2 * (keys->count + 1) <= keys->slot_count) {
        return true;
    }
    size_t slot_count = keys->slot_count > 0 ? 2 * keys->slot_count : slots_min;
    uint32_t *slots = keys->count < UINT32_MAX / 4 ? calloc(slot_count, sizeof *slots) : NULL;
    if (slots == NULL) {
        return false;
    }
    if (keys->seed == 0) {
        keys->seed = bp_clock_monotonic_ns() ^ (uint64_t)(uintptr_t)slots << 20;
    }
    free(keys->slots);
    keys->slots = slots;
    keys->slot_count = slot_count;
    for (size_t i = 0; i < keys->count; i++) {
        slots[find_slot(keys, &keys->keys[i])] = (uint32_t)(i + 1);
    }
    return true;
}

/* Adds a key to the innermost object, whose keys are those from `first` on, unless it was there
 * before. */
static bugpack_status add_key(bp_json_keys *keys, size_t first, const bp_json_token *token,
                              bool *ret_is_repeated) {
    static const uint64_t spread = 0x9E3779B97F4A7C15;
    bp_json_key key;
    /* No two objects that are open begin at the same place. */
    if (!reserve(keys) || !hash_key(token, keys->seed + first * spread, &key)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    size_t slot = find_slot(keys, &key);
    *ret_is_repeated = keys->slots[slot] != 0;
    if (!*ret_is_repeated) {
        keys->keys[keys->count++] = key;
        keys->slots[slot] = (uint32_t)keys->count;
    }
    return BUGPACK_OK;
}

/* Removes the keys from `first` on. The newest first: then no slot behind a freed one was passed
 * over because of it. */
static void remove_keys(bp_json_keys *keys, size_t first) {
    while (keys->count > first) {
        keys->count--;
        keys->slots[find_slot(keys, &keys->keys[keys->count])] = 0;
    }
}

/* --- tokens ------------------------------------------------------------------------------- */

/* The tokens that may come next. */
enum {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END, /* just after '[' */
    EXPECT_KEY,
    EXPECT_KEY_OR_END, /* just after '{' */
    EXPECT_COMMA_OR_END,
    EXPECT_NOTHING /* the document is complete */
};

static const char byte_order_mark[] = "\xEF\xBB\xBF";

void bp_json_scanner_init(bp_json_scanner *scanner, const void *text, size_t byte_count) {
    memset(scanner, 0, offsetof(bp_json_scanner, is_object)); /* lines are many */
    scanner->text = text != NULL ? text : (const void *)"";
    scanner->expected = EXPECT_VALUE;
    scanner->line = scanner->column = 1;
    if (byte_count >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
        scanner->text += 3;
        byte_count -= 3;
    }
    scanner->at = scanner->text;
    scanner->end = scanner->text + byte_count;
}

void bp_json_scanner_release(bp_json_scanner *scanner) {
    free(scanner->keys.keys);
    free(scanner->keys.slots);
    scanner->keys = (bp_json_keys){0};
}

/* Moves a position over valid UTF-8, so that characters can be counted. */
static void count_position(const unsigned char *at, const unsigned char *end, size_t *line,
                           size_t *column) {
    const unsigned char *newline;
    while (at < end && (newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        *column = 1;
        for (at = newline; at < end && *at == '\n'; at++) {
            (*line)++;
        }
    }
    /* Bytes inside a character, of which the highest two bits are 10, do not count. */
    for (; at < end; at++) {
        *column += (*at & 0xC0) != 0x80;
    }
}

/* Near the end of a part nothing is certain: an escape or a character may be cut, of at most 12
 * bytes. */
static bugpack_status fail_at(bp_json_scanner *scanner, const unsigned char *at,
                              bugpack_error *error, const char *sentence) {
    size_t line = scanner->line, column = scanner->column;
    scanner->has_reached_end = scanner->is_part && scanner->end - at < 12;
    if (error == NULL || scanner->has_reached_end) {
        return BUGPACK_ERR_CORRUPT;
    }
    count_position(scanner->text, at, &line, &column);
    return bp_fail(error, BUGPACK_ERR_CORRUPT, "line %zu, column %zu: %s", line, column, sentence);
}

bugpack_status bp_json_fail_at(const void *text, const void *at, bugpack_error *error,
                               const char *sentence) {
    bp_json_scanner before;
    bp_json_scanner_init(&before, text, (size_t)((const char *)at - (const char *)text));
    return fail_at(&before, at, error, sentence);
}

void bp_json_scanner_continue(bp_json_scanner *scanner, const void *text, size_t byte_count,
                              bool is_part) {
    count_position(scanner->text, scanner->at, &scanner->line, &scanner->column);
    scanner->text = scanner->at = byte_count > 0 ? text : (const void *)"";
    scanner->end = scanner->text + byte_count;
    scanner->is_part = is_part;
}

/* Fails at the current position: "expected ',' or '}', but found ';'". */
static bugpack_status fail_expected(bp_json_scanner *scanner, bugpack_error *error,
                                    const char *expected) {
    char sentence[160];
    if (scanner->at == scanner->end) {
        const char *nothing = scanner->expected == EXPECT_VALUE && scanner->depth == 0
                                  ? "there is no text"
                                  : "the text ends here";
        (void)snprintf(sentence, sizeof sentence, "expected %s, but %s", expected, nothing);
    } else if (*scanner->at > 0x20 && *scanner->at < 0x7F) {
        (void)snprintf(sentence, sizeof sentence, "expected %s, but found '%c'", expected,
                       *scanner->at);
    } else {
        (void)snprintf(sentence, sizeof sentence, "expected %s, but found byte 0x%02X", expected,
                       (unsigned)*scanner->at);
    }
    return fail_at(scanner, scanner->at, error, sentence);
}

static void skip_blanks(bp_json_scanner *scanner) {
    while (scanner->at < scanner->end &&
           (*scanner->at == ' ' || (*scanner->at == '\n' && !scanner->is_lines) ||
            *scanner->at == '\r' || *scanner->at == '\t')) {
        scanner->at++;
    }
}

/* Most tokens follow each other directly. */
static inline void skip_space(bp_json_scanner *scanner) {
    if (scanner->at < scanner->end && *scanner->at <= ' ') {
        skip_blanks(scanner);
    }
}

static bool is_next(const bp_json_scanner *scanner, char character) {
    return scanner->at < scanner->end && *scanner->at == (unsigned char)character;
}

/* Returns what is between `from` and the current position. */
static bugpack_status give(bp_json_scanner *scanner, bp_json_token_kind kind,
                           const unsigned char *from, bp_json_token *ret_token) {
    *ret_token = (bp_json_token){
        .kind = kind, .text = (const char *)from, .byte_count = (size_t)(scanner->at - from)};
    return BUGPACK_OK;
}

/* A value is complete: what may follow depends on what contains it. */
static void end_value(bp_json_scanner *scanner) {
    scanner->expected = scanner->depth > 0 ? EXPECT_COMMA_OR_END : EXPECT_NOTHING;
}

static bugpack_status scan_begin(bp_json_scanner *scanner, bp_json_token *ret_token,
                                 bugpack_error *error) {
    if (scanner->depth == BP_JSON_DEPTH_MAX) {
        _Static_assert(BP_JSON_DEPTH_MAX == 64, "the sentence");
        return fail_at(scanner, scanner->at, error, "nested more than 64 deep");
    }
    bool is_object = *scanner->at == '{';
    scanner->first_key[scanner->depth] = scanner->keys.count;
    scanner->is_object[scanner->depth++] = is_object;
    scanner->expected = is_object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    scanner->at++;
    return give(scanner, BP_JSON_BEGIN, scanner->at - 1, ret_token);
}

static bugpack_status scan_end(bp_json_scanner *scanner, bp_json_token *ret_token) {
    scanner->depth--;
    remove_keys(&scanner->keys, scanner->first_key[scanner->depth]);
    scanner->at++;
    end_value(scanner);
    return give(scanner, BP_JSON_END, scanner->at - 1, ret_token);
}

/* Skips a string or a number, whichever begins here. */
static bugpack_status skip_literal(bp_json_scanner *scanner, bugpack_error *error) {
    size_t left = (size_t)(scanner->end - scanner->at);
    size_t at = 0;
    const char *wrong = is_next(scanner, '"') ? check_string(scanner->at, left, &at)
                                              : check_number(scanner->at, left, &at);
    bool is_string = scanner->at[0] == '"';
    bool is_cut = is_string ? at == 0 : wrong == NULL && at == left;
    if (scanner->is_part && is_cut) {
        scanner->has_reached_end = true;
        return BUGPACK_ERR_CORRUPT;
    }
    if (wrong != NULL) {
        return fail_at(scanner, scanner->at + at, error, wrong);
    }
    scanner->at += at;
    return BUGPACK_OK;
}

static bugpack_status scan_key(bp_json_scanner *scanner, bp_json_token *ret_token,
                               bugpack_error *error) {
    const unsigned char *begin = scanner->at;
    if (!is_next(scanner, '"')) {
        return fail_expected(scanner, error,
                             scanner->expected == EXPECT_KEY ? "a key in double quotes"
                                                             : "a key in double quotes or '}'");
    }
    bugpack_status status = skip_literal(scanner, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    (void)give(scanner, BP_JSON_KEY, begin, ret_token);
    skip_space(scanner);
    if (!is_next(scanner, ':')) {
        return fail_expected(scanner, error, "':' after the key");
    }
    scanner->at++;
    scanner->expected = EXPECT_VALUE;
    bool is_repeated = false;
    if (add_key(&scanner->keys, scanner->first_key[scanner->depth - 1], ret_token, &is_repeated) !=
        BUGPACK_OK) {
        return bp_fail_memory(error, "check the keys of a JSON text");
    }
    if (scanner->key_max > 0 && scanner->keys.count > scanner->key_max) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "an object has more than %zu keys",
                       scanner->key_max);
    }
    return is_repeated
               ? fail_at(scanner, begin, error, "this key was there before in the same object")
               : BUGPACK_OK;
}

static bool skip_word(bp_json_scanner *scanner) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(scanner->end - scanner->at) >= length &&
            memcmp(scanner->at, words[i], length) == 0) {
            scanner->at += length;
            return true;
        }
    }
    return false;
}

static bugpack_status scan_value(bp_json_scanner *scanner, bp_json_token *ret_token,
                                 bugpack_error *error) {
    const unsigned char *begin = scanner->at;
    bugpack_status status = BUGPACK_OK;
    if (is_next(scanner, '{') || is_next(scanner, '[')) {
        return scan_begin(scanner, ret_token, error);
    }
    bool is_digit = begin < scanner->end && *begin >= '0' && *begin <= '9';
    if (is_digit || is_next(scanner, '-') || is_next(scanner, '"')) {
        status = skip_literal(scanner, error);
    } else if (!skip_word(scanner)) {
        return fail_expected(scanner, error,
                             scanner->expected == EXPECT_VALUE ? "a value" : "a value or ']'");
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    end_value(scanner);
    return give(scanner, BP_JSON_SCALAR, begin, ret_token);
}

/* Between documents: the end of the text, or of a line. */
static bugpack_status scan_finish(bp_json_scanner *scanner, bp_json_token *ret_token,
                                  bugpack_error *error) {
    const unsigned char *from = scanner->at;
    if (scanner->is_part && from == scanner->end) {
        scanner->has_reached_end = true;
        return BUGPACK_ERR_CORRUPT;
    }
    if (scanner->is_lines && is_next(scanner, '\n')) {
        scanner->at++;
        scanner->expected = EXPECT_VALUE;
    } else if (scanner->is_lines || scanner->at < scanner->end) {
        return fail_expected(scanner, error,
                             scanner->is_lines ? "the end of the line" : "the end of the text");
    }
    return give(scanner, BP_JSON_FINISH, from, ret_token);
}

static bugpack_status scan(bp_json_scanner *scanner, bp_json_token *ret_token,
                           bugpack_error *error) {
    bool in_object = scanner->depth > 0 && scanner->is_object[scanner->depth - 1];
    if (scanner->expected == EXPECT_COMMA_OR_END && is_next(scanner, ',')) {
        scanner->at++;
        skip_space(scanner);
        scanner->expected = in_object ? EXPECT_KEY : EXPECT_VALUE;
    }
    switch (scanner->expected) {
    case EXPECT_NOTHING:
        return scan_finish(scanner, ret_token, error);
    case EXPECT_COMMA_OR_END:
        if (is_next(scanner, in_object ? '}' : ']')) {
            return scan_end(scanner, ret_token);
        }
        return fail_expected(scanner, error, in_object ? "',' or '}'" : "',' or ']'");
    case EXPECT_KEY:
    case EXPECT_KEY_OR_END:
        if (scanner->expected == EXPECT_KEY_OR_END && is_next(scanner, '}')) {
            return scan_end(scanner, ret_token);
        }
        return scan_key(scanner, ret_token, error);
    default:
        if (scanner->expected == EXPECT_VALUE_OR_END && is_next(scanner, ']')) {
            return scan_end(scanner, ret_token);
        }
        if (scanner->is_lines && scanner->depth == 0 && scanner->at == scanner->end &&
            !scanner->is_part) {
            return give(scanner, BP_JSON_FINISH, scanner->at, ret_token);
        }
        return scan_value(scanner, ret_token, error);
    }
}

bugpack_status bp_json_scanner_next(bp_json_scanner *scanner, bp_json_token *ret_token,
                                    bugpack_error *error) {
    skip_space(scanner);
    const unsigned char *at = scanner->at;
    int expected = scanner->expected;
    scanner->has_reached_end = false;
    bugpack_status status = scan(scanner, ret_token, error);
    if (!scanner->has_reached_end) {
        return status;
    }
    scanner->at = at;
    scanner->expected = expected;
    *ret_token = (bp_json_token){.kind = BP_JSON_MORE};
    return BUGPACK_OK;
}
