#include "json/token.h"

#include <string.h>

#include "base/utf8.h"

const char bp_json_escaped[] = "\"\\/\b\f\n\r\t";
const char bp_json_escapes[] = "\"\\/bfnrt";

static bool is_plain(unsigned char byte) {
    return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

size_t bp_json_plain_length(const unsigned char *bytes, size_t byte_count) {
    size_t at = 0;
    while (at < byte_count && is_plain(bytes[at])) {
        at++;
    }
    return at;
}

size_t bp_json_read_escape(const void *text, size_t available, uint32_t *ret_code,
                           const char **ret_wrong) {
    const unsigned char *bytes = text;
    const char *letter =
        available > 1 && bytes[1] != '\0' ? strchr(bp_json_escapes, bytes[1]) : NULL;
    *ret_wrong = NULL;
    if (letter != NULL) {
        *ret_code = (unsigned char)bp_json_escaped[letter - bp_json_escapes];
        return 2;
    }
    int32_t low = -1, unit = available > 5 && bytes[1] == 'u' ? bp_hex_value(bytes + 2, 4) : -1;
    if (unit < 0) {
        size_t length = available > 1 ? 2 : 1;
        *ret_code = bytes[length - 1];
        *ret_wrong = "expected one of \" \\ / b f n r t u after a backslash";
        if (length == 1) {
            *ret_wrong = "the string is not closed";
        } else if (bytes[1] == 'u') {
            *ret_wrong = "expected four hexadecimal digits after \\u";
        }
        return length;
    }
    bool is_high = unit >> 10 == 0x36, is_low = unit >> 10 == 0x37;
    if (is_high && available > 11 && bytes[6] == '\\' && bytes[7] == 'u') {
        low = bp_hex_value(bytes + 8, 4);
    }
    if (low >> 10 == 0x37) {
        *ret_code = 0x10000 + ((uint32_t)(unit & 0x3FF) << 10 | (uint32_t)(low & 0x3FF));
        return 12;
    }
    *ret_code = is_high || is_low ? '?' : (uint32_t)unit;
    if (is_high) {
        *ret_wrong = "a high surrogate without a low one behind it";
    } else if (is_low) {
        *ret_wrong = "a low surrogate without a high one before it";
    }
    return 6;
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
    const char *at = token->text + 1, *end = token->text + token->byte_count - 1, *wrong;
    size_t length = 0;
    while (at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        size_t plain = (size_t)((escape != NULL ? escape : end) - at);
        memcpy(out + length, at, plain);
        length += plain;
        at += plain;
        if (escape != NULL) {
            uint32_t code;
            at += bp_json_read_escape(at, (size_t)(end - at), &code, &wrong);
            length += bp_utf8_put(code, out + length);
        }
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
