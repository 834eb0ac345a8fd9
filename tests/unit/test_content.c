/*
 * What entries hold, checked in pieces as it is read: JSON by its schema, pcap, PNG.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/traffic.h>

#include "base/buffer.h"
#include "image/png.h"
#include "inspect/check_json.h"
#include "inspect/content.h"
#include "inspect/schema_files.h"
#include "recorder/pcap.h"
#include "support/made_image.h"

static const size_t whole = SIZE_MAX;

static bugpack_error error;
static bp_content_budget budget;

/* Checks an entry that comes in pieces of this size. */
static bugpack_status check(const char *name, const void *bytes, size_t byte_count,
                            size_t piece_bytes) {
    budget = (bp_content_budget){.picture_bytes = 1 << 20, .json_steps = (uint64_t)16 << 20};
    bp_content *content = bp_content_new(true, &budget);
    cr_assert(ne(ptr, content, NULL));
    error = (bugpack_error)BUGPACK_ERROR_INIT;
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

Test(content, every_published_schema_can_be_read) {
    size_t count = 0;
    for (; bp_schema_files[count].title != NULL; count++) {
        bp_json_schema *schema = NULL;
        bugpack_status status = bp_json_schema_read(
            bp_schema_files[count].text, bp_schema_files[count].byte_count, &schema, &error);
        cr_expect(eq(int, status, BUGPACK_OK), "%s: %s", bp_schema_files[count].title,
                  error.message);
        bp_json_schema_free(schema);
    }
    cr_expect(gt(sz, count, 10));
}

/* A schema, a document, and what is wrong with it; NULL for nothing. */
static const struct {
    const char *schema, *text, *why;
} keywords[] = {
    {"{\"type\": \"integer\"}", "1", NULL},
    {"{\"type\": \"integer\"}", "1.0", NULL},
    {"{\"type\": \"integer\"}", "1e3", NULL},
    {"{\"type\": \"integer\"}", "1.5", "it is of another type"},
    {"{\"type\": [\"string\", \"null\"]}", "null", NULL},
    {"{\"type\": [\"string\", \"null\"]}", "[]", "it is of another type"},
    {"{\"minimum\": 0, \"maximum\": 18446744073709551615}", "18446744073709551615", NULL},
    {"{\"minimum\": 0}", "-1", "it is too small"},
    {"{\"exclusiveMinimum\": 0}", "0", "it is too small"},
    {"{\"exclusiveMinimum\": 0}", "0.001", NULL},
    {"{\"maximum\": 3}", "3.01", "it is too large"},
    {"{\"minLength\": 1, \"maxLength\": 2}", "\"\"", "it is too short"},
    {"{\"minLength\": 1, \"maxLength\": 2}", "\"\\u00e9\xc3\xa9\"", NULL},
    {"{\"minLength\": 1, \"maxLength\": 2}", "\"abc\"", "it is too long"},
    {"{\"pattern\": \"^[0-9a-f]{2}$\"}", "\"0f\"", NULL},
    {"{\"pattern\": \"^[0-9a-f]{2}$\"}", "\"0f\\n\"", "it does not look as it should"},
    {"{\"format\": \"date-time\"}", "\"2026-11-21T08:36:51.1Z\"", NULL},
    {"{\"format\": \"date-time\"}", "\"2026-13-21T08:36:51Z\"", "it is no time in UTC"},
    {"{\"format\": \"date-time\"}", "\"2026-11-21T08:36:51.Z\"", "it is no time in UTC"},
    {"{\"format\": \"date-time\"}", "\"2026-11-21\"", "it is no time in UTC"},
    {"{\"const\": 2}", "2.0", NULL},
    {"{\"const\": true}", "1", "it has another value"},
    {"{\"enum\": [\"a\", \"b\"]}", "\"\\u0062\"", NULL},
    {"{\"enum\": [\"a\", \"b\"]}", "\"c\"", "it has another value"},
    {"{\"required\": [\"a\", \"b\"]}", "{\"a\": 1}", "it lacks \"b\""},
    {"{\"required\": [\"a\"]}", "{\"\\u0061\": 1}", NULL},
    {"{\"required\": [\"a\"]}", "[]", NULL},
    {"{\"properties\": {\"a\": {\"items\": {\"type\": \"null\"}}}}", "{\"a\": [null, {}]}",
     "a[1] is of another type"},
    {"{\"properties\": {\"a\": false}}", "{\"a\": 1}", "a must not be there"},
    {"{\"properties\": {\"a\": true}}", "{\"a\": {\"a\": 1}}", NULL},
    {"{\"additionalProperties\": {\"type\": \"string\"}}", "{\"x\": 1}", "* is of another type"},
    {"{\"propertyNames\": {\"pattern\": \"^a\"}}", "{\"b\": 1}", "it has a key that is not"},
    {"{\"minProperties\": 1}", "{}", "it has too few parts"},
    {"{\"maxItems\": 1}", "[1, [2]]", "it has too many parts"},
    {"{\"dependentRequired\": {\"a\": [\"b\"]}}", "{\"b\": 1}", NULL},
    {"{\"dependentRequired\": {\"a\": [\"b\"]}}", "{\"a\": 1}", "it lacks \"b\""},
    {"{\"uniqueItems\": true, \"items\": {\"enum\": [1, 2]}}", "[1, 2]", NULL},
    {"{\"uniqueItems\": true, \"items\": {\"enum\": [1, 2]}}", "[2, 2]", "[1] is there twice"},
    {"{\"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}]}", "{\"b\": 1}", NULL},
    {"{\"oneOf\": [{\"required\": [\"a\"]}, {\"required\": [\"b\"]}]}", "{\"b\": 1, \"a\": 1}",
     "it has none of its forms, or several"},
    {"{\"oneOf\": [{\"const\": 1}, {\"const\": 2}]}", "3", "it has none of its forms"},
    {"{\"not\": {\"required\": [\"a\"]}}", "{\"b\": 1}", NULL},
    {"{\"not\": {\"required\": [\"a\"]}}", "{\"a\": {}}", "it is what it must not be"},
    {"{\"not\": {\"type\": \"null\"}}", "null", "it is what it must not be"},
    {"{\"anyOf\": [{\"required\": [\"a\"]}, {\"minProperties\": 2}]}", "{\"b\": 1, \"c\": 1}",
     NULL},
    {"{\"anyOf\": [{\"required\": [\"a\"]}, {\"minProperties\": 2}]}", "{\"b\": 1}",
     "it has none of its forms"},
    {"{\"anyOf\": [{\"const\": 1}, {\"const\": 2}]}", "2", NULL},
    {"{\"anyOf\": [{\"const\": 1}, {\"const\": 2}]}", "3", "it has none of its forms"},
    {"{\"allOf\": [{\"type\": \"object\"}, {\"required\": [\"a\"]}]}", "{}", "it lacks \"a\""},
    {"{\"if\": {\"required\": [\"a\"]}, \"then\": {\"required\": [\"b\"]}}", "{\"a\": {}}",
     "it lacks \"b\""},
    {"{\"if\": {\"properties\": {\"a\": {\"const\": 1}}}, \"then\": {\"required\": [\"b\"]}, "
     "\"else\": {\"properties\": {\"b\": false}}}",
     "{\"a\": 2}", NULL},
    {"{\"if\": {\"properties\": {\"a\": {\"const\": 1}}}, \"then\": {\"required\": [\"b\"]}, "
     "\"else\": {\"properties\": {\"b\": false}}}",
     "{\"b\": 2, \"a\": 2}", "it must not be there"},
    {"{\"if\": {\"minimum\": 3}, \"then\": {\"maximum\": 4}}", "5", "it is too large"},
    {"{\"properties\": {\"a\": {\"items\": {\"$ref\": \"#\"}}, \"b\": {\"type\": \"null\"}}}",
     "{\"a\": [{}, {\"a\": [{\"b\": 1}]}]}", "a[1].a[0].b is of another type"},
    {"{\"$defs\": {\"x\": {\"type\": \"null\"}}, \"items\": {\"$ref\": \"#/$defs/x\"}}", "[1]",
     "[0] is of another type"},
    {"{\"properties\": {\"a\": {\"required\": [\"b\"]}}, "
     "\"allOf\": [{\"properties\": {\"a\": {\"required\": [\"c\"]}}}]}",
     "{\"a\": {\"b\": 1}}", "a lacks \"c\""},
    {"{\"$ref\": \"#\"}", "{}", "it is nested too deep"},
    {"{\"properties\": {\"a\": true}}", "{\"a\": 1, \"b\": {\"a\": 1}, \"\\u0061\": 2}",
     "line 1, column 25: this key was there before"},
    {"{\"properties\": {\"a\": true}}", "{\"x\": 1, \"a\": 2, \"\\u0078\": 2}",
     "line 1, column 18: this key was there before"},
};

Test(content, knows_the_keywords_of_the_schemas) {
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        bp_json_schema *schema = NULL;
        bp_json_stream stream;
        error = (bugpack_error)BUGPACK_ERROR_INIT;
        bugpack_status status =
            bp_json_schema_read(keywords[i].schema, strlen(keywords[i].schema), &schema, &error);
        cr_assert(eq(int, status, BUGPACK_OK), "%s: %s", keywords[i].schema, error.message);
        (void)bp_json_stream_begin(&stream, schema, false, 1 << 20, &error);
        status =
            bp_json_parts_write(&stream.parts, keywords[i].text, strlen(keywords[i].text), &error);
        status = status == BUGPACK_OK ? bp_json_parts_end(&stream.parts, &error) : status;
        if (keywords[i].why == NULL) {
            cr_expect(eq(int, status, BUGPACK_OK), "%s: %s", keywords[i].text, error.message);
        } else {
            cr_expect(eq(int, status, BUGPACK_ERR_CORRUPT), "%s", keywords[i].text);
            cr_expect(strncmp(error.message, keywords[i].why, strlen(keywords[i].why)) == 0,
                      "%s: <%s>", keywords[i].text, error.message);
        }
        bp_json_stream_release(&stream);
        bp_json_schema_free(schema);
    }
}

Test(content, refuses_a_schema_that_it_would_not_apply_whole) {
    static const char *const texts[] = {"{\"contains\": {}}",      "{\"type\": \"text\"}",
                                        "{\"format\": \"uri\"}",   "{\"pattern\": \"(\"}",
                                        "{\"uniqueItems\": true}", "{\"items\": 1}",
                                        "{\"$ref\": \"#/x\"}",     "{\"properties\": {\"a\": 3}}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bp_json_schema *schema = NULL;
        cr_expect(eq(int, bp_json_schema_read(texts[i], strlen(texts[i]), &schema, NULL),
                     BUGPACK_ERR_CORRUPT),
                  "%s", texts[i]);
        cr_expect(eq(ptr, schema, NULL));
    }
}

Test(content, reads_json_in_pieces_of_any_size) {
    bp_buffer text;
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
    char *level = strstr(text.data + text.size / 2, "info"), wanted[64];
    unsigned line = 1;
    for (const char *at = text.data; at < level; at++) {
        line += *at == '\n';
    }
    *level = 'I';
    (void)check("logs.jsonl", text.data, text.size, 64);
    (void)snprintf(wanted, sizeof wanted, "line %u: level has another value", line);
    cr_expect(eq(str, error.message, wanted));
    bp_buffer_release(&text);
}

Test(content, bounds_what_json_may_cost) {
    bp_buffer text;
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
    bp_buffer_release(&text);
}

static const void *fetch(void *source, uint64_t offset, size_t byte_count) {
    (void)byte_count;
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
    bp_buffer file;
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
    bp_buffer_release(&file);
}

Test(content, refuses_every_damage_to_a_png) {
    bp_pixels pixels = made_image(9, 7, 1);
    bp_buffer file;
    bp_buffer_init(&file, 1 << 20);
    cr_assert(eq(int, bp_png_encode(&pixels, 0, 0, 9, 7, append, &file, NULL), BUGPACK_OK));
    for (size_t piece = 1; piece < 100; piece++) {
        cr_expect(eq(int, check("screenshot.png", file.data, file.size, piece), BUGPACK_OK), "%s",
                  error.message);
    }
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
    bp_buffer_release(&file);
}

Test(content, stops_before_a_picture_that_is_too_large) {
    static const unsigned char header[] = {
        0x89, 'P',  'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I',  'H', 'D', 'R', 0,
        0,    0x80, 0,   0,   0,    0x80, 0,    8,    2, 0, 0, 0,  0x5c, 0,   0,   0,   0};
    bp_buffer file;
    bp_buffer_init(&file, 100);
    (void)bp_buffer_append(&file, header, sizeof header);
    cr_expect(ne(int, check("screenshot.png", file.data, file.size, whole), BUGPACK_OK));
    bp_buffer_release(&file);
}
