#include "run/flow.h"

#include <stdint.h>
#include <string.h>

#define ESCAPE '\033'

/* A longer control sequence is none: terminals keep a few numbers. */
enum { control_max_bytes = 256 };

typedef enum effect { FLOWS, MOVES, CLEARS } effect;

/* A string (a title, a link, a query) shows nothing. Where it ends; 0 when it does not. */
static size_t skip_string(const char *bytes, size_t byte_count, size_t at) {
    for (at += 2; at < byte_count; at++) {
        unsigned char byte = (unsigned char)bytes[at];
        bool is_cancelled = byte == 0x18 || byte == 0x1a;
        if (byte == '\a' || is_cancelled) {
            return at + 1;
        }
        if (byte == ESCAPE) {
            if (at + 1 == byte_count) {
                return 0;
            }
            return bytes[at + 1] == '\\' ? at + 2 : at;
        }
    }
    return 0;
}

/* The number at `text`; -1: none. */
static int read_number(const char *text, size_t byte_count) {
    int number = -1;
    for (size_t i = 0; i < byte_count && text[i] >= '0' && text[i] <= '9' && number < 10000; i++) {
        number = (number < 0 ? 0 : number) * 10 + (text[i] - '0');
    }
    return number;
}

/* `CSI top ; bottom r`: which rows scroll. */
static bool is_partial_region(const char *parameters, size_t byte_count, int row_count) {
    const char *separator = memchr(parameters, ';', byte_count);
    size_t top_bytes = separator == NULL ? byte_count : (size_t)(separator - parameters);
    int top = read_number(parameters, top_bytes);
    int bottom = separator == NULL ? 0 : read_number(separator + 1, byte_count - top_bytes - 1);
    return top > 1 || (bottom > 0 && bottom < row_count);
}

/* `CSI count b` repeats the character before it. Anything else becomes a colour. */
static void check_repetition(char *bytes, size_t at, size_t end) {
    bool is_fine = at > 0 && bytes[at - 1] >= ' ' && bytes[at - 1] <= '~' && end - at <= 6;
    for (size_t i = at + 2; i < end - 1; i++) {
        is_fine = is_fine && bytes[i] >= '0' && bytes[i] <= '9';
    }
    if (!is_fine) {
        bytes[end - 1] = 'm';
    }
}

static void blot_controls(char *bytes, size_t byte_count) {
    char *found;
    for (size_t at = 0;
         at + 1 < byte_count && (found = memchr(bytes + at, 0xc2, byte_count - at - 1)) != NULL;
         at = (size_t)(found - bytes) + 1) {
        if ((unsigned char)found[1] < 0xa0) {
            found[0] = found[1] = '?';
        }
    }
}

/* What a control sequence does: its parameters, and the byte that ends it. */
static effect control_effect(const char *bytes, size_t at, size_t end, int row_count,
                             bool *is_partial) {
    const char *parameters = bytes + at + 2;
    size_t count = end - 1 - (at + 2);
    bool is_private = count > 0 && parameters[0] == '?';
    switch (bytes[end - 1]) {
    case 'm':
    case 'K':
        return FLOWS;
    case 'r':
        *is_partial = !is_private && is_partial_region(parameters, count, row_count);
        return MOVES;
    case 'h': {
        int mode = is_private ? read_number(parameters + 1, count - 1) : -1;
        *is_partial = *is_partial || mode == 69; /* margins at the sides */
        return mode == 1049 ? CLEARS : MOVES;
    }
    case 'J': {
        bool is_home = at >= 3 && memcmp(bytes + at - 3, "\033[H", 3) == 0;
        int part = read_number(parameters, count);
        return part == 2 || (is_home && part <= 0) ? CLEARS : MOVES;
    }
    default:
        return MOVES;
    }
}

/* The end of a control sequence; 0 when it is incomplete. */
static size_t skip_control(const char *bytes, size_t byte_count, size_t at) {
    size_t last = at + control_max_bytes < byte_count ? at + control_max_bytes : byte_count;
    for (size_t i = at + 2; i < last; i++) {
        if (bytes[i] < 0x20 || bytes[i] > 0x3f) {
            return i + 1;
        }
    }
    return last < byte_count ? last : 0;
}

/* The sequence that begins with the escape at `at`: where it ends, 0 when it is incomplete, and
 * what it does. */
static size_t skip_sequence(char *bytes, size_t byte_count, size_t at, int row_count,
                            bool *is_partial, effect *ret_effect) {
    size_t end = at + 1;
    *ret_effect = MOVES;
    if (end == byte_count) {
        return 0;
    }
    if (strchr("]PX^_", bytes[end]) != NULL && bytes[end] != '\0') {
        *ret_effect = FLOWS;
        return skip_string(bytes, byte_count, at);
    }
    if (bytes[end] == '[') {
        end = skip_control(bytes, byte_count, at);
        if (end > 0 && bytes[end - 1] == 'b') {
            check_repetition(bytes, at, end);
        } else if (end > 0) {
            *ret_effect = control_effect(bytes, at, end, row_count, is_partial);
        }
        return end;
    }
    if (bytes[end] == 'c') { /* a full reset */
        *is_partial = false;
        *ret_effect = CLEARS;
    }
    while (end < byte_count && bytes[end] >= 0x20 && bytes[end] <= 0x2f) {
        end++;
    }
    return end < byte_count ? end + 1 : 0;
}

/* Behind the last shift to other characters, which holds for what follows. */
static size_t behind_last_shift(const char *bytes, size_t byte_count) {
    static const int shifts[] = {0x0e, 0x0f};
    size_t behind = 0;
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        const char *found;
        while (behind < byte_count &&
               (found = memchr(bytes + behind, shifts[i], byte_count - behind)) != NULL) {
            behind = (size_t)(found - bytes) + 1;
        }
    }
    return behind;
}

/* How much there is of a character whose end is not there yet. */
static size_t split_bytes(const char *bytes, size_t byte_count) {
    for (size_t count = 1; count < 4 && count <= byte_count; count++) {
        unsigned char byte = (unsigned char)bytes[byte_count - count];
        if (byte >= 0xc0) {
            size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
            return count < whole ? count : 0;
        }
        if (byte < 0x80) {
            return 0;
        }
    }
    return 0;
}

bp_run_flow bp_run_flow_scan(char *bytes, size_t byte_count, int row_count, bool *is_partial) {
    bp_run_flow flow = {.moving_bytes = behind_last_shift(bytes, byte_count),
                        .whole_bytes = byte_count,
                        .cleared_at = SIZE_MAX};
    const char *escape;
    blot_controls(bytes, byte_count);
    for (size_t at = 0;
         at < byte_count && (escape = memchr(bytes + at, ESCAPE, byte_count - at)) != NULL;) {
        effect found;
        at = (size_t)(escape - bytes);
        size_t end = skip_sequence(bytes, byte_count, at, row_count, is_partial, &found);
        if (end == 0) {
            flow.whole_bytes = at;
            break;
        }
        if (found != FLOWS && end > flow.moving_bytes) {
            flow.moving_bytes = end;
        }
        flow.cleared_at = found == CLEARS ? at : flow.cleared_at;
        at = end;
    }
    if (flow.whole_bytes == byte_count) {
        flow.whole_bytes -= split_bytes(bytes, byte_count);
    }
    if (flow.moving_bytes > flow.whole_bytes) {
        flow.moving_bytes = flow.whole_bytes;
    }
    return flow;
}

size_t bp_run_flow_tail(const char *bytes, size_t byte_count, int row_count) {
    /* A cursor at the top moves down all rows, writing over what is there, before it scrolls. */
    int line_ends = 0;
    for (size_t at = byte_count; at > 0; at--) {
        line_ends += bytes[at - 1] == '\n';
        if (line_ends > 2 * row_count) {
            return at;
        }
    }
    return 0;
}
