#include "run/plain.h"

#include <stdbool.h>
#include <string.h>

static bool is_between(char byte, unsigned char first, unsigned char last) {
    return (unsigned char)byte >= first && (unsigned char)byte <= last;
}

/* Where a control string (OSC, DCS, …) ends: behind its BEL or ESC \, or with the line. */
static size_t end_of_string(const char *line, size_t line_bytes, size_t at) {
    for (; at < line_bytes; at++) {
        if (line[at] == '\a') {
            return at + 1;
        }
        if (line[at] == '\033') {
            return at + 1 < line_bytes && line[at + 1] == '\\' ? at + 2 : at;
        }
    }
    return at;
}

/* Where the sequence ends whose ESC is at `at`; one that is broken off ends with the line. */
static size_t end_of_sequence(const char *line, size_t line_bytes, size_t at) {
    at++;
    if (at == line_bytes) {
        return at;
    }
    char kind = line[at];
    if (kind == '[') {
        at++;
        while (at < line_bytes && is_between(line[at], 0x20, 0x3f)) {
            at++;
        }
        return at < line_bytes && is_between(line[at], 0x40, 0x7e) ? at + 1 : at;
    }
    if (memchr("]PX^_", kind, 5) != NULL) {
        return end_of_string(line, line_bytes, at + 1);
    }
    while (at < line_bytes && is_between(line[at], 0x20, 0x2f)) {
        at++;
    }
    return at < line_bytes && is_between(line[at], 0x30, 0x7e) ? at + 1 : at;
}

size_t bp_run_plain(const char *line, size_t line_bytes, char *out) {
    size_t used = 0;
    for (size_t at = 0; at < line_bytes;) {
        if (line[at] == '\033') {
            at = end_of_sequence(line, line_bytes, at);
            continue;
        }
        out[used++] = is_between(line[at], 0, 0x1f) || line[at] == 0x7f ? ' ' : line[at];
        at++;
    }
    out[used] = '\0';
    return used;
}
