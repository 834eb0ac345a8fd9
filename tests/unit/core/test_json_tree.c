/*
 * Small documents as a tree.
 */
#include "base/buffer.h"
#include "json/tree_maker.h"
#include "json/tree_reader.h"
#include "unit/unit.h"

static bugpack_error error;

static bp_json_tree *read_tree(const char *text) {
    bp_json_tree *tree = NULL;
    cr_assert(bp_json_tree_read(text, strlen(text), &tree, &error) == BUGPACK_OK, "%s",
              error.message);
    return tree;
}

Test(json_tree, finds_members_by_their_exact_name_and_type) {
    bp_json_tree *tree =
        read_tree("\xEF\xBB\xBF{\"a\": \"x\\u00e9\\ud83d\\ude00\", \"A\": 1, \"list\": "
                  "[1, \"two\", {}], \"inner\": {\"a\": \"y\"}}");
    cr_expect(eq(str, bp_json_tree_text(tree, "a"), "x\xc3\xa9\xf0\x9f\x98\x80"));
    cr_expect(eq(ptr, bp_json_tree_text(tree, "A"), NULL));
    cr_expect(eq(ptr, bp_json_tree_text(tree, "x"), NULL));
    cr_expect(eq(ptr, bp_json_tree_array(tree, "inner"), NULL));
    cr_expect(eq(ptr, bp_json_tree_object(tree, "list"), NULL));
    const bp_json_tree *inner = bp_json_tree_object(tree, "inner");
    cr_expect(eq(str, bp_json_tree_text(inner, "a"), "y"));
    size_t count = 0;
    for (const bp_json_tree *element = bp_json_tree_first(bp_json_tree_array(tree, "list"));
         element != NULL; element = bp_json_tree_next(element)) {
        cr_expect(eq(ptr, bp_json_tree_text(element, "a"), NULL));
        count++;
    }
    cr_expect(eq(sz, count, 3));
    cr_expect(eq(ptr, bp_json_tree_text(NULL, "a"), NULL));
    bp_json_tree_free(tree);
}

Test(json_tree, an_infinite_number_is_none) {
    bp_json_tree *tree = read_tree("{\"a\": 1e999, \"b\": -1e999, \"c\": 1e17, \"d\": -0.5}");
    double value = 7;
    cr_expect(not(bp_json_tree_number(tree, "a", &value)));
    cr_expect(not(bp_json_tree_number(tree, "b", &value)));
    cr_expect(not(bp_json_tree_number(tree, "c", &value)));
    cr_expect(eq(dbl, value, 7));
    cr_expect(bp_json_tree_number(tree, "d", &value));
    cr_expect(eq(dbl, value, -0.5));
    bp_json_tree_free(tree);
}

Test(json_tree, numbers_are_whole_and_exact_or_none) {
    static const struct {
        const char *text;
        bool is_good;
        uint64_t value;
    } cases[] = {{"0", true, 0},
                 {"7", true, 7},
                 {"9007199254740991", true, UINT64_C(9007199254740991)},
                 {"9007199254740993", false, 0}, /* a double of 2^53 */
                 {"-1", false, 0},
                 {"1.5", false, 0},
                 {"1e999", false, 0},
                 {"\"1\"", false, 0},
                 {"null", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 0;
        BUFFER(text, 100);
        (void)bp_buffer_printf(&text, "{\"n\": %s}", cases[i].text);
        bp_json_tree *tree = read_tree(text.data);
        cr_expect(eq(int, bp_json_tree_uint(tree, "n", &value), cases[i].is_good), "%s", text.data);
        cr_expect(eq(u64, value, cases[i].value), "%s", text.data);
        bp_json_tree_free(tree);
    }
}

/* Each of these cJSON alone would accept. */
Test(json_tree, refuses_what_the_strict_reader_refuses) {
    static const char *const bad[] = {"{\"a\": 1, \"a\": 2}", "{\"a\": 01}", "{} x",
                                      "[\"\xff\"]",           "[\"a\tb\"]",  "[1.]"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bp_json_tree *tree = NULL;
        cr_expect(
            eq(int, bp_json_tree_read(bad[i], strlen(bad[i]), &tree, &error), BUGPACK_ERR_CORRUPT));
        cr_expect(eq(int, strncmp(error.message, "line 1, column ", 15), 0), "%s", error.message);
        cr_expect(eq(ptr, tree, NULL));
    }
}

Test(json_tree, refuses_what_takes_more_memory_than_is_meant_for_it) {
    static const char text[] = "{\"a\": [1, \"a text of twenty-five characters\", {}]}";
    const size_t max = sizeof text - 1 + 5 * 80 + 32 + 48; /* nodes, a key and a text */
    bp_json_tree *tree = NULL;
    cr_expect(eq(int, bp_json_tree_read_within(text, sizeof text - 1, max - 1, &tree, &error),
                 BUGPACK_ERR_CORRUPT));
    cr_expect(eq(ptr, tree, NULL));
    cr_assert(
        eq(int, bp_json_tree_read_within(text, sizeof text - 1, max, &tree, &error), BUGPACK_OK));
    bp_json_tree_free(tree);
}

/* A giver that gives a text byte by byte. */
static bugpack_status give(const void *context, bp_sink *sink, void *sink_context,
                           bugpack_error *ret_error) {
    bugpack_status status = BUGPACK_OK;
    for (const char *at = context; *at != '\0' && status == BUGPACK_OK; at++) {
        status = sink(sink_context, at, 1);
    }
    return status;
}

/* A bp_json_tree_taker. */
static bugpack_status add_tid(void *context, bp_json_tree *element, bugpack_error *ret_error) {
    uint64_t tid;
    cr_assert(bp_json_tree_uint(element, "tid", &tid));
    *(uint64_t *)context = *(uint64_t *)context * 10 + tid;
    return tid == 8 ? BUGPACK_ERR_LIMIT : BUGPACK_OK;
}

Test(json_tree, gives_each_element_of_some_arrays_and_the_rest) {
    static const bp_json_tree_list lists[] = {{"threads", add_tid, false},
                                              {"others", add_tid, false},
                                              {"one", add_tid, true},
                                              {NULL, NULL, false}};
    static const struct {
        const char *text;
        bugpack_status status;
        uint64_t tids;
        const char *rest;
    } cases[] = {
        {"{\"threads\": [{\"tid\": 1, \"threads\": [{\"tid\": 9}]}, {\"tid\": 2}], \"a\": [{}]}",
         BUGPACK_OK, 12, "{\"threads\":[],\"a\":[{}]}"},
        {"{\"thread\": [{}], \"a\": {\"threads\": [{}]}, \"threads\": [3, [{}], {\"tid\": 4}]}",
         BUGPACK_OK, 4, "{\"thread\":[{}],\"a\":{\"threads\":[{}]},\"threads\":[]}"},
        {"{\"others\": [{\"tid\": 3}], \"threads\": 5, \"b\": 6}", BUGPACK_OK, 3,
         "{\"others\":[],\"threads\":5,\"b\":6}"},
        {"{\"threads\": {\"a\": [{}]}}", BUGPACK_OK, 0, "{\"threads\":{\"a\":[{}]}}"},
        {"[[{\"threads\": [{}]}]]", BUGPACK_OK, 0, "[[{\"threads\":[{}]}]]"},
        {"7", BUGPACK_OK, 0, "7"},
        {"{\"one\": {\"tid\": 4, \"one\": {}}, \"c\": {\"one\": {}}, \"threads\": [{\"tid\": 2}]}",
         BUGPACK_OK, 42, "{\"one\":{},\"c\":{\"one\":{}},\"threads\":[]}"},
        {"{\"one\": [{}]}", BUGPACK_OK, 0, "{\"one\":[{}]}"},
        {"{\"threads\": [{\"tid\": 8}, {\"tid\": 1}]}", BUGPACK_ERR_LIMIT, 8, NULL},
        {"{\"threads\": [{\"tid\": 5}, {\"tid\": 06}]}", BUGPACK_ERR_CORRUPT, 5, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bp_giver text = {.give = give, .context = cases[i].text};
        uint64_t tids = 0;
        bp_json_tree *rest = NULL;
        BUFFER(printed, 1024);
        cr_expect(eq(int, bp_json_tree_each(&text, lists, &tids, &rest, &error), cases[i].status),
                  "%zu", i);
        cr_expect(eq(u64, tids, cases[i].tids), "%zu", i);
        cr_expect(eq(int, rest != NULL, cases[i].rest != NULL), "%zu", i);
        if (rest != NULL && cases[i].rest != NULL) {
            bp_json json;
            bp_json_begin_as(&json, BP_JSON_RECORD, &printed);
            bp_json_add_tree(&json, "rest", rest);
            cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK));
            char wanted[256];
            (void)snprintf(wanted, sizeof wanted, "{\"rest\":%s}\n", cases[i].rest);
            cr_expect(eq(str, printed.data, wanted), "%zu", i);
        }
        bp_json_tree_free(rest);
    }
}

Test(json_tree, prints_what_it_read_and_numbers_as_they_were) {
    static const char text[] =
        "{\"a\":[9007199254740993,-0.10,1.50e+3,-7,12,1e999,0.1],"
        "\"_b\":{\"c\":null,\"d\":true,\"e\":\"x\\n\\u009b\xc3\xa9\"},\"f\":false}";
    bp_json json;
    bp_json_tree *tree = read_tree(text);
    BUFFER(printed, 1024);
    bp_json_begin_as(&json, BP_JSON_RECORD, &printed);
    BP_JSON_EACH (member, bp_json_tree_first(tree)) {
        bp_json_add_tree(&json, bp_json_tree_key(member), member);
    }
    cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK));
    cr_expect(eq(sz, printed.size, sizeof text));
    cr_expect(zero(int, strncmp(printed.data, text, sizeof text - 1)), "%s", printed.data);
    bp_buffer_clear(&printed);
    cr_assert(eq(int, bp_json_tree_print(tree, &printed, &error), BUGPACK_OK));
    bp_json_tree *again = read_tree(printed.data);
    cr_expect(ne(ptr, (void *)bp_json_tree_object(again, "_b"), NULL));
    bp_json_tree_free(again);
    bp_json_tree_free(tree);
}

Test(json_tree, sets_a_member_beside_one_of_another_case) {
    bp_json_tree *tree = read_tree("{\"Redacted\": 1}");
    cr_expect(bp_json_tree_set_bool(tree, "redacted", true));
    cr_expect(bp_json_tree_is_true(tree, "redacted"));
    cr_expect(bp_json_tree_set_bool(tree, "redacted", false));
    cr_expect(not(bp_json_tree_is_true(tree, "redacted")));
    bp_json_tree_free(tree);
}

Test(json_tree, takes_elements_before_any_other) {
    static const char text[] = "{\"a\": [{\"n\": 1}, {\"n\": 2}]}";
    static const char wanted[] = "{\n  \"a\": [\n    {},\n    {\n      \"n\": 1\n    },\n    {},\n"
                                 "    {\n      \"n\": 2\n    },\n    {}\n  ]\n}\n";
    bp_json_tree *tree = NULL;
    BUFFER(printed, 1024);
    cr_assert(eq(int, bp_json_tree_read(text, sizeof text - 1, &tree, &error), BUGPACK_OK));
    bp_json_tree *array = (bp_json_tree *)(uintptr_t)bp_json_tree_array(tree, "a");
    BP_JSON_EACH (element, bp_json_tree_first(array)) {
        cr_assert(ne(ptr, bp_json_tree_insert(array, (bp_json_tree *)(uintptr_t)element), NULL));
    }
    cr_assert(ne(ptr, bp_json_tree_append(tree, "a"), NULL), "the last one is still known");
    cr_assert(eq(int, bp_json_tree_print(tree, &printed, &error), BUGPACK_OK));
    cr_expect(eq(str, printed.data, wanted));
    bp_json_tree_free(tree);
}

Test(json_tree, is_made_member_by_member_with_exact_numbers) {
    bp_json_maker maker;
    double value = 0;
    BUFFER(printed, 1024);
    bp_json_maker_begin(&maker);
    bp_json_make_uint(&maker, "most", true, UINT64_MAX);
    bp_json_make_number(&maker, "rounded", true, 12.3456, 2);
    bp_json_make_number(&maker, "below", true, -1.0, 0);
    bp_json_make_number(&maker, "unknown", false, 1.0, 0);
    bp_json_make_number(&maker, "infinite", true, 1e308 * 10, 0);
    bp_json_make_text(&maker, "none", NULL);
    bp_json_make_object(&maker, "o");
    bp_json_make_flag(&maker, "set", true);
    bp_json_make_flag(&maker, "unset", false);
    bp_json_make_end(&maker);
    cr_assert(not(maker.lacks_memory));
    cr_expect(bp_json_tree_number(maker.root, "rounded", &value));
    cr_expect(eq(dbl, value, 12.3456), "readers round it themselves");
    bp_json json;
    bp_json_begin_as(&json, BP_JSON_RECORD, &printed);
    bp_json_add_tree(&json, "r", maker.root);
    cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK));
    cr_expect(eq(str, printed.data,
                 "{\"r\":{\"most\":18446744073709551615,\"rounded\":12.35,\"below\":-1,"
                 "\"o\":{\"set\":true}}}\n"));
    bp_json_tree_free(maker.root);
}
