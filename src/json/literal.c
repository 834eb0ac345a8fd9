#include "json/literal.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

/* Advances `*at` over the digits there; false when there are none. */
static bool skip_digits(const unsigned char *text, size_t byte_count, size_t *at) {
    size_t first = *at;
    while (*at < byte_count && text[*at] >= '0' && text[*at] <= '9') {
        (*at)++;
    }
    return *at > first;
}

static bool skip_one_of(const unsigned char *text, size_t byte_count, size_t *at, char one,
                        char other) {
    bool is_there =
        *at < byte_count && (text[*at] == (unsigned char)one || text[*at] == (unsigned char)other);
    *at += is_there;
    return is_there;
}

const char *bp_json_check_number(const unsigned char *text, size_t byte_count, size_t *ret_at) {
    size_t at = 0;
    (void)skip_one_of(text, byte_count, &at, '-', '-');
    size_t whole = at;
    bool complete = skip_digits(text, byte_count, &at);
    if (complete && text[whole] == '0' && at > whole + 1) {
        *ret_at = whole;
        return "a number must not begin with 0";
    }
    if (complete && skip_one_of(text, byte_count, &at, '.', '.')) {
        complete = skip_digits(text, byte_count, &at);
    }
    if (complete && skip_one_of(text, byte_count, &at, 'e', 'E')) {
        (void)skip_one_of(text, byte_count, &at, '+', '-');
        complete = skip_digits(text, byte_count, &at);
    }
    *ret_at = at;
    return complete ? NULL : "expected a digit of the number here";
}

const char bp_json_escaped[] = "\"\\/\b\f\n\r\t";
const char bp_json_escapes[] = "\"\\/bfnrt";

/* The value of the four digits after "\u", or -1 when they are not there. */
static int32_t unit_value(const unsigned char *digits, size_t available) {
    return available < 4 ? -1 : bp_hex_value(digits, 4);
}

static bool is_high_surrogate(int32_t unit) {
    return unit >= 0xD800 && unit <= 0xDBFF;
}

static bool is_low_surrogate(int32_t unit) {
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* Checks the escape at `text`, which begins with a backslash; sets its length. */
static const char *check_escape(const unsigned char *text, size_t available, size_t *ret_length) {
    if (available < 2) {
        return "the string is not closed";
    }
    if (text[1] != 'u') {
        *ret_length = 2;
        bool known = text[1] != '\0' && strchr(bp_json_escapes, text[1]) != NULL;
        return known ? NULL : "expected one of \" \\ / b f n r t u after a backslash";
    }
    int32_t unit = unit_value(text + 2, available - 2);
    if (unit < 0) {
        return "expected four hexadecimal digits after \\u";
    }
    *ret_length = 6;
    if (is_low_surrogate(unit)) {
        return "a low surrogate without a high one before it";
    }
    if (is_high_surrogate(unit)) {
        bool paired = available >= 12 && text[6] == '\\' && text[7] == 'u' &&
                      is_low_surrogate(unit_value(text + 8, available - 8));
        *ret_length = 12;
        return paired ? NULL : "a high surrogate without a low one behind it";
    }
    return NULL;
}

/*
 * How many of eight bytes come before the first that is not ASCII, or is a control character, a
 * quote or a backslash.
 */
static size_t count_plain(const unsigned char *bytes) {
    static const uint64_t ones = 0x0101010101010101;
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    /* The high bit is set of each byte over 0x7F, and of each that was below what is taken off.
     * What that borrows from can only be behind it. */
    uint64_t others =
        (word | (word - ones * 0x20) | (quote - ones) | (backslash - ones)) & ones * 0x80;
    return others == 0 ? 8 : (size_t)__builtin_ctzll(others) / 8;
}

/* As bp_utf8_sequence_length, quickly for the most frequent ones. */
static size_t character_length(const unsigned char *text, size_t available) {
    bool has_two = available >= 2 && (text[1] & 0xC0) == 0x80;
    if (has_two && text[0] >= 0xC2 && text[0] <= 0xDF) {
        return 2;
    }
    if (has_two && text[0] >= 0xE1 && text[0] <= 0xEC && available >= 3 &&
        (text[2] & 0xC0) == 0x80) {
        return 3;
    }
    return bp_utf8_sequence_length(text, available);
}

const char *bp_json_check_string(const unsigned char *text, size_t byte_count, size_t *ret_at) {
    size_t at = 1;
    for (;;) {
        size_t plain = 8;
        while (plain == 8 && byte_count - at >= 8) {
            plain = count_plain(text + at);
            at += plain;
        }
        if (at >= byte_count || text[at] == '"') {
            break;
        }
        const char *wrong = NULL;
        size_t length = 1;
        if (text[at] == '\\') {
            wrong = check_escape(text + at, byte_count - at, &length);
        } else if (text[at] < 0x20) {
            wrong = "a control character in a string must be written as an escape";
        } else if (text[at] >= 0x80) {
            length = character_length(text + at, byte_count - at);
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

static int32_t decode_escape(const unsigned char **at) {
    const unsigned char *escape = *at;
    if (escape[1] != 'u') {
        *at += 2;
        return bp_json_escaped[strchr(bp_json_escapes, escape[1]) - bp_json_escapes];
    }
    *at += 6;
    int32_t unit = unit_value(escape + 2, 4);
    if (!is_high_surrogate(unit)) {
        return unit;
    }
    *at += 6;
    return 0x10000 + ((unit - 0xD800) << 10) + (unit_value(escape + 8, 4) - 0xDC00);
}

int32_t bp_json_next_character(const unsigned char **at) {
    unsigned char first = **at;
    if (first == '"') {
        return -1;
    }
    if (first == '\\') {
        return decode_escape(at);
    }
    (*at)++;
    if (first < 0x80) {
        return first;
    }
    /* Checked UTF-8: the first byte says how many follow. */
    int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    int32_t character = first & (0x3F >> more);
    for (; more > 0; more--) {
        character = character << 6 | (*(*at)++ & 0x3F);
    }
    return character;
}
