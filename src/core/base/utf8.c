#include "base/utf8.h"

#include <ctype.h>
#include <string.h>

/* The escapes: U+EF00 plus the byte. In UTF-8 they are EE BC 80 to EE BF BF. */
static const uint32_t escape_base = 0xEF00;

static bool is_continuation(unsigned char byte) {
    return (byte & 0xC0) == 0x80;
}

/* Unicode 15, table 3-7: the second byte's range depends on the first. */
size_t bp_utf8_sequence_length(const unsigned char *bytes, size_t available) {
    unsigned char first = bytes[0];
    if (first < 0x80) {
        return 1;
    }
    size_t length = 2 + (size_t)(first >= 0xE0) + (first >= 0xF0);
    if (first < 0xC2 || first > 0xF4 || available < length) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if (!is_continuation(bytes[i])) {
            return 0;
        }
    }
    bool is_overlong = (first == 0xE0 && bytes[1] < 0xA0) || (first == 0xF0 && bytes[1] < 0x90);
    bool is_surrogate = first == 0xED && bytes[1] > 0x9F;
    bool is_too_large = first == 0xF4 && bytes[1] > 0x8F;
    return is_overlong || is_surrogate || is_too_large ? 0 : length;
}

bool bp_utf8_is_valid(const void *bytes, size_t byte_count) {
    const unsigned char *at = bytes;
    while (byte_count > 0) {
        size_t length = bp_utf8_sequence_length(at, byte_count);
        if (length == 0) {
            return false;
        }
        at += length;
        byte_count -= length;
    }
    return true;
}

size_t bp_utf8_put(uint32_t code, char *ret_bytes) {
    static const unsigned char first_bytes[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t length = code < 0x80 ? 1 : 2;
    length += (size_t)(code >= 0x800) + (code >= 0x10000);
    for (size_t at = length; --at > 0; code >>= 6) {
        ret_bytes[at] = (char)(0x80 | (code & 0x3F));
    }
    ret_bytes[0] = (char)(first_bytes[length] | code);
    return length;
}

int32_t bp_hex_value(const void *digits, size_t count) {
    const unsigned char *digit = digits;
    int32_t value = 0;
    for (; count > 0; count--, digit++) {
        if (!isxdigit(*digit)) {
            return -1;
        }
        value = value << 4 | (isdigit(*digit) ? *digit - '0' : tolower(*digit) - 'a' + 10);
    }
    return value;
}

void bp_hex_print(const void *bytes, size_t byte_count, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (const unsigned char *byte = bytes; byte_count > 0; byte_count--, byte++) {
        *out++ = digits[*byte >> 4];
        *out++ = digits[*byte & 15];
    }
    *out = '\0';
}

static bugpack_status encode(bp_buffer *out, const void *bytes, size_t byte_count,
                             bool keeps_escapes) {
    const unsigned char *at = bytes;
    const unsigned char *end = at + byte_count;
    const unsigned char *plain = at; /* what may be copied as it is begins here */
    while (at < end) {
        size_t length = bp_utf8_sequence_length(at, (size_t)(end - at));
        bool is_escape = length == 3 && at[0] == 0xEE && at[1] >= 0xBC;
        if (length > 0 && *at != 0 && (keeps_escapes || !is_escape)) {
            at += length;
            continue;
        }
        (void)bp_buffer_append(out, plain, (size_t)(at - plain));
        for (size_t escaped = length == 0 ? 1 : length; escaped > 0; escaped--) {
            char encoded[BP_UTF8_MAX_BYTES];
            (void)bp_buffer_append(out, encoded, bp_utf8_put(escape_base + *at++, encoded));
        }
        plain = at;
    }
    return bp_buffer_append(out, plain, (size_t)(at - plain));
}

bugpack_status bp_utf8_encode(bp_buffer *out, const void *bytes, size_t byte_count) {
    return encode(out, bytes, byte_count, false);
}

bugpack_status bp_utf8_complete(bp_buffer *out, const void *bytes, size_t byte_count) {
    return encode(out, bytes, byte_count, true);
}

size_t bp_utf8_control(const unsigned char *bytes, size_t available, uint32_t *ret_code) {
    static const uint32_t ranges[][2] = {{0, 0x1F},        {0x7F, 0x9F},     {0x61C, 0x61C},
                                         {0x200E, 0x200F}, {0x202A, 0x202E}, {0x2066, 0x2069},
                                         {0xFEFF, 0xFEFF}};
    size_t length = bp_utf8_sequence_length(bytes, available);
    uint32_t code = bytes[0];
    if (length == 2) {
        code = (bytes[0] & 0x1Fu) << 6 | (bytes[1] & 0x3Fu);
    } else if (length == 3) {
        code = (bytes[0] & 0xFu) << 12 | (bytes[1] & 0x3Fu) << 6 | (bytes[2] & 0x3Fu);
    }
    for (size_t i = 0; length > 0 && length < 4 && i < sizeof ranges / sizeof ranges[0]; i++) {
        if (code >= ranges[i][0] && code <= ranges[i][1]) {
            *ret_code = code;
            return length;
        }
    }
    return 0;
}

size_t bp_utf8_cut(const void *bytes, size_t byte_count, size_t limit) {
    if (byte_count <= limit) {
        return byte_count;
    }
    const unsigned char *at = bytes;
    /* Step back over the sequence that the limit would split; a sequence has at most 4 bytes. */
    for (size_t cut = limit; cut > 0 && limit - cut < 4; cut--) {
        if (!is_continuation(at[cut])) {
            return cut;
        }
    }
    return limit;
}

void bp_utf8_copy(char *out, size_t out_bytes, const char *text) {
    text = text != NULL ? text : "";
    size_t length = bp_utf8_cut(text, strlen(text), out_bytes - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

void bp_utf8_copy_ends(char *out, size_t out_bytes, const char *text, size_t text_bytes) {
    static const char ellipsis[] = "\u2026";
    size_t limit = out_bytes - 1, mark = 0, head = text_bytes, tail = 0;
    if (text_bytes > limit) {
        mark = limit < sizeof ellipsis - 1 ? 0 : sizeof ellipsis - 1;
        head = bp_utf8_cut(text, text_bytes, (limit - mark) / 3);
        tail = limit - mark - (limit - mark) / 3;
    }
    while (tail > 0 && is_continuation((unsigned char)text[text_bytes - tail])) {
        tail--;
    }
    memcpy(out, text, head);
    memcpy(out + head, ellipsis, mark);
    memcpy(out + head + mark, text + text_bytes - tail, tail);
    out[head + mark + tail] = '\0';
}

const char *bp_utf8_refuse_name(const char *name, size_t byte_count) {
    if (byte_count == 0) {
        return "the name is empty";
    }
    if (!bp_utf8_is_valid(name, byte_count)) {
        return "the name is not valid UTF-8";
    }
    for (size_t begin = 0, i = 0; i <= byte_count; i++) {
        unsigned char byte = i < byte_count ? (unsigned char)name[i] : '/';
        if (byte < 0x20 || byte == 0x7F || byte == '\\' || byte == ':') {
            return "the name holds a control character, a backslash or a colon";
        }
        if (byte == '/') {
            size_t length = i - begin;
            if (length == 0 || (length <= 2 && memcmp(name + begin, "..", length) == 0)) {
                return "the name has a component that is empty, \".\" or \"..\"";
            }
            begin = i + 1;
        }
    }
    return NULL;
}
