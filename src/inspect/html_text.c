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

/* U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069, U+FEFF: not seen, but obeyed. */
static bool is_unseen(const unsigned char bytes[3]) {
    unsigned code = (bytes[0] & 15u) << 12 | (bytes[1] & 63u) << 6 | (bytes[2] & 63u);
    return code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

static void add_character(bp_buffer *out, const unsigned char *at, size_t length) {
    bool is_control = at[0] < 0x20 ? at[0] != '\n' && at[0] != '\t'
                                   : at[0] == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0);
    if (at[0] == '&' || at[0] == '<' || at[0] == '>' || at[0] == '"' || at[0] == '\'') {
        (void)bp_buffer_printf(out, "&#%u;", at[0]);
    } else if (length == 0 || is_control) {
        (void)bp_buffer_printf(out, "\\x%02x", at[length == 2]);
    } else if (length == 3 && is_unseen(at)) {
        (void)bp_buffer_printf(out, "\\u%04x",
                               (at[0] & 15u) << 12 | (at[1] & 63u) << 6 | (at[2] & 63u));
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
