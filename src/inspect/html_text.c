#include "inspect/html_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <nettle/base64.h>

#include "base/utf8.h"

static const size_t piece_bytes = 64 * 1024;

void bp_html_init(bp_html *html, bp_sink *sink, void *context) {
    *html = (bp_html){.sink = sink, .context = context};
    bp_buffer_init(&html->out, SIZE_MAX / 4);
}

static void pass_on(bp_html *html, size_t least_bytes) {
    html->status = html->status != BUGPACK_OK ? html->status : html->out.status;
    if (html->status == BUGPACK_OK && html->out.size >= least_bytes && html->out.size > 0) {
        html->status = html->sink(html->context, html->out.data, html->out.size);
        bp_buffer_clear(&html->out);
    }
}

bugpack_status bp_html_finish(bp_html *html) {
    pass_on(html, 0);
    bp_buffer_release(&html->out);
    return html->status;
}

static void add_character(bp_buffer *out, const unsigned char *at, size_t length) {
    uint32_t code = at[0];
    bool is_control =
        length > 0 && at[0] != '\n' && at[0] != '\t' && bp_utf8_control(at, length, &code) > 0;
    if (at[0] == '&' || at[0] == '<' || at[0] == '>' || at[0] == '"' || at[0] == '\'') {
        (void)bp_buffer_printf(out, "&#%u;", at[0]);
    } else if (length == 0 || is_control) {
        (void)bp_buffer_printf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)code);
    } else {
        (void)bp_buffer_append(out, at, length);
    }
}

bugpack_status bp_html_text(void *context, const void *bytes, size_t byte_count) {
    bp_html *html = context;
    const unsigned char *at = bytes, *end = at + byte_count;
    while (at < end && html->status == BUGPACK_OK) {
        size_t length = bp_utf8_sequence_length(at, (size_t)(end - at));
        add_character(&html->out, at, length);
        at += length > 0 ? length : 1;
        pass_on(html, piece_bytes);
    }
    return html->status;
}

void bp_html_print(bp_html *html, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    for (const char *at = format; *at != '\0';) {
        size_t plain = strcspn(at, "%");
        (void)bp_buffer_append(&html->out, at, plain);
        at += plain;
        size_t length = *at == '%' ? strcspn(at + 1, "%sduf") + 2 : 0;
        if (length == 0) {
            break;
        }
        switch (at[length - 1]) {
        case 's': {
            const char *text = va_arg(arguments, const char *);
            (void)bp_html_text(html, text, strlen(text));
            break;
        }
        case '%':
            (void)bp_buffer_append_char(&html->out, '%');
            break;
        case 'f':
            (void)bp_buffer_printf(&html->out, "%.*f", at[2] - '0', va_arg(arguments, double));
            break;
        case 'u': /* the only one is PRIu64 */
            (void)bp_buffer_printf(&html->out, "%llu",
                                   (unsigned long long)va_arg(arguments, uint64_t));
            break;
        default:
            (void)bp_buffer_printf(&html->out, "%d", va_arg(arguments, int));
        }
        at += length;
    }
    va_end(arguments);
    pass_on(html, piece_bytes);
}

void bp_html_base64(bp_html *html, const void *bytes, size_t byte_count) {
    char *text = bp_buffer_reserve(&html->out, BASE64_ENCODE_RAW_LENGTH(byte_count));
    if (text != NULL) {
        base64_encode_raw(text, byte_count, bytes);
        bp_buffer_commit(&html->out, BASE64_ENCODE_RAW_LENGTH(byte_count));
    }
    pass_on(html, piece_bytes);
}
