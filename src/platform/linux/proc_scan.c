#include "platform/linux/proc_scan.h"

#include <string.h>

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

void bp_proc_skip_blanks(bp_proc_scan *scan) {
    while (scan->next < scan->end && is_blank(*scan->next)) {
        scan->next++;
    }
}

bool bp_proc_take_line(bp_proc_scan *scan, bp_proc_scan *ret_line) {
    if (scan->next == scan->end) {
        return false;
    }
    const char *newline = memchr(scan->next, '\n', (size_t)(scan->end - scan->next));
    *ret_line = (bp_proc_scan){scan->next, newline != NULL ? newline : scan->end};
    scan->next = newline != NULL ? newline + 1 : scan->end;
    return true;
}

bool bp_proc_take_word(bp_proc_scan *scan, bp_proc_scan *ret_word) {
    bp_proc_skip_blanks(scan);
    const char *start = scan->next;
    while (scan->next < scan->end && !is_blank(*scan->next) && *scan->next != '\n') {
        scan->next++;
    }
    if (scan->next == start) {
        return false;
    }
    *ret_word = (bp_proc_scan){start, scan->next};
    return true;
}

bool bp_proc_take_byte(bp_proc_scan *scan, char byte) {
    if (scan->next == scan->end || *scan->next != byte) {
        return false;
    }
    scan->next++;
    return true;
}

bool bp_proc_take_text(bp_proc_scan *scan, const char *text) {
    size_t text_bytes = strlen(text);
    if ((size_t)(scan->end - scan->next) < text_bytes ||
        memcmp(scan->next, text, text_bytes) != 0) {
        return false;
    }
    scan->next += text_bytes;
    return true;
}

bool bp_proc_is(bp_proc_scan scan, const char *text) {
    return bp_proc_take_text(&scan, text) && scan.next == scan.end;
}

/* The value of a digit, or 255. */
static unsigned digit_value(char byte) {
    if (byte >= '0' && byte <= '9') {
        return (unsigned)(byte - '0');
    }
    if (byte >= 'a' && byte <= 'f') {
        return (unsigned)(byte - 'a') + 10;
    }
    if (byte >= 'A' && byte <= 'F') {
        return (unsigned)(byte - 'A') + 10;
    }
    return 255;
}

bool bp_proc_take_number(bp_proc_scan *scan, unsigned base, uint64_t *ret_value) {
    const char *here = scan->next;
    uint64_t value = 0;
    for (; here < scan->end && digit_value(*here) < base; here++) {
        unsigned digit = digit_value(*here);
        if (value > (UINT64_MAX - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    if (here == scan->next) {
        return false;
    }
    scan->next = here;
    *ret_value = value;
    return true;
}
