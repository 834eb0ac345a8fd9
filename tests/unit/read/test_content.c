/*
 * What entries hold, checked in pieces as it is read: JSON.
 */
#include "base/buffer.h"
#include "entries/content.h"
#include "unit/unit.h"

static bugpack_error error;
static bp_content content;

/* Checks an entry that comes in pieces of this size. */
static bugpack_status check(const char *name, const void *bytes, size_t byte_count,
                            size_t piece_bytes) {
    bugpack_status status = BUGPACK_OK;
    content.steps_left = (uint64_t)16 << 20;
    error = (bugpack_error)BUGPACK_ERROR_INIT;
    bp_content_begin(&content, name);
    for (size_t at = 0; status == BUGPACK_OK && at < byte_count;) {
        size_t piece = byte_count - at < piece_bytes ? byte_count - at : piece_bytes;
        char *copy = malloc(piece); /* of just this size, so that a read behind it is seen */
        memcpy(copy, (const char *)bytes + at, piece);
        status = bp_content_write(&content, copy, piece, &error);
        free(copy);
        at += piece;
    }
    status = status == BUGPACK_OK ? bp_content_end(&content, &error) : status;
    bp_content_release(&content);
    return status;
}

Test(content, reads_json_in_pieces_of_any_size) {
    BUFFER(text, (size_t)1 << 20);
    for (int i = 0; i < 20; i++) {
        (void)bp_buffer_printf(
            &text,
            "{\"seq\": %d, \"time\": \"2026-11-21T08:36:51.123456Z\", \"monotonic_ns\": %d, "
            "\"level\": \"info\", \"tid\": 1, \"thread\": \"\\u00e9 \xc3\xa9\", "
            "\"message\": \"\\ud83d\\ude00 %.*s\"}\n",
            i + 1, i * 100, i * 5,
            "a message that is somewhat longer than most, and at times cut as "
            "it comes in here too");
    }
    for (size_t piece = 1; piece < 400; piece++) {
        cr_expect(eq(int, check("logs.jsonl", text.data, text.size, piece), BUGPACK_OK), "%zu: %s",
                  piece, error.message);
        cr_expect(
            eq(int, check("logs.jsonl", text.data, text.size - 1, piece), BUGPACK_ERR_CORRUPT));
        cr_expect(strstr(error.message, "line 20, column ") != NULL, "%s", error.message);
    }
}

Test(content, bounds_what_json_may_cost) {
    BUFFER(text, (size_t)64 << 20);
    (void)bp_buffer_append_char(&text, '"');
    while (text.size < 2 * BP_JSON_PART_TOKEN_BYTES_MAX + 100000) {
        (void)bp_buffer_append_text(&text, "0123456789 and so on");
    }
    cr_expect(eq(int, check("session.json", text.data, text.size, 65536), BUGPACK_ERR_CORRUPT));
    cr_expect(strstr(error.message, "a string has more than") != NULL, "%s", error.message);
    text.size = BP_JSON_PART_TOKEN_BYTES_MAX - 100000;
    (void)bp_buffer_append_char(&text, '"');
    cr_expect(eq(int, check("session.json", text.data, text.size, 65536), BUGPACK_OK), "%s",
              error.message);
    bp_buffer_clear(&text);
    for (unsigned i = 0; i <= BP_JSON_KEY_MAX + 1; i++) {
        (void)bp_buffer_printf(&text, "%c\"%x\":0", i == 0 ? '{' : ',', i);
    }
    cr_expect(eq(int, check("session.json", text.data, text.size, 65536), BUGPACK_ERR_CORRUPT));
    cr_expect(strstr(error.message, "an object has more than") != NULL, "%s", error.message);
    bp_buffer_clear(&text);
    (void)bp_buffer_append_char(&text, '[');
    for (unsigned i = 0; i < 3u << 20; i++) {
        (void)bp_buffer_append(&text, "0,", 2);
    }
    cr_expect(eq(int, check("session.json", text.data, text.size, 65536), BUGPACK_ERR_LIMIT));
    cr_expect(eq(u64, content.steps_left, 0));
}
