#include "inspect/check_json.h"

#include <string.h>

#include "base/status.h"

/* Keys that a processor's cache does not hold cost more to compare. */
enum { steps_per_token = 6, steps_per_far_key = 32, key_count_cached = 4096 };

bugpack_status bp_json_stream_begin(bp_json_stream *stream, bp_json_schema *schema, bool is_lines,
                                    uint64_t steps_max, bugpack_error *error) {
    *stream = (bp_json_stream){.steps_max = steps_max};
    bp_buffer_init(&stream->window, 3 * BP_CHECK_TOKEN_BYTES_MAX);
    bp_json_scanner_init(&stream->scanner, "", 0);
    stream->scanner.is_lines = is_lines;
    if (schema != NULL) {
        stream->check = bp_json_check_new(schema);
        stream->scanner.take_key = bp_json_check_key;
        stream->scanner.key_context = stream->check;
        return stream->check != NULL ? BUGPACK_OK : bp_fail_memory(error, "check a JSON text");
    }
    return BUGPACK_OK;
}

void bp_json_stream_release(bp_json_stream *stream) {
    bp_json_check_free(stream->check);
    bp_json_scanner_release(&stream->scanner);
    bp_buffer_release(&stream->window);
}

uint64_t bp_json_stream_steps(const bp_json_stream *stream) {
    return stream->steps + (stream->check != NULL ? bp_json_check_steps(stream->check) : 0);
}

static bugpack_status check_token(bp_json_stream *stream, const bp_json_token *token,
                                  bugpack_error *error) {
    size_t key_count = stream->scanner.keys.count;
    stream->steps += steps_per_token + (key_count > key_count_cached ? steps_per_far_key : 0);
    if (bp_json_stream_steps(stream) > stream->steps_max) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "it has more values than are checked");
    }
    if (key_count > BP_CHECK_KEY_MAX) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "an object has more than %zu keys",
                       BP_CHECK_KEY_MAX);
    }
    if (stream->check == NULL) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_json_check_token(stream->check, token, error);
    if (status == BUGPACK_ERR_CORRUPT && stream->scanner.is_lines && error != NULL) {
        bugpack_error detail = *error;
        return bp_fail(error, status, "line %zu: %s", bp_json_scanner_line(&stream->scanner),
                       detail.message);
    }
    return status;
}

/* Takes all tokens that are there as a whole, and leaves the rest at the front of the window. */
static bugpack_status scan(bp_json_stream *stream, bool is_part, bugpack_error *error) {
    bp_json_token token = {.kind = BP_JSON_KEY};
    bool is_done = false;
    bp_json_scanner_continue(&stream->scanner, stream->window.data, stream->window.size, is_part);
    while (!is_done) {
        bugpack_status status = bp_json_scanner_next(&stream->scanner, &token, error);
        if (status != BUGPACK_OK) {
            return status;
        }
        bool is_finish = token.kind == BP_JSON_FINISH;
        is_done = token.kind == BP_JSON_MORE || (is_finish && token.byte_count == 0);
        status = is_done || is_finish ? BUGPACK_OK : check_token(stream, &token, error);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    size_t left = (size_t)(stream->scanner.end - stream->scanner.at);
    if (left > BP_CHECK_TOKEN_BYTES_MAX) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "a string has more than %zu bytes",
                       BP_CHECK_TOKEN_BYTES_MAX);
    }
    const unsigned char *rest = stream->scanner.at;
    bp_json_scanner_continue(&stream->scanner, "", 0, true);
    if (left > 0) {
        memmove(stream->window.data, rest, left);
    }
    stream->window.size = left;
    stream->needed = 2 * left; /* so that a long string is not scanned again for each piece */
    return BUGPACK_OK;
}

bugpack_status bp_json_stream_write(bp_json_stream *stream, const void *bytes, size_t byte_count,
                                    bugpack_error *error) {
    if (bp_buffer_append(&stream->window, bytes, byte_count) != BUGPACK_OK) {
        return bp_fail_memory(error, "check a JSON text");
    }
    return stream->window.size < stream->needed ? BUGPACK_OK : scan(stream, true, error);
}

bugpack_status bp_json_stream_end(bp_json_stream *stream, bugpack_error *error) {
    return scan(stream, false, error);
}
