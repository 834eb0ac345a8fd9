/*
 * What entries hold, checked in pieces as it is read: JSON, pcap, PNG, profiles.
 */
#include <bugpack/traffic.h>

#include "base/buffer.h"
#include "entries/content.h"
#include "image/png.h"
#include "json/parts.h"
#include "recorder/pcap.h"
#include "support/made_image.h"
#include "unit/unit.h"

static const size_t whole = SIZE_MAX;

static bugpack_error error;
static bp_content_budget budget;

static uint64_t picture_max_bytes = 1 << 20;

/* Checks an entry that comes in pieces of this size, after another one that was given up. */
static bugpack_status check(const char *name, const void *bytes, size_t byte_count,
                            size_t piece_bytes) {
    budget =
        (bp_content_budget){.picture_bytes = picture_max_bytes, .json_steps = (uint64_t)16 << 20};
    bp_content *content = bp_content_new(&budget);
    cr_assert(ne(ptr, content, NULL));
    error = (bugpack_error)BUGPACK_ERROR_INIT;
    cr_expect(eq(int, bp_content_begin(content, "profile.folded", NULL), BUGPACK_OK));
    bugpack_status status = bp_content_begin(content, name, &error);
    for (size_t at = 0; status == BUGPACK_OK && at < byte_count;) {
        size_t piece = byte_count - at < piece_bytes ? byte_count - at : piece_bytes;
        char *copy = malloc(piece); /* of just this size, so that a read behind it is seen */
        memcpy(copy, (const char *)bytes + at, piece);
        status = bp_content_write(content, copy, piece, &error);
        free(copy);
        at += piece;
    }
    status = status == BUGPACK_OK ? bp_content_end(content, &error) : status;
    bp_content_free(content);
    return status;
}

static bugpack_status append(void *buffer, const void *bytes, size_t byte_count) {
    return bp_buffer_append(buffer, bytes, byte_count);
}

Test(content, reads_json_in_pieces_of_any_size) {
    CLEANUP(bp_buffer_release) bp_buffer text;
    bp_buffer_init(&text, (size_t)1 << 20);
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
    CLEANUP(bp_buffer_release) bp_buffer text;
    bp_buffer_init(&text, (size_t)64 << 20);
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
    cr_expect(eq(u64, budget.json_steps, 0));
}

static const void *fetch(void *source, uint64_t offset, size_t byte_count) {
    return (const char *)source + offset;
}

Test(content, refuses_a_pcap_that_is_cut_or_is_another) {
    char bytes[] = "what went over the wire";
    bp_pcap_stream stream = {.host_port = 1, .peer_port = 2};
    const bp_pcap_message message = {.direction = BUGPACK_SENT,
                                     .wall_ns = 1234567890123456789,
                                     .byte_count = sizeof bytes,
                                     .original_bytes = sizeof bytes,
                                     .fetch = fetch,
                                     .source = bytes};
    CLEANUP(bp_buffer_release) bp_buffer file;
    bp_buffer_init(&file, 1 << 20);
    (void)bp_pcap_write_header(append, &file);
    (void)bp_pcap_write_open(&stream, message.wall_ns, append, &file);
    (void)bp_pcap_write_message(&stream, &message, append, &file);
    size_t accepted = 0;
    for (size_t piece = 1; piece < 60; piece++) {
        cr_expect(eq(int, check("traffic.pcap", file.data, file.size, piece), BUGPACK_OK));
    }
    for (size_t size = 0; size < file.size; size++) {
        accepted += check("traffic.pcap", file.data, size, whole) == BUGPACK_OK;
    }
    cr_expect(eq(sz, accepted, 4), "only where a record ends: a header and three frames");
    static const struct {
        size_t at;
        const char *why;
    } cases[] = {{0, "record 0: it is no pcap"},        {4, "record 0: it is no pcap"},
                 {20, "record 0: it has another snap"}, {24 + 7, "record 0: a time has over"},
                 {24 + 11, "record 0: a record has"},   {24 + 8, "record 0: a record has more"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        file.data[cases[i].at] ^= (char)0xC0;
        cr_expect(eq(int, check("traffic.pcap", file.data, file.size, whole), BUGPACK_ERR_CORRUPT));
        cr_expect(strncmp(error.message, cases[i].why, strlen(cases[i].why)) == 0, "%zu: %s", i,
                  error.message);
        file.data[cases[i].at] ^= (char)0xC0;
    }
}

Test(content, refuses_every_damage_to_a_png) {
    bp_pixels pixels = made_image(9, 7, 1);
    CLEANUP(bp_buffer_release) bp_buffer file;
    bp_buffer_init(&file, 1 << 20);
    cr_assert(eq(int, bp_png_encode(&pixels, 0, 0, 9, 7, append, &file, NULL), BUGPACK_OK));
    for (size_t piece = 1; piece < 100; piece++) {
        cr_expect(eq(int, check("screenshot.png", file.data, file.size, piece), BUGPACK_OK), "%s",
                  error.message);
    }
    picture_max_bytes = 7 * (1 + 9 * 4);
    cr_expect(eq(int, check("screenshot.png", file.data, file.size, whole), BUGPACK_OK));
    cr_expect(zero(u64, budget.picture_bytes));
    picture_max_bytes--;
    cr_expect(eq(int, check("screenshot.png", file.data, file.size, whole), BUGPACK_ERR_LIMIT));
    picture_max_bytes = 1 << 20;
    for (size_t size = 0; size < file.size; size++) {
        cr_expect(eq(int, check("screenshot.png", file.data, size, 13), BUGPACK_ERR_CORRUPT));
    }
    for (size_t at = 0; at < file.size; at++) {
        file.data[at] ^= 0x10;
        cr_expect(ne(int, check("screenshot.png", file.data, file.size, whole), BUGPACK_OK),
                  "byte %zu", at);
        file.data[at] ^= 0x10;
    }
    (void)bp_buffer_append_char(&file, 'x');
    for (size_t piece = 1; piece < file.size + 2; piece++) {
        cr_expect(
            eq(int, check("screenshot.png", file.data, file.size, piece), BUGPACK_ERR_CORRUPT));
        cr_expect(eq(str, error.message, "it is no sound PNG: something follows its end"));
    }
    free((void *)pixels.bytes);
}

Test(content, reads_a_profile_in_pieces_of_any_size) {
    static const char text[] = "a thread;main;operator new(unsigned long) 182\nidle 1\nw;f 20\n";
    static const char *const wrongs[][2] = {{"a;main 1\nb;main\n", "line 2: there is no count"},
                                            {"a;main 1\n\n", "line 2: there is no count"},
                                            {"a;main 1\nb;main 18", "line 2: its end is missing"},
                                            {";main 1\n", "line 1: a name is empty"}};
    for (size_t piece = 1; piece < sizeof text; piece++) {
        cr_expect(eq(int, check("profile.folded", text, sizeof text - 1, piece), BUGPACK_OK),
                  "%zu: %s", piece, error.message);
        cr_expect(eq(int, check("processes/9-a/profile.folded", text, sizeof text - 2, piece),
                     BUGPACK_ERR_CORRUPT));
        for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
            size_t length = strlen(wrongs[i][0]);
            cr_expect(
                eq(int, check("profile.folded", wrongs[i][0], length, piece), BUGPACK_ERR_CORRUPT));
            cr_expect(eq(str, error.message, wrongs[i][1]));
        }
    }
    cr_expect(eq(int, check("profile.folded", "", 0, 1), BUGPACK_OK));
    cr_expect(eq(int, check("commands/profile.folded", "x", 1, 1), BUGPACK_OK));
}

Test(content, bounds_a_line_of_a_profile) {
    CLEANUP(bp_buffer_release) bp_buffer text;
    bp_buffer_init(&text, (size_t)4 << 20);
    while (text.size < (1 << 20) - 2) {
        (void)bp_buffer_append_char(&text, 'x');
    }
    (void)bp_buffer_append_text(&text, " 1\n");
    for (size_t piece = 1000; piece < 3 << 20; piece *= 10) {
        text.data[0] = 'x';
        cr_expect(eq(int, check("profile.folded", text.data, text.size, piece), BUGPACK_OK), "%s",
                  error.message);
    }
    text.data[text.size - 1] = '1';
    (void)bp_buffer_append_text(&text, "\na;b 1\n");
    for (size_t piece = 1000; piece < 3 << 20; piece *= 10) {
        cr_expect(
            eq(int, check("profile.folded", text.data, text.size, piece), BUGPACK_ERR_CORRUPT));
        cr_expect(eq(str, error.message, "line 1: it is too long"));
    }
}
