/*
 * The JSON builder: documents, and values that come out exact.
 */
#include <float.h>
#include <locale.h>
#include <math.h>

#include "base/utf8.h"
#include "json/json.h"
#include "support/json_line.h"
#include "support/not_tried.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

static bp_buffer out;
static bp_json json;
static bugpack_error error;

static void setup(void) {
    bp_buffer_init(&out, (size_t)64 << 20);
    error = (bugpack_error)BUGPACK_ERROR_INIT;
}

static void teardown(void) {
    bp_buffer_release(&out);
}

/* Finishes the document and returns all of the buffer on one line, without the newline. */
static const char *line_of(void) {
    size_t start = json.start;
    cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK), "%s", error.message);
    cr_assert(eq(chr, out.data[out.size - 1], '\n'));
    json_line_fold(&out, start);
    return out.data;
}

/* Begins a document after a text, which a failure must leave alone. */
static void begin_after_text(void) {
    bp_buffer_clear(&out);
    (void)bp_buffer_append_text(&out, "before");
    bp_json_begin(&json, &out);
}

/* Finishes it, and expects a failure that says `why` and that nothing was added. */
static void refuses(bugpack_status status, const char *why) {
    cr_expect(eq(int, bp_json_finish(&json, &error), status));
    cr_expect(strstr(error.message, why) != NULL, "'%s' is not in '%s'", why, error.message);
    cr_expect(eq(str, bp_buffer_text(&out), "before"));
}

TestSuite(json, .init = setup, .fini = teardown);

Test(json, indents_by_two_spaces_and_ends_with_a_newline) {
    bp_json_begin(&json, &out);
    bp_json_add_text(&json, "name", "viewer");
    bp_json_object_begin(&json, "process");
    bp_json_add_uint(&json, "pid", 4711);
    bp_json_array_begin(&json, "threads");
    bp_json_object_begin(&json, NULL);
    bp_json_add_bool(&json, "idle", true);
    bp_json_add_bool(&json, "busy", false);
    bp_json_object_end(&json);
    bp_json_add_null(&json, NULL);
    bp_json_array_end(&json);
    bp_json_object_end(&json);
    cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK));
    cr_expect(eq(str, out.data,
                 "{\n"
                 "  \"name\": \"viewer\",\n"
                 "  \"process\": {\n"
                 "    \"pid\": 4711,\n"
                 "    \"threads\": [\n"
                 "      {\n"
                 "        \"idle\": true,\n"
                 "        \"busy\": false\n"
                 "      },\n"
                 "      null\n"
                 "    ]\n"
                 "  }\n"
                 "}\n"));
}

Test(json, prints_what_is_empty_without_a_space) {
    bp_json_begin(&json, &out);
    cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK));
    cr_expect(eq(str, out.data, "{}\n"));
    bp_buffer_clear(&out);
    bp_json_begin(&json, &out);
    bp_json_object_begin(&json, "o");
    bp_json_object_end(&json);
    bp_json_array_begin(&json, "a");
    bp_json_array_end(&json);
    cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK));
    cr_expect(eq(str, out.data, "{\n  \"o\": {},\n  \"a\": []\n}\n"));
}

Test(json, appends_to_what_is_there) {
    (void)bp_buffer_append_text(&out, "earlier\n");
    bp_json_begin(&json, &out);
    bp_json_add_text(&json, "a b", "c d");
    bp_json_array_begin(&json, "list");
    bp_json_add_int(&json, NULL, 1);
    bp_json_add_int(&json, NULL, 2);
    bp_json_array_end(&json);
    cr_expect(eq(str, line_of(), "earlier\n{\"a b\":\"c d\",\"list\":[1,2]}"));
}

Test(json, has_four_layouts) {
    static const char *const texts[] = {[BP_JSON_PAGE] =
                                            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}\n",
                                        [BP_JSON_LINE] = "{\"a\": [1,2],\"b\": {}}\n",
                                        [BP_JSON_TABLE] = "{\"a\": [\n1,\n2],\n\"b\": {}}\n",
                                        [BP_JSON_RECORD] = "{\"a\":[1,2],\"b\":{}}\n"};
    for (bp_json_layout layout = BP_JSON_PAGE; layout <= BP_JSON_RECORD; layout++) {
        bp_buffer_clear(&out);
        bp_json_begin_as(&json, layout, &out);
        bp_json_array_begin(&json, "a");
        bp_json_add_int(&json, NULL, 1);
        bp_json_add_int(&json, NULL, 2);
        bp_json_array_end(&json);
        bp_json_object_begin(&json, "b");
        bp_json_object_end(&json);
        cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK));
        cr_expect(eq(str, out.data, (char *)texts[layout]));
    }
}

Test(json, refuses_a_member_without_a_key_and_an_element_with_one) {
    begin_after_text();
    bp_json_add_int(&json, NULL, 1);
    refuses(BUGPACK_ERR_INVALID, "has no key");
    begin_after_text();
    bp_json_array_begin(&json, "a");
    bp_json_add_int(&json, "key", 1);
    bp_json_array_end(&json);
    refuses(BUGPACK_ERR_INVALID, "has a key");
}

Test(json, refuses_ends_that_do_not_match) {
    begin_after_text();
    bp_json_object_end(&json);
    refuses(BUGPACK_ERR_INVALID, "what was begun last");

    begin_after_text();
    bp_json_array_begin(&json, "a");
    bp_json_object_end(&json);
    refuses(BUGPACK_ERR_INVALID, "what was begun last");

    begin_after_text();
    bp_json_object_begin(&json, "o");
    refuses(BUGPACK_ERR_INVALID, "was not ended");
}

Test(json, builds_to_the_depth_limit_and_no_further) {
    begin_after_text();
    bp_json_array_begin(&json, "a");
    for (int depth = 2; depth < BP_JSON_DEPTH_MAX; depth++) {
        bp_json_array_begin(&json, NULL);
    }
    bp_json_add_int(&json, NULL, 1);
    for (int depth = 1; depth < BP_JSON_DEPTH_MAX; depth++) {
        bp_json_array_end(&json);
    }
    cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK), "%s", error.message);
    const char *deepest = strstr(out.data, "1\n");
    cr_assert(deepest != NULL);
    cr_expect(eq(chr, deepest[-2 * BP_JSON_DEPTH_MAX - 1], '\n'), "the indentation is cut short");

    begin_after_text();
    for (int depth = 1; depth <= BP_JSON_DEPTH_MAX; depth++) {
        bp_json_object_begin(&json, "o");
    }
    for (int depth = 1; depth <= BP_JSON_DEPTH_MAX; depth++) {
        bp_json_object_end(&json);
    }
    refuses(BUGPACK_ERR_INVALID, "too deep");
}

Test(json, reports_the_first_failure) {
    begin_after_text();
    bp_json_add_number(&json, "n", (double)NAN, 2);
    bp_json_object_end(&json);
    bp_json_add_int(&json, NULL, 1);
    bp_json_array_begin(&json, "a");
    refuses(BUGPACK_ERR_INVALID, "not finite");
}

Test(json, accepts_a_buffer_that_has_failed) {
    BUFFER(full, 1);
    (void)bp_buffer_append_text(&full, "too long");
    bp_json_begin(&json, &full);
    bp_json_object_begin(&json, "o");
    bp_json_add_text(&json, "t", "x");
    bp_json_add_bytes(&json, "b", "x", 1);
    bp_json_add_uint(&json, "u", 1);
    bp_json_add_int(&json, "i", 1);
    bp_json_add_number(&json, "n", 1.0, 1);
    bp_json_add_bool(&json, "f", false);
    bp_json_add_null(&json, "z");
    bp_json_array_begin(&json, "a");
    bp_json_array_end(&json);
    bp_json_object_end(&json);
    cr_expect(eq(int, bp_json_finish(&json, &error), BUGPACK_ERR_LIMIT));
    cr_expect(strstr(error.message, "it is too large") != NULL, "%s", error.message);
    cr_expect(eq(str, bp_buffer_text(&full), ""));
    bp_json_begin(&json, &full);
    cr_expect(eq(int, bp_json_finish(&json, NULL), BUGPACK_ERR_LIMIT));
}

static bugpack_status build_within(size_t limit, bp_buffer *small) {
    bp_buffer_init(small, limit);
    bp_json_begin(&json, small);
    bp_json_add_text(&json, "name", "a text of some length");
    bp_json_array_begin(&json, "list");
    bp_json_add_int(&json, NULL, -5);
    bp_json_add_number(&json, NULL, 1.25, 2);
    bp_json_array_end(&json);
    return bp_json_finish(&json, &error);
}

Test(json, writes_nothing_where_the_buffer_is_too_small) {
    bp_buffer small;
    cr_assert(eq(int, build_within(1000, &small), BUGPACK_OK));
    size_t whole = small.size;
    bp_buffer_release(&small);
    for (size_t limit = 0; limit <= whole; limit++) {
        bugpack_status status = build_within(limit, &small);
        cr_expect(eq(int, status, limit < whole ? BUGPACK_ERR_LIMIT : BUGPACK_OK));
        cr_expect(eq(sz, small.size, limit < whole ? 0 : whole));
        bp_buffer_release(&small);
    }
}

Test(json, keeps_integers_exact_to_64_bits) {
    bp_json_begin(&json, &out);
    bp_json_add_uint(&json, "largest", UINT64_MAX);
    bp_json_add_int(&json, "least", INT64_MIN);
    bp_json_add_uint(&json, "beyond_double", (UINT64_C(1) << 53) + 1);
    bp_json_add_int(&json, "zero", 0);
    cr_expect(eq(str, line_of(),
                 "{\"largest\":18446744073709551615,\"least\":-9223372036854775808,"
                 "\"beyond_double\":9007199254740993,\"zero\":0}"));
}

Test(json, rounds_numbers_and_drops_trailing_zeros) {
    static const struct {
        double value;
        unsigned decimals;
        const char *text;
    } cases[] = {
        {12.5, 2, "12.5"},
        {12.0, 2, "12"},
        {0.0, 3, "0"},
        {-0.0, 3, "0"},
        {-0.0004, 3, "0"},
        {0.0005, 2, "0"},
        {99.999, 2, "100"},
        {61.23456, 3, "61.235"},
        {-1.25, 1, "-1.2"},
        {100.0, 0, "100"},
        {1e15, 2, "1000000000000000"},
        {1e-9, 9, "0.000000001"},
        {0.1, 9, "0.1"},
        {10.0, 9, "10"},
        {2251799813685249.5, 1, "2251799813685249.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char expected[80];
        bp_buffer_clear(&out);
        bp_json_begin(&json, &out);
        bp_json_add_number(&json, "n", cases[i].value, cases[i].decimals);
        (void)snprintf(expected, sizeof expected, "{\"n\":%s}", cases[i].text);
        cr_expect(eq(str, line_of(), expected));
    }
}

Test(json, prints_the_largest_double_whole) {
    bp_json_begin(&json, &out);
    bp_json_add_number(&json, "n", -DBL_MAX, 9);
    const char *line = line_of();
    cr_expect(eq(sz, strspn(line + strlen("{\"n\":-"), "0123456789"), 309));
    cr_expect(eq(dbl, strtod(line + strlen("{\"n\":"), NULL), -DBL_MAX));
}

Test(json, refuses_numbers_that_are_not_finite) {
    const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin_after_text();
        bp_json_add_number(&json, "n", bad[i], 2);
        refuses(BUGPACK_ERR_INVALID, "not finite");
    }
}

Test(json, refuses_more_decimals_than_nine) {
    begin_after_text();
    bp_json_add_number(&json, "n", 1.0, 10);
    refuses(BUGPACK_ERR_INVALID, "too many decimals");
}

Test(json, escapes_text_and_keys_alike) {
    bp_json_begin(&json, &out);
    bp_json_add_text(&json, "\"\\/\b\f\n\r\t\x01\x1f", "\"\\/\b\f\n\r\t\x01\x1f");
    cr_expect(eq(str, line_of(),
                 "{\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\":"
                 "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\"}"));
}

Test(json, escapes_the_controls_that_a_terminal_obeys_and_are_not_ascii) {
    static const char text[] = "\x7f\xc2\x80x\xc2\x9b\xc2\x9f\xc2\xa0\xe2\xc2\x9b\xc2";
    static const char order[] = "\xd8\x9c\xe2\x80\xae\xe2\x81\xa6\xef\xbb\xbf\xe2\x80\x90";
    bp_json_begin(&json, &out);
    bp_json_add_text(&json, "a", text);
    bp_json_add_text(&json, "b", order);
    static const char raw[] = "[\"\xc2\x9b\", \"\xe2\x81\xa9\xe2\x80\x90\"]";
    bp_json_add_raw(&json, "c", raw, sizeof raw - 1);
    cr_expect(eq(str, (char *)line_of(),
                 "{\"a\":\"\\u007f\\u0080x\\u009b\\u009f\xc2\xa0\xee\xbf\xa2\\u009b\xee\xbf\x82\","
                 "\"b\":\"\\u061c\\u202e\\u2066\\ufeff\xe2\x80\x90\","
                 "\"c\":[\"\\u009b\",\"\\u2069\xe2\x80\x90\"]}"));
}

/* The streamed form is the same, so that a reader never sees which of the two wrote a text. */
Test(json, appends_the_same_strings_as_the_builder) {
    unsigned char every[1024];
    for (size_t i = 0; i < sizeof every; i++) {
        every[i] = (unsigned char)(i < 256 ? i : i * 7 + i / 256);
    }
    bp_json_begin(&json, &out);
    bp_json_array_begin(&json, "a");
    bp_json_add_bytes(&json, NULL, every, sizeof every);
    bp_json_array_end(&json);
    BUFFER(streamed, 1 << 20);
    (void)bp_buffer_append_text(&streamed, "{\"a\":[");
    cr_expect(eq(int, bp_json_append_string(&streamed, every, sizeof every), BUGPACK_OK));
    (void)bp_buffer_append_text(&streamed, "]}");
    cr_expect(eq(str, line_of(), streamed.data));
}

Test(json, makes_hostile_bytes_valid_and_keeps_them_recoverable) {
    static const char hostile[] = "net)\n\xff\xc0\xaf\xed\xa0\x80 \xee\xbc\x80 \x00 end";
    bp_json_begin(&json, &out);
    bp_json_add_bytes(&json, "name", hostile, sizeof hostile - 1);
    const char *line = line_of();
    cr_expect(bp_utf8_is_valid(line, out.size));
    cr_expect(eq(sz, strlen(line), out.size), "a NUL got through");
    static const char encoded[] =
        "{\"name\":\"net)"
        "\\n\xee\xbf\xbf\xee\xbf\x80\xee\xbe\xaf\xee\xbf\xad\xee\xbe\xa0\xee\xbe\x80 "
        "\xee\xbf\xae\xee\xbe\xbc\xee\xbe\x80 \xee\xbc\x80 end\"}";
    cr_expect(eq(str, line, encoded));
}

Test(json, leaves_out_what_is_not_known) {
    bp_json_begin(&json, &out);
    bp_json_add_text(&json, "unknown", NULL);
    bp_json_add_bytes(&json, "unknown", NULL, 0);
    bp_json_add_text(&json, "empty", "");
    bp_json_add_bytes(&json, "none", "", 0);
    cr_expect(eq(str, line_of(), "{\"empty\":\"\",\"none\":\"\"}"));
}

Test(json, appends_a_string_whole_or_not_at_all) {
    BUFFER(small, 8);
    cr_expect(eq(int, bp_json_append_string(&small, "four", 4), BUGPACK_OK));
    cr_expect(eq(str, small.data, "\"four\""));
    cr_expect(eq(int, bp_json_append_string(&small, "five", 4), BUGPACK_ERR_LIMIT));
    cr_expect(eq(str, small.data, "\"four\""));
}

/*
 * Switches to a locale whose decimal point is something else. Few machines have one installed, but
 * many have the sources, from which it is made here.
 */
static bool use_locale(const char *name, const char *point) {
    char full_name[32];
    (void)snprintf(full_name, sizeof full_name, "%s.UTF-8", name);
    if (setlocale(LC_ALL, full_name) == NULL) {
        temp_dir dir;
        char command[512];
        cr_assert(temp_dir_make(&dir));
        (void)snprintf(command, sizeof command, "localedef -c -i %s -f UTF-8 '%s/%s' >%s 2>&1",
                       name, dir.path, full_name, "/dev/null");
        int made = system(command);
        (void)setenv("LOCPATH", dir.path, 1);
        const char *used = made == 0 ? setlocale(LC_ALL, full_name) : NULL;
        temp_dir_remove(&dir);
        if (used == NULL) {
            return false;
        }
    }
    return strcmp(localeconv()->decimal_point, point) == 0;
}

static void print_in_locale(const char *name, const char *point) {
    if (!use_locale(name, point)) {
        not_tried("the locale is not installed, and localedef cannot make it");
    }
    bp_json_begin(&json, &out);
    bp_json_add_number(&json, "n", -1234567.25, 2);
    bp_json_add_number(&json, "whole", 12.0, 3);
    cr_expect(eq(str, line_of(), "{\"n\":-1234567.25,\"whole\":12}"));
}

/* In Pashto it is U+066B, two bytes long. */
Test(json, prints_a_point_where_the_locale_has_a_longer_character) {
    print_in_locale("ps_AF", "\xD9\xAB");
}
