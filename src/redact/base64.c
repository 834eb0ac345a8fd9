#include "redact/record.h"

#include <stdlib.h>
#include <string.h>

enum { no_digit = 64, line_min = BP_BASE64_MIN };

struct bp_base64 {
    bp_scan scan; /* of what was decoded */
    bp_view view;
    unsigned char *bytes;
    uint32_t *places; /* of the digits of a run in the record */
    size_t capacity;  /* of digits; as many bytes */
};

/* RFC 4648, tables 1 and 2. */
static unsigned digit_of(unsigned byte) {
    return byte - 'A' < 26              ? byte - 'A'
           : byte - 'a' < 26            ? byte - 'a' + 26
           : byte - '0' < 10            ? byte - '0' + 52
           : byte == '+' || byte == '-' ? 62
           : byte == '/' || byte == '_' ? 63
                                        : no_digit;
}

bp_base64 *bp_base64_new(const bp_rule_set *set) {
    bp_base64 *base64 = calloc(1, sizeof *base64);
    if (base64 != NULL && bp_scan_init(&base64->scan, set) != BUGPACK_OK) {
        bp_base64_free(base64);
        return NULL;
    }
    return base64;
}

void bp_base64_free(bp_base64 *base64) {
    if (base64 != NULL) {
        bp_scan_release(&base64->scan);
        free(base64->bytes);
        free(base64->places);
        free(base64);
    }
}

size_t bp_base64_find(const char *text, size_t size, size_t at) {
    /* A run contains each BP_BASE64_MINth byte, so most of a text is not read. */
    while (at + BP_BASE64_MIN <= size) {
        size_t back = at + BP_BASE64_MIN;
        while (back > at && digit_of((unsigned char)text[back - 1]) != no_digit) {
            back--;
        }
        if (back == at) {
            return at;
        }
        at = back;
    }
    return size;
}

/* Where the next line goes on, if a line ends at `at`; else `at`. */
static size_t skip_line_end(const char *text, size_t size, size_t at) {
    size_t next = at;
    next += next < size && text[next] == '\r';
    if (next == size || text[next] != '\n') {
        return at;
    }
    next++;
    while (next < size && (text[next] == ' ' || text[next] == '\t')) {
        next++;
    }
    return next;
}

static size_t count_digits(const char *text, size_t size, size_t at) {
    size_t end = at;
    while (end < size && digit_of((unsigned char)text[end]) != no_digit) {
        end++;
    }
    return end - at;
}

size_t bp_base64_find_end(const char *text, size_t size, size_t end) {
    for (;;) {
        size_t last = end;
        while (last > 0 && (text[last - 1] == '\n' || text[last - 1] == '\r')) {
            last--;
        }
        size_t from = last;
        while (from > 0 && digit_of((unsigned char)text[from - 1]) != no_digit) {
            from--;
        }
        size_t next = skip_line_end(text, size, last);
        size_t more = last - from >= line_min ? count_digits(text, size, next) : 0;
        if (more == 0) {
            return end;
        }
        const char *line_end = memchr(text + next, '\n', size - next);
        end = line_end != NULL ? (size_t)(line_end + 1 - text) : size;
        if (more < line_min) {
            return end;
        }
    }
}

static bool reserve(bp_base64 *base64, size_t count) {
    if (base64->capacity >= count) {
        return true;
    }
    unsigned char *bytes = realloc(base64->bytes, count);
    base64->bytes = bytes != NULL ? bytes : base64->bytes;
    uint32_t *places = realloc(base64->places, count * sizeof *places);
    base64->places = places != NULL ? places : base64->places;
    base64->capacity = bytes != NULL && places != NULL ? count : base64->capacity;
    return base64->capacity >= count;
}

/* Notes the places of the digits from `at` on, over the ends of lines that are full of them;
 * returns how many there are, and where they end. */
static size_t collect(const bp_base64 *base64, const char *text, size_t size, size_t at,
                      size_t *ret_end) {
    size_t count = 0, line_count;
    do {
        for (line_count = 0; at < size && digit_of((unsigned char)text[at]) != no_digit; at++) {
            base64->places[count++] = (uint32_t)at;
            line_count++;
        }
        *ret_end = at;
        at = line_count >= line_min ? skip_line_end(text, size, at) : at;
    } while (at > *ret_end);
    return count;
}

/* Decodes the digits from `first` on; what is left of the last group is decoded too. */
static size_t decode(const bp_base64 *base64, const unsigned char *text, size_t first,
                     size_t count) {
    size_t byte_count = 0;
    uint32_t bits = 0;
    unsigned bit_count = 0;
    for (size_t i = first; i < count; i++) {
        bits = bits << 6 | digit_of(text[base64->places[i]]);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            base64->bytes[byte_count++] = (unsigned char)(bits >> bit_count);
        }
    }
    return byte_count;
}

/* Searches the digits of a run in each of the four places that a group may begin at: the run may be
 * preceded by what is no base64. */
static bugpack_status search_run(bp_base64 *base64, const unsigned char *text, size_t count,
                                 bp_scan *to) {
    bugpack_status status = BUGPACK_OK;
    for (size_t first = 0; first < 4 && status == BUGPACK_OK; first++) {
        size_t byte_count = decode(base64, text, first, count);
        bp_scan_reset(&base64->scan);
        bp_view_plain(&base64->view, base64->bytes, byte_count);
        status = bp_scan_record(&base64->scan, &base64->view);
        if (status == BUGPACK_OK) {
            status = bp_scan_blocks(&base64->scan, &base64->view, 0);
        }
        for (size_t i = 0; status == BUGPACK_OK && i < base64->scan.hit_count; i++) {
            bp_hit hit = base64->scan.hits[i];
            size_t last = first + (hit.to * 8 - 1) / 6;
            hit.from = base64->places[first + hit.from * 8 / 6];
            hit.match_from = base64->places[first + hit.match_from * 8 / 6];
            hit.to = (size_t)base64->places[last < count ? last : count - 1] + 1;
            status = bp_scan_add(to, &hit);
        }
    }
    return status;
}

bugpack_status bp_base64_search(bp_base64 *base64, const unsigned char *text, size_t size,
                                bp_scan *to) {
    const char *characters = (const char *)text;
    bugpack_status status = BUGPACK_OK;
    size_t at = 0;
    while (status == BUGPACK_OK && (at = bp_base64_find(characters, size, at)) < size) {
        status = reserve(base64, size - at) ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
        if (status == BUGPACK_OK) {
            status = search_run(base64, text, collect(base64, characters, size, at, &at), to);
        }
    }
    return status;
}
