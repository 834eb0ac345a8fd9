#include "redact/byte_set.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/utf8.h"

static void set_byte(bp_byte_set *set, unsigned byte) {
    set->words[byte / 64] |= (uint64_t)1 << byte % 64;
}

static void set_letter(bp_byte_set *set, unsigned byte) {
    set_byte(set, byte);
    if (isalpha((int)byte) && byte < 0x80) {
        set_byte(set, byte ^ 0x20);
    }
}

static void set_if(bp_byte_set *set, int (*is)(int)) {
    for (unsigned byte = 0; byte < 0x80; byte++) {
        if (is((int)byte)) {
            set_byte(set, byte);
        }
    }
}

/* What follows a backslash; NULL where it is not understood. */
static const char *parse_escape(const char *text, bp_byte_set *set) {
    switch (*text) {
    case 'd':
        set_if(set, isdigit);
        return text + 1;
    case 'a':
        set_if(set, isalpha);
        return text + 1;
    case 'w':
        set_if(set, isalnum);
        set_byte(set, '_');
        return text + 1;
    case 's':
        set_byte(set, ' ');
        set_byte(set, '\t');
        return text + 1;
    case 'x': {
        int32_t value = text[1] == '\0' ? -1 : bp_hex_value(text + 1, 2);
        if (value < 0) {
            return NULL;
        }
        set_byte(set, (unsigned)value);
        if (value >= 0xF0) { /* what separates JSON strings in a view is a quote before that */
            set_byte(set, '"');
        }
        return text + 3;
    }
    default:
        if (*text == '\0' || isalnum((unsigned char)*text)) {
            return NULL;
        }
        set_byte(set, (unsigned char)*text);
        return text + 1;
    }
}

static const char *parse_set(const char *text, bp_byte_set *set) {
    bool is_not = *text == '^';
    text += is_not;
    while (text != NULL && *text != ']') {
        if (*text == '\0' || *text == ' ') {
            return NULL;
        }
        if (*text == '\\') {
            text = parse_escape(text + 1, set);
        } else if (text[1] == '-' && text[2] != ']' && text[2] != '\0') {
            for (unsigned byte = (unsigned char)text[0]; byte <= (unsigned char)text[2]; byte++) {
                set_letter(set, byte);
            }
            text += 3;
        } else {
            set_letter(set, (unsigned char)*text++);
        }
    }
    for (size_t i = 0; is_not && i < 4; i++) {
        set->words[i] = ~set->words[i];
    }
    return text == NULL ? NULL : text + 1;
}

const char *bp_byte_set_parse(const char *text, bp_byte_set *ret_set) {
    *ret_set = (bp_byte_set){{0}};
    if (*text == '[') {
        return parse_set(text + 1, ret_set);
    }
    if (*text == '\\') {
        return parse_escape(text + 1, ret_set);
    }
    set_letter(ret_set, (unsigned char)*text);
    return text + 1;
}
