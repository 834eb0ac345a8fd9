#include "redact/view.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "json/token.h"

struct reading {
    bp_view *view;
    const char *raw;
    size_t size, at;
    const bp_view_how *how;
    size_t string_from, string_point; /* of the last one: in the view, and its first point */
    bool may_have_codes;              /* the last string */
    bool is_after_key;
    bool has_memory;
};

/* Classes of bytes outside of strings. */
enum { is_space = 1, is_punctuation = 2, is_quote = 4, is_of_number = 8 };
static const unsigned char kinds[256] = {
    [' '] = is_space,       ['\t'] = is_space,      ['\r'] = is_space,      ['\n'] = is_space,
    ['{'] = is_punctuation, ['}'] = is_punctuation, ['['] = is_punctuation, [']'] = is_punctuation,
    [':'] = is_punctuation, [','] = is_punctuation, ['"'] = is_quote,       ['0'] = is_of_number,
    ['1'] = is_of_number,   ['2'] = is_of_number,   ['3'] = is_of_number,   ['4'] = is_of_number,
    ['5'] = is_of_number,   ['6'] = is_of_number,   ['7'] = is_of_number,   ['8'] = is_of_number,
    ['9'] = is_of_number,   ['.'] = is_of_number,   ['+'] = is_of_number,   ['-'] = is_of_number,
    ['e'] = is_of_number,   ['E'] = is_of_number,
};

static unsigned kind_of(char byte) {
    return kinds[(unsigned char)byte];
}

void bp_names_open(bp_names *names, const bp_keywords *keywords, const unsigned char *key,
                   size_t byte_count) {
    names->depth = names->count > 0 ? names->depth + 1 : 0;
    if (key == NULL || byte_count > BP_NAME_MAX_BYTES || names->count == BP_NAMES_MAX) {
        return;
    }
    bp_name *name = &names->names[names->count];
    memcpy(name->text, key, byte_count);
    name->text[byte_count] = BP_VIEW_KEY;
    name->size = (uint8_t)(byte_count + 1);
    bp_keyword_search search = {.keywords = keywords, .text = name->text, .size = name->size};
    bp_keyword_hit hit;
    if (bp_keywords_find(&search, &hit)) {
        name->depth = names->depth;
        names->count++;
    }
}

void bp_names_close(bp_names *names) {
    if (names->count > 0 && names->names[names->count - 1].depth == names->depth) {
        names->count--;
    }
    names->depth = names->count > 0 ? names->depth - 1 : 0;
}

void bp_view_release(bp_view *view) {
    free(view->memory);
    free(view->points);
    free(view->old_points);
    *view = (bp_view){.text = NULL};
}

void bp_view_plain(bp_view *view, const void *raw, size_t byte_count) {
    view->text = raw;
    view->size = view->message_to = byte_count;
    view->point_count = view->key_from = view->message_from = 0;
    view->is_json = view->goes_on = view->decodes = view->is_in_string = false;
}

static void add_point_at(struct reading *reading, size_t at, size_t raw, bp_view_kind kind) {
    bp_view *view = reading->view;
    if (view->point_count == view->point_capacity &&
        !bp_array_reserve(&view->points, view->point_count, &view->point_capacity)) {
        reading->has_memory = false;
        return;
    }
    view->points[view->point_count++] =
        (bp_view_point){.view = (uint32_t)at, .raw = (uint32_t)raw, .kind = kind};
}

static void add_point(struct reading *reading, bp_view_kind kind) {
    add_point_at(reading, reading->view->size, reading->at, kind);
}

static void put(struct reading *reading, unsigned byte) {
    reading->view->memory[reading->view->size++] = (unsigned char)byte;
}

/* The part of the same line or string that was recorded before. */
static void put_earlier(struct reading *reading) {
    const bp_view_how *how = reading->how;
    if (how->earlier_bytes > 0) {
        add_point(reading, BP_VIEW_EARLIER);
        memcpy(reading->view->memory + reading->view->size, how->earlier, how->earlier_bytes);
        reading->view->size += how->earlier_bytes;
    }
    add_point(reading, BP_VIEW_SAME);
}

/* The points of a part of the view that is being rewritten, from the first one on. */
struct old_points {
    const bp_view_point *next, *end;
    bp_view_point last; /* at or before where the rewriting is */
};

static size_t raw_of(const bp_view_point *point, size_t at) {
    size_t distance = point->kind == BP_VIEW_EARLIER ? 0 : at - point->view;
    return point->raw + distance - (point->kind == BP_VIEW_VALUE && distance > 0);
}

/* Moves to `at`, and returns where in the record ends what is before it. */
static size_t move_to(struct old_points *old, size_t at) {
    while (old->next < old->end && old->next->view < at) {
        old->last = *old->next++;
    }
    size_t end =
        old->next < old->end && old->next->view == at ? old->next->raw : raw_of(&old->last, at);
    while (old->next < old->end && old->next->view == at) {
        old->last = *old->next++;
    }
    return end;
}

/* Takes over the points before `at`, which moved by `distance`. */
static void keep_points(struct reading *reading, struct old_points *old, size_t at,
                        size_t distance) {
    while (old->next < old->end && old->next->view < at) {
        old->last = *old->next++;
        add_point_at(reading, old->last.view - distance, old->last.raw, old->last.kind);
    }
}

static bool save_points(bp_view *view, size_t first, struct old_points *ret_old) {
    size_t count = view->point_count - first;
    if (view->old_capacity < count) {
        bp_view_point *points = realloc(view->old_points, count * sizeof *points);
        if (points == NULL) {
            return false;
        }
        view->old_points = points;
        view->old_capacity = count;
    }
    memcpy(view->old_points, view->points + first, count * sizeof *view->old_points);
    *ret_old = (struct old_points){view->old_points, view->old_points + count, view->points[first]};
    view->point_count = first;
    return true;
}

/* Takes the codes out of the view from `from` on, `code` first. */
static void take_out(struct reading *reading, size_t from, size_t first_point, bp_code code) {
    bp_view *view = reading->view;
    struct old_points old;
    size_t in = from, out = from, size = view->size;
    if (!save_points(view, first_point, &old)) {
        reading->has_memory = false;
        return;
    }
    do {
        keep_points(reading, &old, code.from, in - out);
        memmove(view->memory + out, view->memory + in, code.from - in);
        out += code.from - in;
        add_point_at(reading, out, move_to(&old, code.from), old.last.kind);
        if (code.byte != BP_CODE_NOTHING) {
            add_point_at(reading, out, raw_of(&old.last, code.from), old.last.kind);
            view->memory[out++] = (unsigned char)code.byte;
            add_point_at(reading, out, move_to(&old, code.to), old.last.kind);
        } else {
            (void)move_to(&old, code.to);
        }
        add_point_at(reading, out, raw_of(&old.last, code.to), old.last.kind);
        in = code.to;
    } while (bp_code_find(view->text, size, in, reading->how->mode, &code));
    keep_points(reading, &old, SIZE_MAX, in - out);
    memmove(view->memory + out, view->memory + in, size - in);
    view->size = out + (size - in);
}

/* True if the text has codes that only BP_CODES_DECODED resolves. */
static bool has_decoded(const bp_view *view, size_t from, bp_code code) {
    do {
        bp_code shown;
        if (code.byte == '\n' ||
            !bp_code_find(view->text, code.to, code.from, BP_CODES_SHOWN, &shown)) {
            return true;
        }
        from = code.to;
    } while (bp_code_find(view->text, view->size, from, BP_CODES_DECODED, &code));
    return false;
}

/* Takes out what was put from `from` on, again while something is found: what is decoded may be a
 * code (%2522, &amp;quot;). */
static void resolve(struct reading *reading, size_t from, size_t first_point) {
    enum { max_rounds = 4 };
    bp_view *view = reading->view;
    bp_code code;
    if (!bp_code_find(view->text, view->size, from, BP_CODES_DECODED, &code)) {
        return;
    }
    if (reading->how->mode == BP_CODES_SHOWN && !view->decodes) {
        view->decodes = has_decoded(view, from, code);
    }
    bool has_code = reading->how->mode == BP_CODES_DECODED ||
                    bp_code_find(view->text, view->size, from, BP_CODES_SHOWN, &code);
    for (int round = 0; has_code && round < max_rounds && reading->has_memory; round++) {
        take_out(reading, from, first_point, code);
        has_code = bp_code_find(view->text, view->size, from, reading->how->mode, &code);
    }
}

/* One escape of a JSON string, at its backslash. */
static void read_escape(struct reading *reading) {
    uint32_t code;
    const char *wrong;
    reading->at +=
        bp_json_read_escape(reading->raw + reading->at, reading->size - reading->at, &code, &wrong);
    if (wrong == NULL) {
        bp_view *view = reading->view;
        view->size += bp_utf8_put(code == 0 ? '?' : code, (char *)view->memory + view->size);
    } else {
        put(reading, code);
    }
    add_point(reading, BP_VIEW_SAME);
}

static void tell_value(struct reading *reading, size_t from, bool is_bare) {
    const bp_view *view = reading->view;
    const bp_view_how *how = reading->how;
    if (how->value != NULL && view->names.count > 0 && reading->has_memory) {
        reading->has_memory = how->value(how->context, view, from, view->size, is_bare);
    }
}

/* Between values: JSON that was printed with colours has them there. */
static size_t skip_blank(const struct reading *reading, size_t at) {
    size_t next = at;
    do {
        at = next;
        while (next < reading->size && kind_of(reading->raw[next]) == is_space) {
            next++;
        }
        next = bp_code_skip_sequence(reading->raw, reading->size, next);
    } while (next > at);
    return at;
}

static void begin_string(struct reading *reading) {
    static const char message[] = "message";
    bp_view *view = reading->view;
    size_t key_bytes = view->size - view->key_from;
    bool is_message = reading->is_after_key && key_bytes == sizeof message &&
                      memcmp(view->text + view->key_from, message, sizeof message - 1) == 0;
    reading->string_from = view->size;
    reading->string_point = view->point_count;
    reading->may_have_codes = false;
    if (is_message && view->message_to == 0) {
        put_earlier(reading);
        reading->may_have_codes = reading->how->earlier_bytes > 0;
        view->message_from = reading->string_from;
        view->message_to = SIZE_MAX;
    } else {
        add_point(reading, BP_VIEW_SAME);
    }
    view->is_in_string = true;
}

static void close_string(struct reading *reading) {
    bp_view *view = reading->view;
    if (reading->may_have_codes) {
        resolve(reading, reading->string_from, reading->string_point);
    }
    add_point(reading, BP_VIEW_SAME);
    if (view->message_to == SIZE_MAX) {
        view->message_to = view->size;
    }
}

/* A string ends at its quote, or at the end of its line: `at` is there. */
static void end_string(struct reading *reading) {
    size_t after = reading->at + (reading->raw[reading->at] == '"');
    size_t next = skip_blank(reading, after);
    close_string(reading);
    reading->is_after_key = next < reading->size && reading->raw[next] == ':';
    if (reading->is_after_key) {
        reading->view->key_from = reading->string_from;
    } else {
        tell_value(reading, reading->string_from, false);
    }
    put(reading, reading->is_after_key ? BP_VIEW_KEY : BP_VIEW_END);
    reading->at = after;
    reading->view->is_in_string = false;
}

/* Bytes that stand for themselves inside of a string. */
static size_t find_plain_end(struct reading *reading) {
    size_t to = reading->at;
    bool may_have_codes = reading->may_have_codes;
    for (; to < reading->size; to++) {
        unsigned char byte = (unsigned char)reading->raw[to];
        if (byte == '"' || byte == '\\' || byte == '\n' || byte >= BP_VIEW_BARE) {
            break;
        }
        may_have_codes |= bp_code_bytes[byte];
    }
    reading->may_have_codes = may_have_codes;
    return to;
}

static void read_string(struct reading *reading) {
    while (reading->at < reading->size) {
        size_t from = reading->at;
        size_t to = find_plain_end(reading);
        memcpy(reading->view->memory + reading->view->size, reading->raw + from, to - from);
        reading->view->size += to - from;
        reading->at = to;
        if (to == reading->size) {
            break;
        }
        char byte = reading->raw[to];
        if (byte == '"' || byte == '\n') {
            end_string(reading);
            return;
        }
        if (byte == '\\') {
            read_escape(reading);
            reading->may_have_codes |= bp_code_bytes[reading->view->text[reading->view->size - 1]];
        } else { /* what separates strings cannot be in one */
            put(reading, '?');
            reading->at++;
        }
    }
    close_string(reading);
    tell_value(reading, reading->string_from, false);
}

/* A number, a word, or anything that should not be here. */
static void read_bare(struct reading *reading) {
    const char *text = reading->raw + reading->at;
    size_t length = 0, digits = 0;
    while (reading->at + length < reading->size &&
           (kind_of(text[length]) & (is_space | is_punctuation | is_quote)) == 0) {
        digits += kind_of(text[length]) == is_of_number;
        length++;
    }
    bool is_number = digits == length && !reading->is_after_key && reading->view->names.count == 0;
    if (!is_number) {
        size_t from = reading->view->size + 1;
        add_point(reading, BP_VIEW_VALUE);
        put(reading, BP_VIEW_BARE);
        for (size_t i = 0; i < length; i++) {
            put(reading, (unsigned char)text[i] >= BP_VIEW_BARE ? '?' : (unsigned char)text[i]);
        }
        tell_value(reading, from, true);
    }
    reading->at += length;
    if (!is_number) {
        add_point(reading, BP_VIEW_SAME);
        put(reading, BP_VIEW_END);
    }
    reading->is_after_key = false;
}

/* Reads a bracket of an array or an object. */
static void read_bracket(struct reading *reading, char byte) {
    bp_view *view = reading->view;
    if (byte == '[' || byte == '{') {
        size_t end = view->size > 0 ? view->size - 1 : 0; /* the key's own */
        bp_names_open(&view->names, reading->how->keywords,
                      reading->is_after_key ? view->text + view->key_from : NULL,
                      end - view->key_from);
        reading->is_after_key = false;
    } else if (byte == ']' || byte == '}') {
        bp_names_close(&view->names);
        if (byte == '}') { /* what follows is no value of its key, nor of the object */
            put(reading, BP_VIEW_END);
        }
    }
    reading->at++;
}

static bool begin_view(struct reading *reading, bool is_json) {
    bp_view *view = reading->view;
    const bp_view_how *how = reading->how;
    size_t needed = 2 * reading->size + how->earlier_bytes + 16; /* "a,a" gives three for two */
    view->size = view->point_count = view->key_from = 0;
    view->message_from = view->message_to = 0;
    view->is_in_string = how->is_in_string;
    view->decodes = false;
    if (view->capacity < needed) {
        unsigned char *memory = realloc(view->memory, needed);
        if (memory == NULL) {
            return false;
        }
        view->memory = memory;
        view->capacity = needed;
    }
    view->text = view->memory;
    view->is_json = is_json;
    reading->has_memory = true;
    return true;
}

bugpack_status bp_view_json(bp_view *view, const char *raw, size_t byte_count,
                            const bp_view_how *how) {
    struct reading reading = {.view = view, .raw = raw, .size = byte_count, .how = how};
    if (!begin_view(&reading, true)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    add_point(&reading, BP_VIEW_SAME);
    while (reading.has_memory && reading.at < byte_count) {
        if (view->is_in_string) {
            read_string(&reading);
            continue;
        }
        reading.at = skip_blank(&reading, reading.at);
        if (reading.at == byte_count) {
            break;
        }
        unsigned kind = kind_of(raw[reading.at]);
        if (kind == is_quote) {
            reading.at++;
            begin_string(&reading);
        } else if (kind == is_punctuation) {
            read_bracket(&reading, raw[reading.at]);
        } else {
            read_bare(&reading);
        }
    }
    add_point(&reading, BP_VIEW_SAME);
    return reading.has_memory ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
}

bugpack_status bp_view_text(bp_view *view, const char *raw, size_t byte_count,
                            const bp_view_how *how) {
    struct reading reading = {.view = view, .raw = raw, .size = byte_count, .how = how};
    if (!begin_view(&reading, false)) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    put_earlier(&reading);
    memcpy(view->memory + view->size, raw, byte_count);
    view->size += byte_count;
    reading.at = byte_count;
    if (reading.has_memory) {
        resolve(&reading, 0, 0);
    }
    add_point(&reading, BP_VIEW_SAME);
    view->message_to = view->size;
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
    return view->point_count == 0 ? at : raw_of(find_point(view, at), at);
}

size_t bp_view_raw_end(const bp_view *view, size_t at) {
    if (view->point_count == 0) {
        return at;
    }
    const bp_view_point *point = find_point(view, at);
    while (point > view->points && point->view == at && point[-1].view == at) {
        point--;
    }
    return raw_of(point, at);
}

static bool is_of_word(unsigned char byte) {
    return isalnum(byte) || memchr("_-+./", byte, 5) != NULL;
}

size_t bp_view_next_joint(const bp_view *view, size_t *point) {
    for (size_t i = *point + 1; i < view->point_count; i++) {
        const bp_view_point *before = &view->points[i - 1], *behind = &view->points[i];
        size_t at = behind->view, from = at;
        if (before->view != at || before->raw >= behind->raw || at == 0 || at >= view->size ||
            !(isalnum(view->text[at]) || view->text[at] == '_')) {
            continue;
        }
        while (from > view->points[*point].view && is_of_word(view->text[from - 1])) {
            from--;
        }
        bool is_first = *point == 0 || from > view->points[*point].view;
        *point = i;
        if (is_first && from < at) {
            return at;
        }
    }
    return SIZE_MAX;
}

bool bp_view_is_bare(const bp_view *view, size_t at, size_t *ret_from, size_t *ret_to) {
    const bp_view_point *point = view->point_count > 0 ? find_point(view, at) : NULL;
    if (point == NULL || point->kind != BP_VIEW_VALUE) {
        return false;
    }
    *ret_from = point->raw;
    *ret_to = point[1].raw; /* each bare value is followed by the point of its end */
    return true;
}
