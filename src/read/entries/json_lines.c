#include "entries/json_lines.h"

#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "json/scanner.h"

static const size_t line_max_bytes = (size_t)1 << 20;

/* Divides a stream into lines. */
typedef struct line_stream {
    bp_json_line_taker *take;
    void *context;
    bp_buffer rest; /* the beginning of a line */
} line_stream;

/* A bp_sink. */
static bugpack_status write_lines(void *context, const void *bytes, size_t byte_count) {
    line_stream *stream = context;
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

bugpack_status bp_report_lines(const bp_report_file *report, const char *entry, uint64_t max_bytes,
                               bp_json_line_taker *take, void *context, bugpack_error *error) {
    line_stream lines = {.take = take, .context = context};
    bp_buffer_init(&lines.rest, line_max_bytes);
    bugpack_status status =
        bp_report_file_stream(report, entry, max_bytes, write_lines, &lines, error);
    if (lines.rest.status == BUGPACK_OK && lines.rest.size > 0) {
        (void)take(context, lines.rest.data, lines.rest.size); /* a last line without a newline */
    }
    bp_buffer_release(&lines.rest);
    return status;
}

bool bp_json_line_decode(const bp_json_token *token, bp_buffer *out) {
    bp_json_scanner scanner; /* what is found in a line was not checked */
    bp_json_token checked;
    bp_json_scanner_init(&scanner, token->text, token->byte_count);
    return bp_json_scanner_next(&scanner, &checked, NULL) == BUGPACK_OK &&
           checked.byte_count == token->byte_count && bp_json_token_text(token, out) &&
           out->status == BUGPACK_OK;
}

void bp_json_line_text(const bp_json_token *token, char *out, size_t out_bytes) {
    size_t length = token->byte_count > 2 && token->text[0] == '"' ? token->byte_count - 2 : 0;
    const char *inside = length > 0 ? token->text + 1 : "";
    bool is_plain = length < out_bytes &&
                    bp_json_plain_length((const unsigned char *)inside, length) == length &&
                    (length == 0 || inside[length] == '"');
    bp_buffer text;
    bp_buffer_init(&text, line_max_bytes);
    if (!is_plain) {
        length = bp_json_line_decode(token, &text) ? text.size : 0;
        inside = bp_buffer_text(&text);
    }
    bp_utf8_copy_ends(out, out_bytes, inside, length);
    bp_buffer_release(&text);
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
