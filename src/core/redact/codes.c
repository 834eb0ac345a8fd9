#include "redact/codes.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

enum {
    escape = 0x1B,
    csi = 0x9B,
    bell = '\a',
    string_max_bytes = 4096, /* of a title or an address */
    separator_min = 0xFD     /* from here on bytes separate the strings of a view */
};

/* A character that a sequence is hidden behind is a code as well: %1B[0m. */
const char bp_code_keywords[] =
    "\\x1B [!-~\\s\\x0A]\\x9B \\xC2\\x9B \\x08 \\\\x1b \\\\x9b \\\\033 \\\\e[\\[\\]\\(] \\\\u00 "
    "\\\\u{1b \\\\u{[2-7] \\\\x[2-7] \\\\[01]\\d\\d ^\\[[\\[\\]\\(] #033 %[0-7][\\da-f] &quot "
    "&apos &amp; &#\\d &#x";

/* Bytes that a code begins with; what is struck over is before its backspace. */
const bool bp_code_bytes[256] = {
    [escape] = true, [csi] = true, [0xC2] = true, ['\\'] = true, ['^'] = true,
    ['#'] = true,    ['%'] = true, ['&'] = true,  ['\b'] = true, [bell] = true,
};

struct text {
    const unsigned char *bytes;
    size_t size;
};

static bool has(struct text text, size_t at, const char *what) {
    size_t length = strlen(what);
    return text.size - at >= length &&
           strncasecmp((const char *)text.bytes + at, what, length) == 0;
}

static bool is_one_of(struct text text, size_t at, const char *set) {
    return at < text.size && text.bytes[at] != '\0' && strchr(set, text.bytes[at]) != NULL;
}

static bool is_between(struct text text, size_t at, unsigned char low, unsigned char high) {
    return at < text.size && text.bytes[at] >= low && text.bytes[at] <= high;
}

static size_t skip_slashes(struct text text, size_t at) {
    while (at < text.size && text.bytes[at] == '\\') {
        at++;
    }
    return at;
}

static int hex_value(struct text text, size_t at, size_t count) {
    return text.size < count || at > text.size - count ? -1 : bp_hex_value(text.bytes + at, count);
}

/* The bytes that introduce a sequence. */
typedef struct introducer {
    size_t to;       /* where it ends; 0: it is none */
    bool is_csi;     /* stands for ESC [ */
    bool is_printed; /* not as bytes */
} introducer;

static introducer read_printed(struct text text, size_t at) {
    static const struct {
        const char *text;
        bool is_csi;
    } forms[] = {{"x1b", false}, {"033", false}, {"u001b", false}, {"u{1b}", false},
                 {"e", false},   {"x9b", true},  {"u009b", true}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t to = at + strlen(forms[i].text);
        if (has(text, at, forms[i].text) && (forms[i].is_csi || is_one_of(text, to, "[](\\"))) {
            return (introducer){.to = to, .is_csi = forms[i].is_csi, .is_printed = true};
        }
    }
    return (introducer){.to = 0};
}

static introducer read_introducer(struct text text, size_t at) {
    introducer none = {.to = 0};
    bool is_rest = at > 0 && text.bytes[at - 1] >= 0x80 && text.bytes[at - 1] < separator_min;
    switch (text.bytes[at]) {
    case escape:
        return (introducer){.to = at + 1};
    case csi: /* of one byte, where it is no part of a character in UTF-8 */
        return is_rest ? none : (introducer){.to = at + 1, .is_csi = true};
    case 0xC2:
        return is_between(text, at + 1, csi, csi) ? (introducer){.to = at + 2, .is_csi = true}
                                                  : none;
    case '^':
        return is_one_of(text, at + 1, "[") && is_one_of(text, at + 2, "[](\\")
                   ? (introducer){.to = at + 2, .is_printed = true}
                   : none;
    case '#':
        return has(text, at, "#033") && is_one_of(text, at + 4, "[](\\")
                   ? (introducer){.to = at + 4, .is_printed = true}
                   : none;
    case '\\':
        return read_printed(text, skip_slashes(text, at));
    default:
        return none;
    }
}

/* Where a control sequence ends whose parameters begin at `at`; 0: it does not. As it is printed
 * only what programs use: a pattern such as ^[[:alpha:]] is none. */
static size_t find_csi_end(struct text text, size_t at, bool is_printed) {
    if (is_printed) {
        while (is_one_of(text, at, "0123456789;?")) {
            at++;
        }
        return is_one_of(text, at, "mKHJABCDGhlsuf") ? at + 1 : 0;
    }
    while (is_between(text, at, 0x30, 0x3F)) {
        at++;
    }
    while (is_between(text, at, 0x20, 0x2F)) {
        at++;
    }
    return is_between(text, at, 0x40, 0x7E) ? at + 1 : 0;
}

/* The slashes that end a string; the last one of several may begin what follows. */
static size_t end_slashes(struct text text, size_t at) {
    size_t to = skip_slashes(text, at);
    return to - at > 1 && read_printed(text, to).to > 0 ? to - 1 : to;
}

/* The same for a string such as a title; it ends with its line at the latest. */
static size_t find_string_end(struct text text, size_t at, bool is_printed) {
    static const char *const bells[] = {"\\a", "\\x07", "\\007", "\\u0007", "^G", "#007"};
    size_t last = text.size - at > string_max_bytes ? at + string_max_bytes : text.size;
    for (; at < last && text.bytes[at] != '\n' && text.bytes[at] < separator_min; at++) {
        if (text.bytes[at] == bell) {
            return at + 1;
        }
        if (text.bytes[at] == escape) {
            return is_one_of(text, at + 1, "\\") ? at + 2 : 0;
        }
        for (size_t i = 0; is_printed && i < sizeof bells / sizeof bells[0]; i++) {
            if (text.bytes[at] == (unsigned char)bells[i][0] && has(text, at, bells[i])) {
                return at + strlen(bells[i]);
            }
        }
        introducer next = is_printed ? read_introducer(text, at) : (introducer){.to = 0};
        if (next.to > 0 || (is_printed && text.bytes[at] == '\\')) {
            return next.to > 0 && is_one_of(text, next.to, "\\") ? end_slashes(text, next.to) : 0;
        }
    }
    return 0;
}

/* Fills what the sequence stands for. */
static bool read_sequence(struct text text, size_t at, bp_code_mode mode, bp_code *ret_code) {
    introducer begin = read_introducer(text, at);
    size_t to = begin.to;
    *ret_code = (bp_code){.from = at, .byte = BP_CODE_NOTHING};
    if (to == 0) {
        return false;
    }
    if (begin.is_csi || is_one_of(text, to, "[")) {
        ret_code->to = find_csi_end(text, to + !begin.is_csi, begin.is_printed);
    } else if (is_one_of(text, to, "]PX^_")) {
        ret_code->to = find_string_end(text, to + 1, begin.is_printed);
        if (ret_code->to > 0 && mode == BP_CODES_DECODED) {
            ret_code->to = to + 1;
            ret_code->byte = '\n';
        }
    } else if (begin.is_printed && is_one_of(text, to, "\\")) {
        ret_code->to = end_slashes(text, to);
    } else {
        while (is_between(text, to, 0x20, 0x2F)) {
            to++;
        }
        ret_code->to = is_between(text, to, 0x30, 0x7E) ? to + 1 : 0;
    }
    bool is_end = ret_code->to > 0 && text.bytes[ret_code->to - 1] == '\\';
    if (is_end && mode == BP_CODES_DECODED) {
        ret_code->byte = '\n';
    }
    return ret_code->to > 0;
}

static bool is_shown(int byte) {
    return byte >= 0x20 && byte < 0x7F;
}

/* \u003D behind any number of backslashes, as JSON in JSON has it. The others may also be a part of
 * a path, and the text is searched as it is as well: \x3D, \u{3D} and \075. */
static bool read_escape(struct text text, size_t at, bp_code_mode mode, bp_code *ret_code) {
    static const struct {
        const char *begin, *end;
        size_t digit_count;
    } forms[] = {{"u", "", 4}, {"x", "", 2}, {"u{", "}", 2}};
    size_t form_count = mode == BP_CODES_DECODED ? sizeof forms / sizeof forms[0] : 1;
    size_t next = skip_slashes(text, at);
    for (size_t i = 0; i < form_count; i++) {
        size_t from = next + strlen(forms[i].begin), to = from + forms[i].digit_count;
        int value =
            has(text, next, forms[i].begin) ? hex_value(text, from, forms[i].digit_count) : -1;
        *ret_code = (bp_code){.from = at, .to = to + strlen(forms[i].end), .byte = value};
        if (is_shown(value) && ret_code->to <= text.size && has(text, to, forms[i].end)) {
            return true;
        }
    }
    if (mode != BP_CODES_DECODED || !is_one_of(text, next, "01") ||
        !is_between(text, next + 1, '0', '7') || !is_between(text, next + 2, '0', '7')) {
        return false;
    }
    const unsigned char *digits = text.bytes + next;
    int value = (digits[0] - '0') * 64 + (digits[1] - '0') * 8 + digits[2] - '0';
    *ret_code = (bp_code){.from = at, .to = next + 3, .byte = value};
    return is_shown(value);
}

static bool read_percent(struct text text, size_t at, bp_code *ret_code) {
    int value = hex_value(text, at + 1, 2);
    *ret_code = (bp_code){.from = at, .to = at + 3, .byte = value};
    return is_shown(value) || value == escape || value == '\n' || value == '\r' || value == '\t';
}

/* A character reference of HTML: named, or as a number. */
static bool read_reference(struct text text, size_t at, bp_code *ret_code) {
    static const struct {
        const char *name;
        char byte;
    } names[] = {{"quot;", '"'}, {"amp;", '&'},    {"apos;", '\''}, {"lt;", '<'},
                 {"gt;", '>'},   {"equals;", '='}, {"colon;", ':'}, {"nbsp;", ' '}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (has(text, at + 1, names[i].name)) {
            *ret_code = (bp_code){at, at + 1 + strlen(names[i].name), names[i].byte};
            return true;
        }
    }
    if (!is_one_of(text, at + 1, "#")) {
        return false;
    }
    bool is_hex = is_one_of(text, at + 2, "xX");
    int value = 0, base = is_hex ? 16 : 10;
    size_t from = at + 2 + is_hex, to = from;
    while (to < text.size && to - from < 5 &&
           (is_hex ? isxdigit(text.bytes[to]) : isdigit(text.bytes[to]))) {
        value = value * base + hex_value(text, to++, 1);
    }
    *ret_code = (bp_code){.from = at, .to = to + 1, .byte = value};
    return to > from && is_one_of(text, to, ";") && (is_shown(value) || value == escape);
}

/* A character that was struck over, and the last one that stands there. */
static bool read_struck(struct text text, size_t at, bp_code *ret_code) {
    *ret_code = (bp_code){.from = at - 1, .to = at, .byte = BP_CODE_NOTHING};
    while (is_one_of(text, ret_code->to, "\b") && is_between(text, ret_code->to + 1, ' ', '~')) {
        ret_code->byte = text.bytes[ret_code->to + 1];
        ret_code->to += 2;
    }
    return ret_code->to > at && is_shown(text.bytes[at - 1]);
}

/* The code that begins with the byte at `at`; `from` is where the search began. */
static bool read_code(struct text text, size_t from, size_t at, bp_code_mode mode,
                      bp_code *ret_code) {
    switch (text.bytes[at]) {
    case '\b':
        return at > from && read_struck(text, at, ret_code);
    case bell:
        *ret_code = (bp_code){.from = at, .to = at + 1, .byte = '\n'};
        return mode == BP_CODES_DECODED;
    case '%':
        return mode == BP_CODES_DECODED && read_percent(text, at, ret_code);
    case '&':
        return mode == BP_CODES_DECODED && read_reference(text, at, ret_code);
    case '\\':
        return read_sequence(text, at, mode, ret_code) || read_escape(text, at, mode, ret_code);
    default:
        return read_sequence(text, at, mode, ret_code);
    }
}

bool bp_code_find(const unsigned char *bytes, size_t size, size_t from, bp_code_mode mode,
                  bp_code *ret_code) {
    struct text text = {bytes, size};
    for (size_t at = from;; at++) {
        while (at < size && !bp_code_bytes[bytes[at]]) {
            at++;
        }
        if (at >= size) {
            return false;
        }
        if (read_code(text, from, at, mode, ret_code)) {
            return true;
        }
        if (bytes[at] == '\\') { /* or each slash of a long row would look to its end */
            at = skip_slashes(text, at) - 1;
        }
    }
}

size_t bp_code_skip_sequence(const char *bytes, size_t size, size_t at) {
    bp_code code;
    struct text text = {(const unsigned char *)bytes, size};
    bool is_sequence =
        at < size && bytes[at] == escape && read_sequence(text, at, BP_CODES_SHOWN, &code);
    return is_sequence ? code.to : at;
}
