#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "json/json.h"
#include "json/scanner.h"

/* The largest double has 309 digits; besides them a sign, a point, 9 decimals and NUL. */
enum { number_max_bytes = 336 };

/* Removes what a failed append left after `size`; the failure of the buffer stays. */
static void cut(bp_buffer *out, size_t size) {
    if (out->data != NULL) {
        out->size = size;
        out->data[size] = '\0';
    }
}

static bugpack_status append_escape(bp_buffer *out, uint32_t code) {
    const char *short_form = code != 0 && code < 0x80 ? strchr(bp_json_escaped, (int)code) : NULL;
    if (short_form != NULL) {
        (void)bp_buffer_append_char(out, '\\');
        return bp_buffer_append_char(out, bp_json_escapes[short_form - bp_json_escaped]);
    }
    return bp_buffer_printf(out, "\\u%04x", (unsigned)code);
}

/*
 * The length of the character at `text`, with its code point, if it is escaped, otherwise 0. These
 * are a quote, a backslash and all control characters: a document may be printed to a terminal, to
 * which U+009B is what ESC [ is. NUL is not among them: bp_utf8_encode has a form of its own for
 * it.
 */
static size_t escaped_length(const char *text, size_t available, uint32_t *ret_code) {
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] >= 0x80) {
        return bp_utf8_control(bytes, available, ret_code);
    }
    *ret_code = bytes[0];
    return (bytes[0] < 0x20 && bytes[0] != 0) || bytes[0] == '"' || bytes[0] == '\\' ||
           bytes[0] == 0x7F;
}

typedef bugpack_status encoder(bp_buffer *out, const void *bytes, size_t byte_count);

static bugpack_status append_string(bp_buffer *out, const void *bytes, size_t byte_count,
                                    encoder *encode) {
    const char *text = bytes;
    size_t size_before = out->size;
    size_t plain = 0, i = bp_json_plain_length(bytes, byte_count);
    char *at = i == byte_count ? bp_buffer_reserve(out, byte_count + 2) : NULL;
    if (at != NULL) { /* as of most texts, and of all keys */
        at[0] = at[byte_count + 1] = '"';
        memcpy(at + 1, text, byte_count);
        bp_buffer_commit(out, byte_count + 2);
        return BUGPACK_OK;
    }
    (void)bp_buffer_append_char(out, '"');
    for (; i < byte_count; i++) {
        /* No escaped byte continues a character, so a cut here never splits one. */
        uint32_t code;
        size_t length = escaped_length(text + i, byte_count - i, &code);
        if (length > 0) {
            (void)encode(out, text + plain, i - plain);
            i += length - 1;
            (void)append_escape(out, code);
            plain = i + 1;
        }
    }
    if (byte_count > plain) {
        (void)encode(out, text + plain, byte_count - plain);
    }
    if (bp_buffer_append_char(out, '"') != BUGPACK_OK) {
        cut(out, size_before);
    }
    return out->status;
}

bugpack_status bp_json_append_string(bp_buffer *out, const void *bytes, size_t byte_count) {
    return append_string(out, bytes, byte_count, bp_utf8_encode);
}

/* Appends a value of another document, with the control characters of its strings escaped. */
static bugpack_status append_value(bp_buffer *out, const char *text, size_t byte_count) {
    size_t plain = 0;
    for (size_t i = 0; i < byte_count; i++) {
        uint32_t code;
        size_t length =
            (unsigned char)text[i] < 0x7F ? 0 : escaped_length(text + i, byte_count - i, &code);
        if (length > 0) {
            (void)bp_buffer_append(out, text + plain, i - plain);
            (void)append_escape(out, code);
            i += length - 1;
            plain = i + 1;
        }
    }
    return bp_buffer_append(out, text + plain, byte_count - plain);
}

bugpack_status bp_json_append_number(bp_buffer *out, double value, unsigned decimals) {
    char digits[number_max_bytes];
    int printed = snprintf(digits, sizeof digits, "%.*f", (int)decimals, value);
    if (printed < 0 || (size_t)printed >= sizeof digits) {
        /* The only failure of the C library is memory. */
        out->status = out->status == BUGPACK_OK ? BUGPACK_ERR_NO_MEMORY : out->status;
        return out->status;
    }
    if (decimals > 0) {
        /* Between the whole digits and the last `decimals` is the locale's point, which may have
         * several bytes. */
        size_t whole = strspn(digits, "-0123456789");
        digits[whole] = '.';
        memmove(digits + whole + 1, digits + (size_t)printed - decimals, decimals + 1);
        size_t length = whole + 1 + decimals;
        while (digits[length - 1] == '0') {
            length--;
        }
        length -= length == whole + 1; /* no digit is left after the point */
        digits[length] = '\0';
    }
    return bp_buffer_append_text(out, strcmp(digits, "-0") == 0 ? "0" : digits);
}

static void fail(bp_json *json, bugpack_status status, const char *failure) {
    if (json->status == BUGPACK_OK) {
        json->status = status;
        json->failure = failure;
    }
}

void bp_json_fail_memory(bp_json *json) {
    fail(json, BUGPACK_ERR_NO_MEMORY, "out of memory");
}

/* True if nothing has failed. A failure of the buffer becomes one of the document. */
static bool is_building(bp_json *json) {
    if (json->out->status != BUGPACK_OK) {
        fail(json, json->out->status,
             json->out->status == BUGPACK_ERR_LIMIT ? "it is too large" : "out of memory");
    }
    return json->status == BUGPACK_OK;
}

/* Starts a line of a page, indented for what is nested so deep. */
static void break_line(bp_json *json) {
    static const char line[1 + 2 * BP_JSON_DEPTH_MAX + 1] =
        "\n                                                                "
        "                                                                ";
    if (json->layout == BP_JSON_PAGE) {
        (void)bp_buffer_append(json->out, line, 1 + 2 * json->depth);
    }
}

static void open_level(bp_json *json, bool is_object) {
    if (json->depth == BP_JSON_DEPTH_MAX) {
        fail(json, BUGPACK_ERR_INVALID, "it is nested too deep");
        return;
    }
    (void)bp_buffer_append_char(json->out, is_object ? '{' : '[');
    json->open[json->depth++] = (bp_json_level){.is_object = is_object};
}

static void close_level(bp_json *json) {
    bp_json_level level = json->open[--json->depth];
    if (level.has_member) {
        break_line(json);
    }
    (void)bp_buffer_append_char(json->out, level.is_object ? '}' : ']');
}

/* Separates a member, or an element, from the one before it. */
static void begin_member(bp_json *json) {
    bp_json_level *level = &json->open[json->depth - 1];
    bool is_table = json->layout == BP_JSON_TABLE;
    bool is_row = is_table && json->depth == 2 && !level->is_object;
    if (level->has_member) {
        (void)bp_buffer_append_text(json->out, is_table && !is_row && json->depth > 1 ? ", " : ",");
    }
    if (is_row || (is_table && json->depth == 1 && level->has_member)) {
        (void)bp_buffer_append_char(json->out, '\n');
    }
    level->has_member = true;
    break_line(json);
}

static void end_key(bp_json *json) {
    (void)bp_buffer_append_text(json->out, json->layout == BP_JSON_RECORD ? ":" : ": ");
}

void bp_json_begin_as(bp_json *json, bp_json_layout layout, bp_buffer *out) {
    *json = (bp_json){.out = out, .start = out->size, .layout = layout};
    open_level(json, true);
    json->first_depth = json->depth;
}

void bp_json_begin(bp_json *json, bp_buffer *out) {
    bp_json_begin_as(json, BP_JSON_PAGE, out);
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
    if (is_building(json)) {
        return BUGPACK_OK;
    }
    cut(json->out, json->start);
    return bp_fail(error, json->status, "cannot build a JSON document: %s", json->failure);
}

/* Writes what comes before a value. False when the document has failed. */
static bool begin_value(bp_json *json, const char *key) {
    if (!is_building(json)) {
        return false;
    }
    bool is_object = json->open[json->depth - 1].is_object;
    if (is_object != (key != NULL)) {
        fail(json, BUGPACK_ERR_INVALID,
             is_object ? "a member of an object has no key" : "an element of an array has a key");
        return false;
    }
    begin_member(json);
    if (key != NULL) {
        (void)bp_json_append_string(json->out, key, strlen(key));
        end_key(json);
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
        (void)append_string(json->out, bytes, byte_count,
                            json->is_quoting ? bp_utf8_complete : bp_utf8_encode);
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

void bp_json_add_raw(bp_json *json, const char *key, const char *value, size_t byte_count) {
    if (begin_value(json, key)) {
        (void)append_value(json->out, value, byte_count);
    }
}

static void add_word(bp_json *json, const char *key, const char *word) {
    if (begin_value(json, key)) {
        (void)bp_buffer_append_text(json->out, word);
    }
}

void bp_json_add_bool(bp_json *json, const char *key, bool value) {
    add_word(json, key, value ? "true" : "false");
}

void bp_json_add_null(bp_json *json, const char *key) {
    add_word(json, key, "null");
}

void bp_json_add_number(bp_json *json, const char *key, double value, unsigned decimals) {
    if (!isfinite(value) || decimals > 9) {
        fail(json, BUGPACK_ERR_INVALID, "a number is not finite, or has too many decimals");
    }
    if (begin_value(json, key)) {
        (void)bp_json_append_number(json->out, value, decimals);
    }
}

/* Writes one token of a checked text, and before it what separates it from the one before. */
static void add_token(bp_json *json, const bp_json_token *token, bool is_after_key) {
    if (token->kind == BP_JSON_END) {
        close_level(json);
        return;
    }
    if (json->depth > 0 && !is_after_key) {
        begin_member(json);
    }
    if (token->kind == BP_JSON_BEGIN) {
        open_level(json, token->text[0] == '{');
        return;
    }
    (void)bp_buffer_append(json->out, token->text, token->byte_count);
    if (token->kind == BP_JSON_KEY) {
        end_key(json);
    }
}

bugpack_status bp_json_reformat(const void *text, size_t byte_count, bp_buffer *out,
                                bugpack_error *error) {
    bp_json json = {.out = out, .start = out->size};
    bp_json_scanner scanner;
    bp_json_token token = {.kind = BP_JSON_BEGIN};
    bugpack_status status = BUGPACK_OK;
    bp_json_scanner_init(&scanner, text, byte_count);
    while (status == BUGPACK_OK && token.kind != BP_JSON_FINISH && out->status == BUGPACK_OK) {
        bool is_after_key = token.kind == BP_JSON_KEY;
        status = bp_json_scanner_next(&scanner, &token, error);
        if (status == BUGPACK_OK && token.kind != BP_JSON_FINISH) {
            add_token(&json, &token, is_after_key);
        }
    }
    bp_json_scanner_release(&scanner);
    if (status == BUGPACK_OK && bp_buffer_append_char(out, '\n') != BUGPACK_OK) {
        status = bp_fail(error, out->status, "cannot write a JSON text: %s",
                         out->status == BUGPACK_ERR_LIMIT ? "it is too large" : "out of memory");
    }
    if (status != BUGPACK_OK) {
        cut(out, json.start);
    }
    return status;
}
