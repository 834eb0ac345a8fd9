#include "inspect/check_json.h"

#include "base/status.h"

/* Keys that a processor's cache does not hold cost more to compare. */
enum { steps_per_token = 6, steps_per_far_key = 32, key_count_cached = 4096 };

static bugpack_status check_token(void *context, const bp_json_token *token, bugpack_error *error) {
    bp_json_stream *stream = context;
    const bp_json_scanner *scanner = &stream->parts.scanner;
    size_t key_count = scanner->keys.count;
    stream->steps += steps_per_token + (key_count > key_count_cached ? steps_per_far_key : 0);
    if (bp_json_stream_steps(stream) > stream->steps_max) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "it has more values than are checked");
    }
    if (stream->check == NULL) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_json_check_token(stream->check, token, error);
    if (status == BUGPACK_ERR_CORRUPT && scanner->is_lines && error != NULL) {
        bugpack_error detail = *error;
        return bp_fail(error, status, "line %zu: %s", bp_json_scanner_line(scanner),
                       detail.message);
    }
    return status;
}

bugpack_status bp_json_stream_begin(bp_json_stream *stream, bp_json_schema *schema, bool is_lines,
                                    uint64_t steps_max, bugpack_error *error) {
    *stream = (bp_json_stream){.steps_max = steps_max};
    bp_json_parts_init(&stream->parts, check_token, stream);
    stream->parts.scanner.is_lines = is_lines;
    if (schema != NULL) {
        stream->check = bp_json_check_new(schema);
        stream->parts.scanner.take_key = bp_json_check_key;
        stream->parts.scanner.key_context = stream->check;
        return stream->check != NULL ? BUGPACK_OK : bp_fail_memory(error, "check a JSON text");
    }
    return BUGPACK_OK;
}

void bp_json_stream_release(bp_json_stream *stream) {
    bp_json_check_free(stream->check);
    bp_json_parts_release(&stream->parts);
}

uint64_t bp_json_stream_steps(const bp_json_stream *stream) {
    return stream->steps + (stream->check != NULL ? bp_json_check_steps(stream->check) : 0);
}
