/*
 * A libFuzzer target for what entries of a report hold, as they are checked while they are read.
 * The first byte of an input chooses the entry, the second how large the pieces are. A further
 * reader of entries is one more row.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "entries/content.h"
#include "fuzz/require.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count);

static const size_t output_max_bytes = (size_t)16 << 20;

/* What a document that was accepted must be for the other reader too. */
static bool is_json(const void *text, size_t byte_count) {
    bp_buffer out;
    bp_buffer_init(&out, output_max_bytes);
    bugpack_status status = bp_json_reformat(text, byte_count, &out, NULL);
    bp_buffer_release(&out);
    return status == BUGPACK_OK;
}

static bool is_anything(const void *text, size_t byte_count) {
    (void)text;
    (void)byte_count;
    return true;
}

static const struct {
    const char *name;
    bool (*holds)(const void *text, size_t byte_count);
} rows[] = {{"session.json", is_json}, {"manifest.json", is_json},     {"metadata.json", is_json},
            {"threads.json", is_json}, {"host-threads.json", is_json}, {"logs.jsonl", is_anything}};
enum { row_count = sizeof rows / sizeof rows[0] };

/* In pieces of just their size, so that a read behind one is seen. */
static bugpack_status check(const char *name, const unsigned char *bytes, size_t byte_count,
                            size_t piece_bytes) {
    static bp_content content;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = BUGPACK_OK;
    content.steps_left = 1 << 20;
    bp_content_begin(&content, name);
    for (size_t at = 0; status == BUGPACK_OK && at < byte_count; at += piece_bytes) {
        size_t piece = byte_count - at < piece_bytes ? byte_count - at : piece_bytes;
        unsigned char *copy = malloc(piece);
        require(copy != NULL);
        memcpy(copy, bytes + at, piece);
        status = bp_content_write(&content, copy, piece, &error);
        free(copy);
    }
    status = status == BUGPACK_OK ? bp_content_end(&content, &error) : status;
    require(status == BUGPACK_OK || error.message[0] != '\0');
    return status;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count) {
    if (byte_count < 2) {
        return 0;
    }
    size_t row = data[0] % row_count;
    bugpack_status at_once = check(rows[row].name, data + 2, byte_count - 2, byte_count);
    bugpack_status in_pieces = check(rows[row].name, data + 2, byte_count - 2, data[1] % 64 + 1u);
    require(at_once == in_pieces);
    require(at_once != BUGPACK_OK || rows[row].holds(data + 2, byte_count - 2));
    return 0;
}
