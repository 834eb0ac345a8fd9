/*
 * Members of JSON that somebody else wrote, and the values of tokens.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "entries/json_lines.h"
#include "json/member.h"

Test(json_member, finds_the_members_of_the_root_alone) {
    static const char text[] =
        " {\"a\": {\"b\": 1, \"c\": [true, {\"e\": \"}\"}]}, \"d\" : 3, \"c\":"
        "\"\\\"x\", \"\\u0065\": 4, \"list\": [ ]}\n";
    static const struct {
        const char *key, *value;
    } cases[] = {{"\"a\"", "{\"b\": 1, \"c\": [true, {\"e\": \"}\"}]}"},
                 {"\"b\"", ""},
                 {"\"d\"", "3"},
                 {"\"c\"", "\"\\\"x\""},
                 {"\"e\"", ""}, /* it is written with an escape */
                 {"\"list\"", "[ ]"}};
    enum { case_count = sizeof cases / sizeof cases[0] };
    bp_json_field whole[case_count] = {{.key = NULL}}, line[case_count] = {{.key = NULL}};
    for (size_t i = 0; i < case_count; i++) {
        whole[i].key = line[i].key = cases[i].key;
    }
    cr_assert(eq(int, bp_json_find(text, strlen(text), whole, case_count, NULL), BUGPACK_OK));
    bp_json_line_find(text, strlen(text), line, case_count);
    for (size_t i = 0; i < case_count; i++) {
        cr_expect(bp_json_token_is(&whole[i].value, cases[i].value), "%s", cases[i].key);
        cr_expect(bp_json_token_is(&line[i].value, cases[i].value), "%s", cases[i].key);
    }
}

Test(json_member, knows_the_types_of_values) {
    static const char text[] =
        "{\"a\": 12.345, \"b\": 18446744073709551615, \"c\": \"a\\u00e9\\n\"}";
    bp_json_field fields[] = {
        {.key = "\"a\""}, {.key = "\"b\""}, {.key = "\"c\""}, {.key = "\"d\""}};
    uint64_t value = 7;
    bp_buffer out;
    cr_assert(eq(int, bp_json_find(text, strlen(text), fields, 4, NULL), BUGPACK_OK));
    cr_expect(bp_json_token_fixed(&fields[0].value, 2, &value));
    cr_expect(eq(u64, value, 1235));
    cr_expect(not(bp_json_token_uint(&fields[0].value, &value)));
    cr_expect(bp_json_token_uint(&fields[1].value, &value));
    cr_expect(eq(u64, value, UINT64_MAX));
    cr_expect(not(bp_json_token_uint(&fields[3].value, &value)));
    bp_buffer_init(&out, 100);
    cr_expect(bp_json_token_text(&fields[2].value, &out));
    cr_expect(eq(str, (char *)bp_buffer_text(&out), "a\xc3\xa9\n"));
    cr_expect(not(bp_json_token_text(&fields[1].value, &out)));
    cr_expect(not(bp_json_token_text(&fields[3].value, &out)));
    bp_buffer_release(&out);
}

Test(json_member, fixed_point_is_exact_and_stays_inside_its_integer) {
    static const struct {
        const char *text;
        uint64_t value;
        bool is_good;
    } cases[] = {{"0", 0, true},
                 {"3", 300, true},
                 {"0.1", 10, true},
                 {"0.004", 0, true},
                 {"0.005", 1, true},
                 {"184467440737095516.15", UINT64_MAX, true},
                 {"184467440737095516.155", 0, false},
                 {"184467440737095516.16", 0, false},
                 {"-1", 0, false},
                 {"1e3", 0, false},
                 {"1.0001e3", 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_json_token token = {BP_JSON_SCALAR, cases[i].text, strlen(cases[i].text)};
        uint64_t value = 0;
        cr_expect(eq(int, bp_json_token_fixed(&token, 2, &value), cases[i].is_good), "%s",
                  cases[i].text);
        cr_expect(eq(u64, value, cases[i].value), "%s", cases[i].text);
    }
}

Test(json_member, refuses_what_is_no_object_wherever_it_breaks) {
    static const char text[] = "{\"a\": 1, \"b\": [1, 2, {\"c\": 3}]";
    bp_json_field field = {.key = "\"a\""};
    bugpack_error error = BUGPACK_ERROR_INIT;
    for (size_t length = 0; length <= strlen(text); length++) {
        cr_expect(eq(int, bp_json_find(text, length, &field, 1, &error), BUGPACK_ERR_CORRUPT));
    }
    cr_expect(eq(int, strncmp(error.message, "line 1, column ", 15), 0), "%s", error.message);
    cr_expect(eq(int, bp_json_find("\n [{}]", 6, &field, 1, &error), BUGPACK_ERR_CORRUPT));
    cr_expect(eq(str, error.message, "line 2, column 2: expected an object"));
    static const char repeated[] = "{\"a\": 1, \"a\": 2}";
    cr_expect(
        eq(int, bp_json_find(repeated, strlen(repeated), &field, 1, &error), BUGPACK_ERR_CORRUPT));
}

/* Most lines are only counted, so no more of one is read than is wanted. */
Test(json_member, finds_nothing_outside_of_a_malformed_line) {
    static const char text[] = "{\"a\": 1, \"b\": \"x\\\"\", \"c\": [{\"a\": 3}";
    for (size_t length = 0; length < sizeof text; length++) {
        char *line = malloc(length + 1); /* of just this size, so that a read behind it is seen */
        bp_json_field fields[] = {
            {.key = "\"a\""}, {.key = "\"b\""}, {.key = "\"c\""}, {.key = "\"d\""}};
        memcpy(line, text, length);
        bp_json_line_find(line, length, fields, 4);
        for (size_t i = 0; i < 4; i++) {
            cr_expect(le(sz, fields[i].value.byte_count, length));
        }
        cr_expect(eq(int, fields[3].value.byte_count > 0, 0));
        free(line);
    }
}

Test(json_member, shows_a_string_of_a_line_and_nothing_else) {
    static const struct {
        const char *token, *text;
    } cases[] = {{"", ""},
                 {"\"\"", ""},
                 {"\"seven\"", "seven"},
                 {"\"a\\u00e9\\n\"", "a\xc3\xa9\n"},
                 {"12", ""},
                 {"\"cut", ""},
                 {"\"bad\\q\"", ""},
                 {"\"a\xff\"", ""},
                 {"[\"x\"]", ""},
                 {"\"1234567\"", "1234567"},
                 {"\"12345678\"", "1\u2026678"},
                 {"\"123456\xc3\xa9\"", "1\u20266\u00e9"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_json_token token = {.text = cases[i].token, .byte_count = strlen(cases[i].token)};
        char text[8];
        bp_json_line_text(i > 0 ? &token : &(bp_json_token){.byte_count = 0}, text, sizeof text);
        cr_expect(eq(str, text, (char *)cases[i].text), "%zu", i);
    }
}
