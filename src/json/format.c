#include "json/format.h"

#include "base/status.h"
#include "json/scanner.h"
#include "json/string.h"

static void begin_line(bp_buffer *out, bp_json_layout layout, size_t depth) {
    static const char spaces[2 * BP_JSON_DEPTH_MAX + 1] =
        "                                                                "
        "                                                                ";
    if (layout == BP_JSON_INDENTED) {
        (void)bp_buffer_append_char(out, '\n');
        (void)bp_buffer_append(out, spaces, 2 * depth);
    }
}

/* Writes one piece, and before it what separates it from the one before. */
static void append_token(bp_buffer *out, bp_json_layout layout, const bp_json_token *token,
                         bp_json_token_kind previous, size_t depth) {
    bool follows_key = previous == BP_JSON_KEY;
    bool is_first = previous == BP_JSON_BEGIN;
    if (token->kind == BP_JSON_END) {
        if (!is_first) {
            begin_line(out, layout, depth);
        }
    } else if (!follows_key) {
        if (!is_first) {
            (void)bp_buffer_append_char(out, ',');
        }
        begin_line(out, layout, token->kind == BP_JSON_BEGIN ? depth - 1 : depth);
    }
    (void)bp_buffer_append(out, token->text, token->byte_count);
    if (token->kind == BP_JSON_KEY) {
        (void)bp_buffer_append_text(out, layout == BP_JSON_INDENTED ? ": " : ":");
    }
}

static bugpack_status format_all(bp_json_scanner *scanner, bp_json_layout layout, bp_buffer *out,
                                 bugpack_error *error) {
    bp_json_token token = {0};
    bugpack_status status = bp_json_scanner_next(scanner, &token, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    /* The root stands at the start of the text, with nothing before it. */
    (void)bp_buffer_append(out, token.text, token.byte_count);
    bp_json_token_kind previous = token.kind;
    while (out->status == BUGPACK_OK) {
        status = bp_json_scanner_next(scanner, &token, error);
        if (status != BUGPACK_OK) {
            return status;
        }
        if (token.kind == BP_JSON_FINISH) {
            break;
        }
        append_token(out, layout, &token, previous, scanner->depth);
        previous = token.kind;
    }
    if (bp_buffer_append_char(out, '\n') != BUGPACK_OK) {
        return bp_fail(error, out->status, "cannot write a JSON text: it needs more room");
    }
    return BUGPACK_OK;
}

bugpack_status bp_json_format(const void *text, size_t byte_count, bp_json_layout layout,
                              bp_buffer *out, bugpack_error *error) {
    size_t size_before = out->size;
    bp_json_scanner scanner;
    bugpack_status status = bp_json_scanner_init(&scanner, text, byte_count, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = format_all(&scanner, layout, out, error);
    bp_json_scanner_release(&scanner);
    if (status != BUGPACK_OK) {
        bp_json_cut(out, size_before);
    }
    return status;
}

bugpack_status bp_json_reformat(const void *text, size_t byte_count, bp_buffer *out,
                                bugpack_error *error) {
    return bp_json_format(text, byte_count, BP_JSON_INDENTED, out, error);
}
