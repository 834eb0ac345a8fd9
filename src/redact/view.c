#include "redact/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct reading {
    bp_view *view;
    const char *raw;
    size_t size, at;
    size_t cut_at;
    size_t slashes_end; /* of the last backslashes in a row, so that each is counted once */
    const bp_view_below *below;
    size_t string_from, key_from; /* of the last ones, in the view */
    bool is_after_key;
    bool has_memory;
};

void bp_view_release(bp_view *view) {
    free(view->text);
    free(view->points);
    *view = (bp_view){.text = NULL};
}

static void add_point(struct reading *reading, bool is_bare) {
    bp_view *view = reading->view;
    if (view->point_count == view->point_capacity &&
        !bp_array_reserve(&view->points, view->point_count, &view->point_capacity)) {
        reading->has_memory = false;
        return;
    }
    view->points[view->point_count++] = (bp_view_point){
        .view = (uint32_t)view->size, .raw = (uint32_t)reading->at, .is_bare = is_bare};
}

static void put(struct reading *reading, unsigned byte) {
    reading->view->text[reading->view->size++] = (unsigned char)byte;
}

static void note_cut(struct reading *reading, bool is_in_string) {
    bp_view *view = reading->view;
    if (reading->at >= reading->cut_at && view->cut_raw == 0) {
        view->cut_raw = reading->at;
        view->cut_view = view->size;
        view->is_cut_in_string = is_in_string;
        view->cut_names = view->names;
    }
}

static bool read_hex(const char *digits, size_t available, unsigned *ret_value) {
    unsigned value = 0;
    if (available < 4) {
        return false;
    }
    for (size_t i = 0; i < 4; i++) {
        char digit = digits[i];
        unsigned low = digit >= '0' && digit <= '9'   ? (unsigned)(digit - '0')
                       : digit >= 'a' && digit <= 'f' ? (unsigned)(digit - 'a') + 10
                       : digit >= 'A' && digit <= 'F' ? (unsigned)(digit - 'A') + 10
                                                      : 16;
        if (low == 16) {
            return false;
        }
        value = value << 4 | low;
    }
    *ret_value = value;
    return true;
}

static void put_character(struct reading *reading, unsigned value) {
    if (value == 0) {
        put(reading, '?');
    } else if (value < 0x80) {
        put(reading, value);
    } else if (value < 0x800) {
        put(reading, 0xC0 | value >> 6);
        put(reading, 0x80 | (value & 0x3F));
    } else if (value < 0x10000) {
        put(reading, 0xE0 | value >> 12);
        put(reading, 0x80 | (value >> 6 & 0x3F));
        put(reading, 0x80 | (value & 0x3F));
    } else {
        put(reading, 0xF0 | value >> 18);
        put(reading, 0x80 | (value >> 12 & 0x3F));
        put(reading, 0x80 | (value >> 6 & 0x3F));
        put(reading, 0x80 | (value & 0x3F));
    }
}

/* \uXXXX of a printable ASCII character behind any number of backslashes: how long it is, or 0. */
static size_t read_ascii(struct reading *reading, unsigned *ret_value) {
    const char *next = reading->raw + reading->at;
    size_t left = reading->size - reading->at;
    if (reading->slashes_end <= reading->at) {
        reading->slashes_end = reading->at + 1;
    }
    while (reading->slashes_end < reading->size && reading->raw[reading->slashes_end] == '\\') {
        reading->slashes_end++;
    }
    size_t count = reading->slashes_end - reading->at;
    bool is_one = left - count >= 5 && next[count] == 'u' &&
                  read_hex(next + count + 1, left - count - 1, ret_value) && *ret_value >= 0x20 &&
                  *ret_value < 0x7F;
    return is_one ? count + 5 : 0;
}

/* One escape of a JSON string, at its backslash. */
static void read_escape(struct reading *reading) {
    const char *next = reading->raw + reading->at;
    size_t left = reading->size - reading->at;
    unsigned value = 0, low = 0;
    size_t length = read_ascii(reading, &value);
    if (length > 0) {
        put(reading, value);
    } else if (left >= 6 && next[1] == 'u' && read_hex(next + 2, left - 2, &value)) {
        length = 6;
        bool is_pair = value >> 10 == 0x36 && left >= 12 && next[6] == '\\' && next[7] == 'u' &&
                       read_hex(next + 8, left - 8, &low) && low >> 10 == 0x37;
        if (is_pair) {
            value = 0x10000 + ((value & 0x3FF) << 10 | (low & 0x3FF));
            length = 12;
        }
        put_character(reading, value >> 11 == 0x1B ? '?' : value);
    } else {
        static const char names[] = "bfnrt", meanings[] = "\b\f\n\r\t";
        const char *name = left > 1 ? memchr(names, next[1], 5) : NULL;
        put(reading, left <= 1      ? '\\'
                     : name != NULL ? (unsigned char)meanings[name - names]
                                    : (unsigned char)next[1]);
        length = left > 1 ? 2 : 1;
    }
    reading->at += length;
    add_point(reading, false);
}

static void tell_value(struct reading *reading, size_t from, bool is_bare) {
    const bp_view *view = reading->view;
    const bp_view_below *below = reading->below;
    if (view->names.count > 0 && reading->has_memory) {
        reading->has_memory = below->value(below->context, view, from, view->size, is_bare);
    }
}

/* A string ends at its quote, or at the end of its line: `at` is there. */
static void end_string(struct reading *reading) {
    size_t after = reading->at + (reading->raw[reading->at] == '"');
    size_t next = after;
    while (next < reading->size && memchr(" \t\r\n", reading->raw[next], 4) != NULL) {
        next++;
    }
    add_point(reading, false);
    reading->is_after_key = next < reading->size && reading->raw[next] == ':';
    if (reading->is_after_key) {
        reading->key_from = reading->string_from;
    } else {
        tell_value(reading, reading->string_from, false);
    }
    put(reading, reading->is_after_key ? BP_VIEW_KEY : BP_VIEW_END);
    reading->at = after;
    reading->view->is_in_string = false;
}

static bool is_continuation(char byte) {
    return ((unsigned char)byte & 0xC0) == 0x80;
}

/* Bytes that stand for themselves inside of a string. */
static size_t find_plain_end(const char *raw, size_t from, size_t to) {
    while (from < to && raw[from] != '"' && raw[from] != '\\' && raw[from] != '\n' &&
           (unsigned char)raw[from] < BP_VIEW_BARE) {
        from++;
    }
    return from;
}

static void read_string(struct reading *reading) {
    while (reading->at < reading->size) {
        size_t from = reading->at;
        size_t limit = from < reading->cut_at && reading->cut_at < reading->size ? reading->cut_at
                                                                                 : reading->size;
        size_t to = find_plain_end(reading->raw, from, limit);
        memcpy(reading->view->text + reading->view->size, reading->raw + from, to - from);
        reading->view->size += to - from;
        reading->at = to;
        if (to >= reading->cut_at && reading->view->cut_raw == 0 && to < reading->size &&
            is_continuation(reading->raw[to])) { /* not inside of a character */
            reading->cut_at++;
        }
        note_cut(reading, true);
        if (to == limit) {
            continue;
        }
        char byte = reading->raw[to];
        if (byte == '"' || byte == '\n') {
            end_string(reading);
            return;
        }
        if (byte == '\\') {
            read_escape(reading);
        } else { /* what separates strings cannot be in one */
            put(reading, '?');
            reading->at++;
        }
    }
}

/* A number, a word, or anything that should not be here. */
static void read_bare(struct reading *reading) {
    static const char ends[] = " \t\r\n{}[]:,\"";
    const char *text = reading->raw + reading->at;
    size_t length = 0, digits = 0;
    while (reading->at + length < reading->size &&
           memchr(ends, text[length], sizeof ends - 1) == NULL) {
        digits += memchr("0123456789.+-eE", text[length], 15) != NULL;
        length++;
    }
    bool is_number = digits == length && !reading->is_after_key && reading->view->names.count == 0;
    if (!is_number) {
        size_t from = reading->view->size + 1;
        add_point(reading, true);
        put(reading, BP_VIEW_BARE);
        for (size_t i = 0; i < length; i++) {
            put(reading, (unsigned char)text[i] >= BP_VIEW_BARE ? '?' : (unsigned char)text[i]);
        }
        tell_value(reading, from, true);
    }
    reading->at += length;
    if (!is_number) {
        add_point(reading, false);
        put(reading, BP_VIEW_END);
    }
    reading->is_after_key = false;
}

/* Of an array or an object. */
static void read_bracket(struct reading *reading, char byte) {
    bp_view *view = reading->view;
    if (byte == '[' || byte == '{') {
        size_t end = view->size > 0 ? view->size - 1 : 0; /* the key's own */
        bp_names_open(&view->names, reading->below->keywords,
                      reading->is_after_key ? view->text + reading->key_from : NULL,
                      end - reading->key_from);
        reading->is_after_key = false;
    } else if (byte == ']' || byte == '}') {
        bp_names_close(&view->names);
        if (view->size > 0 && view->text[view->size - 1] == BP_VIEW_KEY) {
            put(reading, BP_VIEW_END); /* it is empty: what follows is no value of the key */
        }
    }
    reading->at++;
}

static bool reserve(bp_view *view, size_t byte_count) {
    size_t needed = 2 * byte_count + 16; /* "a,a" gives three bytes for each two */
    view->size = view->point_count = view->cut_raw = view->cut_view = 0;
    view->is_in_string = view->is_cut_in_string = false;
    if (view->capacity < needed) {
        unsigned char *text = realloc(view->text, needed);
        if (text == NULL) {
            return false;
        }
        view->text = text;
        view->capacity = needed;
    }
    return true;
}

bugpack_status bp_view_json(bp_view *view, const char *raw, size_t byte_count, bool is_in_string,
                            size_t cut_at, const bp_view_below *below) {
    struct reading reading = {.view = view,
                              .raw = raw,
                              .size = byte_count,
                              .cut_at = cut_at,
                              .below = below,
                              .has_memory = reserve(view, byte_count)};
    if (!reading.has_memory) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    view->is_in_string = is_in_string;
    add_point(&reading, false);
    while (reading.has_memory && reading.at < byte_count) {
        char byte = raw[reading.at];
        if (view->is_in_string) {
            read_string(&reading);
        } else if (byte == '"') {
            note_cut(&reading, false);
            reading.at++;
            view->is_in_string = true;
            reading.string_from = view->size;
            add_point(&reading, false);
        } else if (memchr(" \t\r\n{}[]:,", byte, 10) != NULL) {
            read_bracket(&reading, byte);
        } else {
            note_cut(&reading, false);
            read_bare(&reading);
        }
    }
    if (view->is_in_string) {
        tell_value(&reading, reading.string_from, false);
    }
    add_point(&reading, false);
    return reading.has_memory ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
}

bugpack_status bp_view_text(bp_view *view, const char *raw, size_t byte_count, size_t cut_at) {
    struct reading reading = {.view = view,
                              .raw = raw,
                              .size = byte_count,
                              .cut_at = cut_at,
                              .has_memory = reserve(view, byte_count)};
    if (!reading.has_memory) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    add_point(&reading, false);
    while (reading.has_memory && reading.at < byte_count) {
        char byte = raw[reading.at];
        unsigned value = 0;
        size_t length = byte == '\\' ? read_ascii(&reading, &value) : 0;
        if (!is_continuation(byte)) {
            note_cut(&reading, false);
        }
        put(&reading, length > 0 ? value : (unsigned char)byte);
        reading.at += length > 0 ? length : 1;
        if (length > 0) {
            add_point(&reading, false);
        }
    }
    return reading.has_memory ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
}

/* The last point at or before. */
static const bp_view_point *find_point(const bp_view *view, size_t at) {
    size_t low = 0, high = view->point_count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (view->points[middle].view <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &view->points[low];
}

size_t bp_view_raw(const bp_view *view, size_t at) {
    const bp_view_point *point = find_point(view, at);
    return point->raw + (at - point->view) - (point->is_bare && at > point->view);
}

bool bp_view_is_bare(const bp_view *view, size_t at, size_t *ret_from, size_t *ret_to) {
    const bp_view_point *point = find_point(view, at);
    if (!point->is_bare) {
        return false;
    }
    *ret_from = point->raw;
    *ret_to = point[1].raw; /* each bare value is followed by the point of its end */
    return true;
}
