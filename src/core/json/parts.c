#include "json/parts.h"

#include <string.h>

#include "base/status.h"

void bp_json_parts_init(bp_json_parts *parts, bp_json_token_taker *take, void *context) {
    *parts = (bp_json_parts){.take = take, .context = context};
    bp_buffer_init(&parts->window, 3 * BP_JSON_PART_TOKEN_BYTES_MAX);
    bp_json_scanner_init(&parts->scanner, "", 0);
    parts->scanner.key_max = BP_JSON_KEY_MAX;
}

void bp_json_parts_release(bp_json_parts *parts) {
    bp_json_scanner_release(&parts->scanner);
    bp_buffer_release(&parts->window);
}

/* Takes all tokens that are there as a whole, and leaves the rest at the front of the window. */
static bugpack_status scan(bp_json_parts *parts, bool is_part, bugpack_error *error) {
    bp_json_token token = {.kind = BP_JSON_KEY};
    bool is_done = false;
    bp_json_scanner_continue(&parts->scanner, parts->window.data, parts->window.size, is_part);
    while (!is_done) {
        bugpack_status status = bp_json_scanner_next(&parts->scanner, &token, error);
        if (status != BUGPACK_OK) {
            return status;
        }
        bool is_finish = token.kind == BP_JSON_FINISH;
        is_done = token.kind == BP_JSON_MORE || (is_finish && token.byte_count == 0);
        status = is_done || is_finish ? BUGPACK_OK : parts->take(parts->context, &token, error);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    size_t left = (size_t)(parts->scanner.end - parts->scanner.at);
    if (left > BP_JSON_PART_TOKEN_BYTES_MAX) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "a string has more than %zu bytes",
                       BP_JSON_PART_TOKEN_BYTES_MAX);
    }
    const unsigned char *rest = parts->scanner.at;
    bp_json_scanner_continue(&parts->scanner, "", 0, true);
    if (left > 0) {
        memmove(parts->window.data, rest, left);
    }
    parts->window.size = left;
    parts->needed = 2 * left; /* so that a long string is not scanned again for each piece */
    return BUGPACK_OK;
}

bugpack_status bp_json_parts_write(bp_json_parts *parts, const void *bytes, size_t byte_count,
                                   bugpack_error *error) {
    if (bp_buffer_append(&parts->window, bytes, byte_count) != BUGPACK_OK) {
        return bp_fail_memory(error, "read a JSON text");
    }
    return parts->window.size < parts->needed ? BUGPACK_OK : scan(parts, true, error);
}

bugpack_status bp_json_parts_end(bp_json_parts *parts, bugpack_error *error) {
    return scan(parts, false, error);
}

/* A bp_sink, which has no place for a sentence. */
static bugpack_status write_part(void *context, const void *bytes, size_t byte_count) {
    bp_json_parts *parts = context;
    return bp_json_parts_write(parts, bytes, byte_count, &parts->failure);
}

bugpack_status bp_json_parts_read(bp_json_parts *parts, const bp_giver *text,
                                  bugpack_error *error) {
    parts->failure = (bugpack_error)BUGPACK_ERROR_INIT;
    bugpack_status status = text->give(text->context, write_part, parts, error);
    if (parts->failure.status != BUGPACK_OK) {
        return bp_fail(error, parts->failure.status, "%s", parts->failure.message);
    }
    return status == BUGPACK_OK ? bp_json_parts_end(parts, error) : status;
}
