#include "json/append.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"
#include "json/literal.h"

/* The largest double has 309 digits; besides them a sign, a point, 9 decimals and NUL. */
enum { number_max_bytes = 336 };

static bugpack_status append_escape(bp_buffer *out, uint32_t code) {
    const char *short_form = code != 0 && code < 0x80 ? strchr(bp_json_escaped, (int)code) : NULL;
    if (short_form != NULL) {
        (void)bp_buffer_append_char(out, '\\');
        return bp_buffer_append_char(out, bp_json_escapes[short_form - bp_json_escaped]);
    }
    return bp_buffer_printf(out, "\\u%04x", (unsigned)code);
}

/*
 * The length of the character at `text`, with its code point, if it is escaped, otherwise 0. These
 * are a quote, a backslash and all control characters: a document may be printed to a terminal, to
 * which U+009B is what ESC [ is. NUL is not among them: bp_utf8_encode has a form of its own for
 * it.
 */
static size_t escaped_length(const char *text, size_t available, uint32_t *ret_code) {
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] >= 0x80) {
        return bp_utf8_control(bytes, available, ret_code);
    }
    *ret_code = bytes[0];
    return (bytes[0] < 0x20 && bytes[0] != 0) || bytes[0] == '"' || bytes[0] == '\\' ||
           bytes[0] == 0x7F;
}

typedef bugpack_status encoder(bp_buffer *out, const void *bytes, size_t byte_count);

static bugpack_status append_string(bp_buffer *out, const void *bytes, size_t byte_count,
                                    encoder *encode) {
    const char *text = bytes;
    size_t size_before = out->size;
    (void)bp_buffer_append_char(out, '"');
    size_t plain = 0;
    for (size_t i = 0; i < byte_count; i++) {
        /* What is escaped begins like no rest of a character, so a cut here never splits one. */
        uint32_t code;
        size_t length = escaped_length(text + i, byte_count - i, &code);
        if (length > 0) {
            (void)encode(out, text + plain, i - plain);
            i += length - 1;
            (void)append_escape(out, code);
            plain = i + 1;
        }
    }
    if (byte_count > plain) {
        (void)encode(out, text + plain, byte_count - plain);
    }
    if (bp_buffer_append_char(out, '"') != BUGPACK_OK) {
        bp_json_cut(out, size_before);
    }
    return out->status;
}

bugpack_status bp_json_append_string(bp_buffer *out, const void *bytes, size_t byte_count) {
    return append_string(out, bytes, byte_count, bp_utf8_encode);
}

bugpack_status bp_json_append_quote(bp_buffer *out, const void *bytes, size_t byte_count) {
    return append_string(out, bytes, byte_count, bp_utf8_complete);
}

bugpack_status bp_json_append_value(bp_buffer *out, const char *text) {
    size_t byte_count = strlen(text), plain = 0;
    for (size_t i = 0; i < byte_count; i++) {
        uint32_t code;
        size_t length =
            (unsigned char)text[i] < 0x7F ? 0 : escaped_length(text + i, byte_count - i, &code);
        if (length > 0) {
            (void)bp_buffer_append(out, text + plain, i - plain);
            (void)append_escape(out, code);
            i += length - 1;
            plain = i + 1;
        }
    }
    return bp_buffer_append(out, text + plain, byte_count - plain);
}

bugpack_status bp_json_append_number(bp_buffer *out, double value, unsigned decimals) {
    char digits[number_max_bytes];
    int printed = snprintf(digits, sizeof digits, "%.*f", (int)decimals, value);
    if (printed < 0 || (size_t)printed >= sizeof digits) {
        /* The only failure of the C library is memory. */
        out->status = out->status == BUGPACK_OK ? BUGPACK_ERR_NO_MEMORY : out->status;
        return out->status;
    }
    if (decimals > 0) {
        /* Between the whole digits and the last `decimals` is the locale's point, which may have
         * several bytes. */
        size_t whole = strspn(digits, "-0123456789");
        digits[whole] = '.';
        memmove(digits + whole + 1, digits + (size_t)printed - decimals, decimals + 1);
        size_t length = whole + 1 + decimals;
        while (digits[length - 1] == '0') {
            length--;
        }
        length -= length == whole + 1; /* no digit is left after the point */
        digits[length] = '\0';
    }
    return bp_buffer_append_text(out, strcmp(digits, "-0") == 0 ? "0" : digits);
}

void bp_json_break_line(bp_buffer *out, size_t depth) {
    static const char line[1 + 2 * BP_JSON_DEPTH_MAX + 1] =
        "\n                                                                "
        "                                                                ";
    (void)bp_buffer_append(out, line, 1 + 2 * depth);
}

void bp_json_cut(bp_buffer *out, size_t size) {
    if (out->data != NULL) {
        out->size = size;
        out->data[size] = '\0';
    }
}
