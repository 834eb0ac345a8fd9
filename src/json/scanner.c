#include "json/scanner.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "json/literal.h"

/* What may come next. */
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
    *scanner = (bp_json_scanner){.text = byte_count > 0 ? text : (const void *)"",
                                 .expected = EXPECT_VALUE,
                                 .line = 1,
                                 .column = 1};
    if (byte_count >= 3 && memcmp(text, byte_order_mark, 3) == 0) {
        scanner->text += 3;
        byte_count -= 3;
    }
    scanner->at = scanner->text;
    scanner->end = scanner->text + byte_count;
}

void bp_json_scanner_release(bp_json_scanner *scanner) {
    bp_json_keys_release(&scanner->keys);
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
    for (uint64_t word; end - at >= 8; at += 8) {
        static const uint64_t ones = 0x0101010101010101;
        memcpy(&word, at, sizeof word);
        *column += 8 - (size_t)(((word >> 7 & ~word >> 6 & ones) * ones) >> 56);
    }
    for (; at < end; at++) {
        *column += (*at & 0xC0) != 0x80;
    }
}

bugpack_status bp_json_fail_at(const void *text, const void *at, bugpack_error *error,
                               const char *sentence) {
    if (error == NULL) {
        return BUGPACK_ERR_CORRUPT;
    }
    const unsigned char *before = text;
    const unsigned char *end = at;
    size_t line = 1, column = 1;
    if (end - before >= 3 && memcmp(before, byte_order_mark, 3) == 0) {
        before += 3;
    }
    count_position(before, end, &line, &column);
    return bp_fail(error, BUGPACK_ERR_CORRUPT, "line %zu, column %zu: %s", line, column, sentence);
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

size_t bp_json_scanner_line(const bp_json_scanner *scanner) {
    size_t line = scanner->line, column = scanner->column;
    count_position(scanner->text, scanner->at, &line, &column);
    return line;
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

static void skip_space(bp_json_scanner *scanner) {
    while (scanner->at < scanner->end &&
           (*scanner->at == ' ' || (*scanner->at == '\n' && !scanner->is_lines) ||
            *scanner->at == '\r' || *scanner->at == '\t')) {
        scanner->at++;
    }
}

static bool is_next(const bp_json_scanner *scanner, char character) {
    return scanner->at < scanner->end && *scanner->at == (unsigned char)character;
}

static bool is_in_object(const bp_json_scanner *scanner) {
    return scanner->depth > 0 && scanner->open[scanner->depth - 1].is_object;
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
        char sentence[80];
        (void)snprintf(sentence, sizeof sentence, "nested more than %d deep", BP_JSON_DEPTH_MAX);
        return fail_at(scanner, scanner->at, error, sentence);
    }
    bool is_object = *scanner->at == '{';
    scanner->open[scanner->depth++] =
        (bp_json_level){.is_object = is_object, .first_key = scanner->keys.count};
    scanner->expected = is_object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    scanner->at++;
    return give(scanner, BP_JSON_BEGIN, scanner->at - 1, ret_token);
}

static bugpack_status scan_end(bp_json_scanner *scanner, bp_json_token *ret_token) {
    scanner->depth--;
    bp_json_keys_end(&scanner->keys, scanner->open[scanner->depth].first_key);
    scanner->at++;
    end_value(scanner);
    return give(scanner, BP_JSON_END, scanner->at - 1, ret_token);
}

/* Skips a string or a number, whichever begins here. */
static bugpack_status skip_literal(bp_json_scanner *scanner, bugpack_error *error) {
    size_t left = (size_t)(scanner->end - scanner->at);
    size_t at = 0;
    const char *wrong = is_next(scanner, '"') ? bp_json_check_string(scanner->at, left, &at)
                                              : bp_json_check_number(scanner->at, left, &at);
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
    if (bp_json_keys_add(&scanner->keys, scanner->open[scanner->depth - 1].first_key, begin,
                         ret_token->byte_count, &is_repeated) != BUGPACK_OK) {
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
    bool in_object = is_in_object(scanner);
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
