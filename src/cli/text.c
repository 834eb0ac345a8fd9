#include "cli/text.h"

#include <stdbool.h>
#include <string.h>

/* Private-use characters that stand for single bytes, as in the JSON of a report. */
static const uint32_t stray_byte_base = 0xEF00;

static bool is_continuation(unsigned char byte) {
    return (byte & 0xC0u) == 0x80u;
}

/* The NUL at the end is no continuation byte, so nothing behind it is ever looked at. */
size_t bp_cli_text_next(const char *text, uint32_t *ret_code_point) {
    const unsigned char *bytes = (const unsigned char *)text;
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = bytes[0] < 0x80                          ? 1
                    : bytes[0] >= 0xC2 && bytes[0] < 0xE0    ? 2
                    : (bytes[0] & 0xF0u) == 0xE0u            ? 3
                    : bytes[0] >= 0xF0u && bytes[0] <= 0xF4u ? 4
                                                             : 0;
    uint32_t code_point = length == 1 ? bytes[0] : bytes[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (!is_continuation(bytes[i])) {
            length = 0;
            break;
        }
        code_point = code_point << 6 | (bytes[i] & 0x3Fu);
    }
    bool is_surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    if (length == 0 || code_point < smallest[length] || is_surrogate || code_point > 0x10FFFF) {
        *ret_code_point = BP_CLI_TEXT_INVALID;
        return 1;
    }
    *ret_code_point = code_point;
    return length;
}

/* C1 controls are what an eight-bit terminal takes for escape sequences. */
static bool is_control(uint32_t code_point) {
    return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
}

void bp_cli_text_escape(const char *text, char *out, size_t out_bytes) {
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    while (*text != '\0') {
        uint32_t code_point;
        size_t length = bp_cli_text_next(text, &code_point);
        bool escape = code_point == BP_CLI_TEXT_INVALID || is_control(code_point);
        if (used + (escape ? 4 * length : length) >= out_bytes) {
            break;
        }
        for (size_t i = 0; i < length; i++) {
            unsigned char byte = (unsigned char)text[i];
            if (escape) {
                out[used++] = '\\';
                out[used++] = 'x';
                out[used++] = digits[byte >> 4];
                out[used++] = digits[byte & 0xFu];
            } else {
                out[used++] = text[i];
            }
        }
        text += length;
    }
    out[used] = '\0';
}

void bp_cli_text_write_json(FILE *stream, const char *text) {
    (void)fputc('"', stream);
    while (*text != '\0') {
        uint32_t code_point;
        size_t length = bp_cli_text_next(text, &code_point);
        if (code_point == BP_CLI_TEXT_INVALID) {
            (void)fprintf(stream, "\\u%04x", stray_byte_base + (unsigned char)*text);
        } else if (is_control(code_point)) {
            (void)fprintf(stream, "\\u%04x", code_point);
        } else {
            if (code_point == '"' || code_point == '\\') {
                (void)fputc('\\', stream);
            }
            (void)fwrite(text, 1, length, stream);
        }
        text += length;
    }
    (void)fputc('"', stream);
}
