/*
 * Objects with very many keys, as a hostile text would have them.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdio.h>
#include <string.h>

#include "json/json.h"

static bp_buffer text;
static bp_buffer out;
static bugpack_error error;

static void setup(void) {
    bp_buffer_init(&text, (size_t)64 << 20);
    bp_buffer_init(&out, (size_t)256 << 20);
    error = (bugpack_error)BUGPACK_ERROR_INIT;
}

static void teardown(void) {
    bp_buffer_release(&text);
    bp_buffer_release(&out);
}

TestSuite(json_keys, .init = setup, .fini = teardown);

/* Appends {"<prefix>0":0,"<prefix>1":0,…} but for the closing brace, one key a line. */
static void append_object(const char *prefix, size_t key_count) {
    for (size_t i = 0; i < key_count; i++) {
        (void)bp_buffer_printf(&text, "%c\"%s%zu\":0\n", i == 0 ? '{' : ',', prefix, i);
    }
}

static bugpack_status reformat(void) {
    cr_assert(eq(int, text.status, BUGPACK_OK));
    return bp_json_reformat(text.data, text.size, &out, &error);
}

Test(json_keys, accepts_many_different_keys) {
    append_object("key", 200000);
    (void)bp_buffer_append_text(&text, "}");
    cr_expect(eq(int, reformat(), BUGPACK_OK), "%s", error.message);
}

Test(json_keys, finds_the_one_repetition_among_many) {
    for (size_t count = 2; count <= 40; count++) {
        for (size_t repeated = 0; repeated < count; repeated++) {
            char message[100];
            bp_buffer_clear(&text);
            append_object("k", count);
            (void)bp_buffer_printf(&text, ",\"\\u006b%zu\":1}", repeated);
            cr_expect(eq(int, reformat(), BUGPACK_ERR_CORRUPT));
            (void)snprintf(message, sizeof message,
                           "line %zu, column 2: this key was there before in the same object",
                           count + 1);
            cr_expect(eq(str, error.message, message));
        }
    }
}

Test(json_keys, reports_the_earliest_of_several_repetitions) {
    append_object("k", 30);
    (void)bp_buffer_append_text(&text, ",\"k7\":1\n,\"k3\":1\n,\"k7\":1\n,\"k20\":1}");
    cr_expect(eq(int, reformat(), BUGPACK_ERR_CORRUPT));
    cr_expect(
        eq(str, error.message, "line 31, column 2: this key was there before in the same object"));
}

Test(json_keys, keeps_the_keys_of_nested_objects_apart) {
    append_object("k", 20);
    (void)bp_buffer_append_text(&text, ",\"inner\":\n");
    append_object("k", 20);
    (void)bp_buffer_append_text(&text, "},\"list\":[\n");
    append_object("k", 20);
    (void)bp_buffer_append_text(&text, "}],\"k20\":0}");
    cr_expect(eq(int, reformat(), BUGPACK_OK), "%s", error.message);

    bp_buffer_clear(&text);
    append_object("k", 20);
    (void)bp_buffer_append_text(&text, ",\"inner\":\n");
    append_object("k", 20);
    (void)bp_buffer_append_text(&text, "},\n\"k19\":0}");
    cr_expect(eq(int, reformat(), BUGPACK_ERR_CORRUPT));
    cr_expect(
        eq(str, error.message, "line 43, column 1: this key was there before in the same object"));
}

Test(json_keys, tells_long_keys_apart_that_differ_at_the_end) {
    char prefix[2001];
    memset(prefix, 'x', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    append_object(prefix, 5000);
    (void)bp_buffer_append_text(&text, "}");
    cr_expect(eq(int, reformat(), BUGPACK_OK), "%s", error.message);
    text.size--;
    (void)bp_buffer_printf(&text, ",\"%s4321\":0}", prefix);
    cr_expect(eq(int, reformat(), BUGPACK_ERR_CORRUPT));
}

Test(json_keys, compares_characters_however_they_were_written) {
    static const char *const same[][2] = {{"\xc3\xa9", "\\u00E9"},
                                          {"x\xf0\x9f\x98\x80", "\\u0078\\uD83D\\uDE00"},
                                          {"a/\xe2\x82\xac", "a\\/\xe2\x82\xac"}};
    static const char *const other[][2] = {
        {"\xc3\xa9", "\xc3\xa8"}, {"\xc3\xa9", "\xe2\x82\xac"},   {"a", "ab"}, {"a", "a\\u0000"},
        {"", "\\u0000"},          {"\xc3\xa9", "\xc3\xa9\\u0062"}};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        bp_buffer_clear(&text);
        (void)bp_buffer_printf(&text, "{\"%s\":0,\"%s\":0}", same[i][0], same[i][1]);
        cr_expect(eq(int, reformat(), BUGPACK_ERR_CORRUPT), "%s", text.data);
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        bp_buffer_clear(&text);
        (void)bp_buffer_printf(&text, "{\"%s\":0,\"%s\":0}", other[i][0], other[i][1]);
        cr_expect(eq(int, reformat(), BUGPACK_OK), "%s: %s", text.data, error.message);
    }
}
