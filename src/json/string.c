#include "json/string.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"

/* The characters that have a short escape, and its letter, in the same order. */
static const char escaped_characters[] = "\"\\/\b\f\n\r\t";
static const char escape_letters[] = "\"\\/bfnrt";

static int hex_value(unsigned char digit) {
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* The value of the four digits behind "\u", or -1 when they are not there. */
static int32_t unit_value(const unsigned char *digits, size_t available) {
    int32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = i < available ? hex_value(digits[i]) : -1;
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

static bool is_high_surrogate(int32_t unit) {
    return unit >= 0xD800 && unit <= 0xDBFF;
}

static bool is_low_surrogate(int32_t unit) {
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/* Checks the escape at `text`, which begins with a backslash; its length goes to `ret_length`. */
static const char *check_escape(const unsigned char *text, size_t available, size_t *ret_length) {
    if (available < 2) {
        return "the string is not closed";
    }
    if (text[1] != 'u') {
        *ret_length = 2;
        bool known = text[1] != '\0' && strchr(escape_letters, text[1]) != NULL;
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

const char *bp_json_check_string(const unsigned char *text, size_t byte_count, size_t *ret_at) {
    size_t at = 1;
    while (at < byte_count && text[at] != '"') {
        const char *wrong = NULL;
        size_t length = 1;
        if (text[at] == '\\') {
            wrong = check_escape(text + at, byte_count - at, &length);
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

static int32_t decode_escape(const unsigned char **at) {
    const unsigned char *escape = *at;
    if (escape[1] != 'u') {
        *at += 2;
        return escaped_characters[strchr(escape_letters, escape[1]) - escape_letters];
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

bugpack_status bp_json_decode(const unsigned char **at, bp_buffer *out) {
    for (int32_t next = bp_json_next_character(at); next > 0; next = bp_json_next_character(at)) {
        char bytes[4];
        size_t count = 0;
        if (next < 0x80) {
            bytes[count++] = (char)next;
        } else {
            if (next >= 0x10000) {
                bytes[count++] = (char)(0xF0 | next >> 18);
                bytes[count++] = (char)(0x80 | (next >> 12 & 0x3F));
            } else if (next >= 0x800) {
                bytes[count++] = (char)(0xE0 | next >> 12);
            }
            bytes[count++] = (char)(next >= 0x800 ? 0x80 | (next >> 6 & 0x3F) : 0xC0 | next >> 6);
            bytes[count++] = (char)(0x80 | (next & 0x3F));
        }
        (void)bp_buffer_append(out, bytes, count);
    }
    return out->status;
}

static bugpack_status append_escape(bp_buffer *out, char character) {
    const char *short_form = character != '\0' ? strchr(escaped_characters, character) : NULL;
    if (short_form != NULL) {
        (void)bp_buffer_append_char(out, '\\');
        return bp_buffer_append_char(out, escape_letters[short_form - escaped_characters]);
    }
    return bp_buffer_printf(out, "\\u%04x", (unsigned)(unsigned char)character);
}

/* NUL is not among them: bp_utf8_encode has its own form for it. */
static bool needs_escape(char character) {
    unsigned char byte = (unsigned char)character;
    return (byte < 0x20 && byte != 0) || byte == '"' || byte == '\\';
}

bugpack_status bp_json_append_string(bp_buffer *out, const void *bytes, size_t byte_count) {
    const char *text = bytes;
    size_t size_before = out->size;
    (void)bp_buffer_append_char(out, '"');
    size_t plain = 0;
    for (size_t i = 0; i < byte_count; i++) {
        /* Only ASCII is escaped, so a cut here never splits a character. */
        if (needs_escape(text[i])) {
            (void)bp_utf8_encode(out, text + plain, i - plain);
            (void)append_escape(out, text[i]);
            plain = i + 1;
        }
    }
    if (byte_count > plain) {
        (void)bp_utf8_encode(out, text + plain, byte_count - plain);
    }
    if (bp_buffer_append_char(out, '"') != BUGPACK_OK) {
        bp_json_cut(out, size_before);
    }
    return out->status;
}

void bp_json_cut(bp_buffer *out, size_t size) {
    if (out->data != NULL) {
        out->size = size;
        out->data[size] = '\0';
    }
}
