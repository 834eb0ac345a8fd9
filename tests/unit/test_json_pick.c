/*
 * Values out of JSON that somebody else wrote.
 */
#include "unit/unit.h"
#include "json/pick.h"

Test(json_pick, finds_members_of_objects_alone_and_by_their_whole_path) {
    static const char text[] =
        "{\"a\": {\"b\": 1, \"c\": [true, [2], {\"d\": \"x\"}], \"e\": 2}, \"d\": 3, \"c\": null,"
        " \"b\": {\"a\": {\"b\": 4}}}";
    static const struct {
        const char *path, *value;
    } cases[] = {{"a", "{"},   {"a.b", "1"},   {"a.c", "["},  {"a.c.d", ""},
                 {"a.d", ""},  {"a.e", "2"},   {"d", "3"},    {"c", "null"},
                 {"b.a", "{"}, {"b.a.b", "4"}, {"a.b.a", ""}, {"b.a.b.", ""}};
    enum { case_count = sizeof cases / sizeof cases[0] };
    bp_json_pick picks[case_count];
    for (size_t i = 0; i < case_count; i++) {
        picks[i].path = cases[i].path;
    }
    cr_assert(eq(int, bp_json_pick_all(text, strlen(text), picks, case_count, NULL), BUGPACK_OK));
    for (size_t i = 0; i < case_count; i++) {
        cr_expect(bp_json_token_is(&picks[i].token, cases[i].value), "%s", cases[i].path);
    }
}

Test(json_pick, no_key_can_pretend_to_be_a_path) {
    static const char text[] = "{\"a.b\": 1, \"\\u0061\": 3, \"\": 4}";
    bp_json_pick picks[] = {{.path = "a.b"}, {.path = "a"}, {.path = "\\u0061"}};
    cr_assert(eq(int, bp_json_pick_all(text, strlen(text), picks, 3, NULL), BUGPACK_OK));
    for (size_t i = 0; i < 3; i++) {
        cr_expect(eq(sz, picks[i].token.byte_count, 0), "%s", picks[i].path);
    }
}

Test(json_pick, survives_the_deepest_path_of_long_keys) {
    bp_buffer text;
    char key[64];
    memset(key, 'k', 63);
    key[63] = '\0';
    bp_buffer_init(&text, 1 << 16);
    for (int i = 0; i < BP_JSON_DEPTH_MAX; i++) {
        (void)bp_buffer_printf(&text, "{\"%s\":", key);
    }
    (void)bp_buffer_append_text(&text, "1");
    for (int i = 0; i < BP_JSON_DEPTH_MAX; i++) {
        (void)bp_buffer_append_text(&text, "}");
    }
    bp_json_pick pick = {.path = "kk"};
    cr_expect(eq(int, bp_json_pick_all(text.data, text.size, &pick, 1, NULL), BUGPACK_OK));
    cr_expect(eq(sz, pick.token.byte_count, 0));
    bp_buffer_release(&text);
}

Test(json_pick, finds_values_and_knows_their_types) {
    static const char text[] =
        "{\"process\": {\"cpu\": 12.345, \"rss\": 18446744073709551615, \"n\":"
        " \"a\\u00e9\\n\"}, \"threads\": []}";
    bp_json_pick picks[] = {{.path = "process.cpu"}, {.path = "process.rss"}, {.path = "process.n"},
                            {.path = "threads"},     {.path = "process"},     {.path = "missing"}};
    uint64_t value = 7;
    bp_buffer out;
    cr_assert(eq(int, bp_json_pick_all(text, strlen(text), picks, 6, NULL), BUGPACK_OK));
    cr_expect(bp_json_token_fixed(&picks[0].token, 2, &value));
    cr_expect(eq(u64, value, 1235));
    cr_expect(not(bp_json_token_uint(&picks[0].token, &value)));
    cr_expect(bp_json_token_uint(&picks[1].token, &value));
    cr_expect(eq(u64, value, UINT64_MAX));
    bp_buffer_init(&out, 100);
    cr_expect(bp_json_token_text(&picks[2].token, &out));
    cr_expect(eq(str, bp_buffer_text(&out), "a\xc3\xa9\n"));
    cr_expect(not(bp_json_token_text(&picks[1].token, &out)));
    cr_expect(bp_json_token_is(&picks[3].token, "["));
    cr_expect(bp_json_token_is(&picks[4].token, "{"));
    cr_expect(eq(sz, picks[5].token.byte_count, 0));
    cr_expect(not(bp_json_token_uint(&picks[5].token, &value)));
    cr_expect(not(bp_json_token_text(&picks[5].token, &out)));
    bp_buffer_release(&out);
}

Test(json_pick, fixed_point_is_exact_and_stays_inside_its_integer) {
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

Test(json_pick, refuses_what_is_no_json_wherever_it_breaks) {
    static const char text[] = "{\"a\": 1, \"b\": [1, 2, {\"c\": 3}]";
    bp_json_pick pick = {.path = "a"};
    bugpack_error error = BUGPACK_ERROR_INIT;
    for (size_t length = 0; length <= strlen(text); length++) {
        cr_expect(eq(int, bp_json_pick_all(text, length, &pick, 1, &error), BUGPACK_ERR_CORRUPT));
    }
    cr_expect(eq(int, strncmp(error.message, "line 1, column ", 15), 0), "%s", error.message);
}
