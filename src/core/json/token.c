#include "json/token.h"

#include <string.h>

#include "base/utf8.h"

const char bp_json_escaped[] = "\"\\/\b\f\n\r\t";
const char bp_json_escapes[] = "\"\\/bfnrt";

static bool is_plain(unsigned char byte) {
    return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

size_t bp_json_plain_length(const unsigned char *bytes, size_t byte_count) {
    static const uint64_t ones = 0x0101010101010101;
    size_t at = 0;
    for (; byte_count - at >= sizeof ones; at += sizeof ones) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
        /* The high bit is set of each byte over 0x7E, and of each that was below what is taken off.
         */
        uint64_t others =
            (word | (word + ones) | (word - ones * 0x20) | (quote - ones) | (backslash - ones)) &
            ones * 0x80;
        if (others != 0) {
            break;
        }
    }
    while (at < byte_count && is_plain(bytes[at])) {
        at++;
    }
    return at;
}

static int32_t decode_escape(const unsigned char **at) {
    const unsigned char *escape = *at;
    if (escape[1] != 'u') {
        *at += 2;
        return bp_json_escaped[strchr(bp_json_escapes, escape[1]) - bp_json_escapes];
    }
    *at += 6;
    int32_t unit = bp_hex_value(escape + 2, 4);
    if (unit < 0xD800 || unit > 0xDBFF) {
        return unit;
    }
    *at += 6;
    return 0x10000 + ((unit - 0xD800) << 10) + (bp_hex_value(escape + 8, 4) - 0xDC00);
}

/* The next character of a checked string as a code point, or -1 at the closing quote. */
static int32_t next_character(const unsigned char **at) {
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

bool bp_json_token_is(const bp_json_token *token, const char *text) {
    size_t byte_count = strlen(text);
    /* An empty token may have no text at all. */
    return token->byte_count == byte_count &&
           (byte_count == 0 || memcmp(token->text, text, byte_count) == 0);
}

/* Appends a decimal digit; false when it is none, or the value would not fit. */
static bool push_digit(uint64_t *value, char character) {
    unsigned digit = (unsigned)(unsigned char)character - '0';
    if (digit > 9 || *value > (UINT64_MAX - digit) / 10) {
        return false;
    }
    *value = *value * 10 + digit;
    return true;
}

bool bp_json_token_uint(const bp_json_token *token, uint64_t *ret_value) {
    return token->byte_count > 0 && memchr(token->text, '.', token->byte_count) == NULL &&
           bp_json_token_fixed(token, 0, ret_value);
}

bool bp_json_token_fixed(const bp_json_token *token, unsigned decimals, uint64_t *ret_value) {
    uint64_t value = 0;
    size_t at = 0;
    while (at < token->byte_count && token->text[at] != '.') {
        if (!push_digit(&value, token->text[at++])) {
            return false;
        }
    }
    if (at == 0) {
        return false;
    }
    at += at < token->byte_count; /* the point */
    for (unsigned i = 0; i < decimals; i++) {
        if (!push_digit(&value, at < token->byte_count ? token->text[at++] : '0')) {
            return false;
        }
    }
    bool rounds_up = at < token->byte_count && token->text[at] >= '5' && token->text[at] <= '9';
    for (; at < token->byte_count; at++) {
        if (token->text[at] < '0' || token->text[at] > '9') {
            return false; /* an exponent */
        }
    }
    if (rounds_up && value == UINT64_MAX) {
        return false;
    }
    *ret_value = value + rounds_up;
    return true;
}

size_t bp_json_token_decode(const bp_json_token *token, char *out) {
    const unsigned char *at = (const unsigned char *)token->text + 1;
    size_t length = token->byte_count - 2;
    int32_t character;
    if (memchr(at, '\\', length) == NULL) {
        memcpy(out, at, length);
        return length;
    }
    length = 0;
    while ((character = next_character(&at)) >= 0) {
        length += bp_utf8_put((uint32_t)character, out + length);
    }
    return length;
}

bool bp_json_token_text(const bp_json_token *token, bp_buffer *out) {
    if (token->byte_count < 2 || token->text[0] != '"') {
        return false;
    }
    char *at = bp_buffer_reserve(out, token->byte_count);
    if (at != NULL) {
        bp_buffer_commit(out, strnlen(at, bp_json_token_decode(token, at)));
    }
    return true;
}
