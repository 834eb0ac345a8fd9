#include <math.h>
#include <string.h>

#include "base/status.h"
#include "json/append.h"
#include "json/json.h"

static void fail(bp_json *json, bugpack_status status, const char *failure) {
    if (json->status == BUGPACK_OK) {
        json->status = status;
        json->failure = failure;
    }
}

void bp_json_fail_memory(bp_json *json) {
    fail(json, BUGPACK_ERR_NO_MEMORY, "out of memory");
}

/* Whether nothing has failed. A failure of the buffer becomes one of the document. */
static bool is_building(bp_json *json) {
    if (json->out->status != BUGPACK_OK) {
        fail(json, json->out->status,
             json->out->status == BUGPACK_ERR_LIMIT ? "it is too large" : "out of memory");
    }
    return json->status == BUGPACK_OK;
}

static void open_level(bp_json *json, bool is_object) {
    if (json->depth == BP_JSON_DEPTH_MAX) {
        fail(json, BUGPACK_ERR_INVALID, "it is nested too deep");
        return;
    }
    (void)bp_buffer_append_char(json->out, is_object ? '{' : '[');
    json->open[json->depth++] =
        (bp_json_level){.is_object = is_object, .first_key = json->keys.count};
}

static void break_line(bp_json *json) {
    if (!json->is_line) {
        bp_json_break_line(json->out, json->depth);
    }
}

static void close_level(bp_json *json) {
    const bp_json_level *level = &json->open[--json->depth];
    bp_json_keys_end(&json->keys, level->first_key);
    if (level->has_member) {
        break_line(json);
    }
    (void)bp_buffer_append_char(json->out, level->is_object ? '}' : ']');
}

void bp_json_begin(bp_json *json, bp_buffer *out) {
    *json = (bp_json){.out = out, .start = out->size};
    open_level(json, true);
    json->first_depth = json->depth;
}

void bp_json_begin_line(bp_json *json, bp_buffer *out) {
    bp_json_begin(json, out);
    json->is_line = true;
}

void bp_json_begin_elements(bp_json *json, bp_buffer *out) {
    *json = (bp_json){.out = out,
                      .start = out->size,
                      .open = {{.is_object = true}, {.has_member = true}},
                      .depth = 2,
                      .first_depth = 2};
}

bugpack_status bp_json_finish(bp_json *json, bugpack_error *error) {
    if (is_building(json) && json->depth != json->first_depth) {
        fail(json, BUGPACK_ERR_INVALID, "an object or array was not ended");
    }
    if (is_building(json) && json->depth == 1) {
        close_level(json);
        (void)bp_buffer_append_char(json->out, '\n');
    }
    bp_json_keys_release(&json->keys);
    if (is_building(json)) {
        return BUGPACK_OK;
    }
    bp_json_cut(json->out, json->start);
    return bp_fail(error, json->status, "cannot build a JSON document: %s", json->failure);
}

static void add_key(bp_json *json, size_t first_key, const char *key) {
    size_t start = json->out->size;
    bool is_repeated = false;
    if (bp_json_append_string(json->out, key, strlen(key)) != BUGPACK_OK) {
        return;
    }
    if (bp_json_keys_add(&json->keys, first_key, json->out->data + start, json->out->size - start,
                         &is_repeated) != BUGPACK_OK) {
        bp_json_fail_memory(json);
    } else if (is_repeated) {
        fail(json, BUGPACK_ERR_INVALID, "a key is twice in one object");
    }
    (void)bp_buffer_append_text(json->out, ": ");
}

/* Writes what comes before a value. False when the document has failed. */
static bool begin_value(bp_json *json, const char *key) {
    if (!is_building(json)) {
        return false;
    }
    bp_json_level *level = &json->open[json->depth - 1];
    if (level->is_object != (key != NULL)) {
        fail(json, BUGPACK_ERR_INVALID,
             level->is_object ? "a member of an object has no key"
                              : "an element of an array has a key");
        return false;
    }
    if (level->has_member) {
        (void)bp_buffer_append_char(json->out, ',');
    }
    level->has_member = true;
    break_line(json);
    if (key != NULL) {
        add_key(json, level->first_key, key);
    }
    return is_building(json);
}

static void end(bp_json *json, bool is_object) {
    if (!is_building(json)) {
        return;
    }
    if (json->depth == json->first_depth || json->open[json->depth - 1].is_object != is_object) {
        fail(json, BUGPACK_ERR_INVALID, "what is ended is not what was begun last");
        return;
    }
    close_level(json);
}

void bp_json_object_begin(bp_json *json, const char *key) {
    if (begin_value(json, key)) {
        open_level(json, true);
    }
}

void bp_json_object_end(bp_json *json) {
    end(json, true);
}

void bp_json_array_begin(bp_json *json, const char *key) {
    if (begin_value(json, key)) {
        open_level(json, false);
    }
}

void bp_json_array_end(bp_json *json) {
    end(json, false);
}

void bp_json_quote(bp_json *json, bool is_quoting) {
    json->is_quoting = is_quoting;
}

void bp_json_add_text(bp_json *json, const char *key, const char *text) {
    bp_json_add_bytes(json, key, text, text != NULL ? strlen(text) : 0);
}

void bp_json_add_bytes(bp_json *json, const char *key, const void *bytes, size_t byte_count) {
    if (bytes != NULL && begin_value(json, key)) {
        (void)(json->is_quoting ? bp_json_append_quote(json->out, bytes, byte_count)
                                : bp_json_append_string(json->out, bytes, byte_count));
    }
}

/* Without printf, because most members of large documents are numbers. */
static void add_digits(bp_json *json, const char *key, bool is_negative, uint64_t magnitude) {
    char digits[24];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (is_negative) {
        digits[--first] = '-';
    }
    if (begin_value(json, key)) {
        (void)bp_buffer_append(json->out, digits + first, sizeof digits - first);
    }
}

void bp_json_add_uint(bp_json *json, const char *key, uint64_t value) {
    add_digits(json, key, false, value);
}

void bp_json_add_int(bp_json *json, const char *key, int64_t value) {
    add_digits(json, key, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void bp_json_add_raw(bp_json *json, const char *key, const char *value) {
    if (begin_value(json, key)) {
        (void)bp_json_append_value(json->out, value);
    }
}

void bp_json_add_bool(bp_json *json, const char *key, bool value) {
    bp_json_add_raw(json, key, value ? "true" : "false");
}

void bp_json_add_null(bp_json *json, const char *key) {
    bp_json_add_raw(json, key, "null");
}

void bp_json_add_number(bp_json *json, const char *key, double value, unsigned decimals) {
    if (!isfinite(value) || decimals > 9) {
        fail(json, BUGPACK_ERR_INVALID, "a number is not finite, or has too many decimals");
    }
    if (begin_value(json, key)) {
        (void)bp_json_append_number(json->out, value, decimals);
    }
}
