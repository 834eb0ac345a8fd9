#include "entries/json_lines.h"

#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

static const size_t line_max_bytes = (size_t)1 << 20;

void bp_line_stream_init(bp_line_stream *stream, bp_json_line_taker *take, void *context) {
    *stream = (bp_line_stream){.take = take, .context = context};
    bp_buffer_init(&stream->rest, line_max_bytes);
}

void bp_line_stream_release(bp_line_stream *stream) {
    if (stream->rest.status == BUGPACK_OK && stream->rest.size > 0) {
        (void)stream->take(stream->context, stream->rest.data, stream->rest.size);
    }
    bp_buffer_release(&stream->rest);
}

bugpack_status bp_line_stream_write(void *context, const void *bytes, size_t byte_count) {
    bp_line_stream *stream = context;
    bp_buffer *rest = &stream->rest;
    const char *at = bytes, *end = at + byte_count, *newline;
    while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        bugpack_status status = BUGPACK_OK;
        if (rest->size == 0 && rest->status == BUGPACK_OK) {
            status = stream->take(stream->context, at, (size_t)(newline - at));
        } else if (bp_buffer_append(rest, at, (size_t)(newline - at)) == BUGPACK_OK) {
            status = stream->take(stream->context, rest->data, rest->size);
        }
        if (status != BUGPACK_OK || rest->status == BUGPACK_ERR_NO_MEMORY) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        bp_buffer_clear(rest);
        at = newline + 1;
    }
    (void)bp_buffer_append(rest, at, (size_t)(end - at));
    return rest->status == BUGPACK_ERR_NO_MEMORY ? BUGPACK_ERR_NO_MEMORY : BUGPACK_OK;
}

/* The end of the string whose opening quote is at `at`. */
static const char *end_of_string(const char *at, const char *end) {
    for (at++; (at = memchr(at, '"', (size_t)(end - at))) != NULL; at++) {
        const char *before = at;
        while (before[-1] == '\\') {
            before--;
        }
        if ((at - before) % 2 == 0) {
            return at + 1;
        }
    }
    return end;
}

/* The end of a value: a string, a number or word, or all that is between two brackets. */
static const char *end_of_value(const char *at, const char *end) {
    size_t depth = 0;
    do {
        if (*at == '"') {
            at = end_of_string(at, end);
        } else {
            depth += *at == '{' || *at == '[';
            depth -= depth > 0 && (*at == '}' || *at == ']');
            at++;
        }
    } while (at < end && (depth > 0 || (*at != ',' && *at != '}')));
    return at;
}

/* Most keys differ in their first letter. */
static bool is_key(const char *key, size_t key_bytes, const char *wanted) {
    return key_bytes > 1 && key[1] == wanted[1] && strncmp(wanted, key, key_bytes) == 0 &&
           wanted[key_bytes] == '\0';
}

void bp_json_line_find(const char *line, size_t line_bytes, bp_json_field *fields, size_t count) {
    const char *at = line, *end = line + line_bytes;
    size_t found = 0;
    while (found < count && at < end && (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        const char *key = at;
        const char *key_end = end_of_string(at, end);
        for (at = key_end; at < end && (*at == ':' || *at == ' ' || *at == '\t'); at++) {}
        if (at == end) {
            return;
        }
        const char *value = at;
        at = end_of_value(at, end);
        for (size_t i = 0; i < count; i++) {
            if (is_key(key, (size_t)(key_end - key), fields[i].key)) {
                found += fields[i].value.byte_count == 0; /* not a key that is there twice */
                fields[i].value = (bp_json_token){BP_JSON_SCALAR, value, (size_t)(at - value)};
            }
        }
    }
}

bool bp_json_line_decode(const bp_json_token *token, bp_buffer *out) {
    size_t at;
    return token->byte_count >= 2 && bp_utf8_is_valid(token->text, token->byte_count) &&
           bp_json_check_string((const unsigned char *)token->text, token->byte_count, &at) ==
               NULL &&
           bp_json_token_text(token, out);
}

/* Decodes a string of a line; what is malformed is "". */
static void decode(const bp_json_token *token, char *out, size_t out_bytes) {
    bp_buffer text;
    size_t length = 0;
    bp_buffer_init(&text, line_max_bytes);
    if (bp_json_line_decode(token, &text)) {
        length = bp_utf8_cut(bp_buffer_text(&text), text.size, out_bytes - 1);
    }
    memcpy(out, bp_buffer_text(&text), length);
    out[length] = '\0';
    bp_buffer_release(&text);
}

/* Whether a string, with its quotes, is what it is shown as: printable ASCII without an escape. */
static bool is_simple(const bp_json_token *token) {
    if (token->byte_count < 2 || token->text[0] != '"') {
        return false;
    }
    for (size_t i = 1; i + 1 < token->byte_count; i++) {
        if (token->text[i] < 0x20 || token->text[i] == 0x7F || token->text[i] == '\\') {
            return false;
        }
    }
    return true;
}

void bp_json_line_text(const bp_json_token *token, char *out, size_t out_bytes) {
    if (is_simple(token) && token->byte_count - 2 < out_bytes) {
        memcpy(out, token->text + 1, token->byte_count - 2);
        out[token->byte_count - 2] = '\0';
    } else {
        decode(token, out, out_bytes);
    }
}

uint64_t bp_json_line_time(const bp_json_token *token) {
    char text[BP_CLOCK_ISO_BYTES];
    uint64_t wall_ns = 0;
    if (token->byte_count > 2 && token->byte_count - 2 < sizeof text) {
        memcpy(text, token->text + 1, token->byte_count - 2);
        text[token->byte_count - 2] = '\0';
        (void)bp_clock_parse(text, &wall_ns);
    }
    return wall_ns;
}
