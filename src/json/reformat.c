#include "base/status.h"
#include "json/append.h"
#include "json/scanner.h"

/* Writes one token, and before it what separates it from the previous one. */
static void append_token(bp_buffer *out, const bp_json_token *token, bp_json_token_kind previous,
                         size_t depth) {
    bool is_first = previous == BP_JSON_BEGIN;
    if (token->kind == BP_JSON_END) {
        if (!is_first) {
            bp_json_break_line(out, depth);
        }
    } else if (previous != BP_JSON_KEY) {
        if (!is_first) {
            (void)bp_buffer_append_char(out, ',');
        }
        bp_json_break_line(out, token->kind == BP_JSON_BEGIN ? depth - 1 : depth);
    }
    (void)bp_buffer_append(out, token->text, token->byte_count);
    if (token->kind == BP_JSON_KEY) {
        (void)bp_buffer_append_text(out, ": ");
    }
}

static bugpack_status reformat(bp_json_scanner *scanner, bp_buffer *out, bugpack_error *error) {
    bp_json_token token;
    bugpack_status status = bp_json_scanner_next(scanner, &token, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    /* The root is at the start of the text, with nothing before it. */
    (void)bp_buffer_append(out, token.text, token.byte_count);
    while (out->status == BUGPACK_OK) {
        bp_json_token_kind previous = token.kind;
        status = bp_json_scanner_next(scanner, &token, error);
        if (status != BUGPACK_OK) {
            return status;
        }
        if (token.kind == BP_JSON_FINISH) {
            break;
        }
        append_token(out, &token, previous, scanner->depth);
    }
    return bp_buffer_append_char(out, '\n') == BUGPACK_OK
               ? BUGPACK_OK
               : bp_fail(error, out->status, "cannot write a JSON text: %s",
                         out->status == BUGPACK_ERR_LIMIT ? "it is too large" : "out of memory");
}

bugpack_status bp_json_reformat(const void *text, size_t byte_count, bp_buffer *out,
                                bugpack_error *error) {
    size_t size_before = out->size;
    bp_json_scanner scanner;
    bp_json_scanner_init(&scanner, text, byte_count);
    bugpack_status status = reformat(&scanner, out, error);
    bp_json_scanner_release(&scanner);
    if (status != BUGPACK_OK) {
        bp_json_cut(out, size_before);
    }
    return status;
}
