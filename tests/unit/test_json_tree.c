/*
 * Small documents as a tree.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "base/buffer.h"
#include "json/tree.h"

static bugpack_error error;

static bp_json_tree *read(const char *text) {
    bp_json_tree *tree = NULL;
    cr_assert(bp_json_tree_read(text, strlen(text), &tree, &error) == BUGPACK_OK, "%s",
              error.message);
    return tree;
}

Test(json_tree, finds_members_by_their_exact_name_and_type) {
    bp_json_tree *tree = read("\xEF\xBB\xBF{\"a\": \"x\\u00e9\\ud83d\\ude00\", \"A\": 1, \"list\": "
                              "[1, \"two\", {}], \"inner\": {\"a\": \"y\"}}");
    cr_expect(eq(str, (char *)bp_json_tree_text(tree, "a"), "x\xc3\xa9\xf0\x9f\x98\x80"));
    cr_expect(eq(ptr, (void *)bp_json_tree_text(tree, "A"), NULL));
    cr_expect(eq(ptr, (void *)bp_json_tree_text(tree, "x"), NULL));
    cr_expect(eq(ptr, (void *)bp_json_tree_array(tree, "inner"), NULL));
    cr_expect(eq(ptr, (void *)bp_json_tree_object(tree, "list"), NULL));
    const bp_json_tree *inner = bp_json_tree_object(tree, "inner");
    cr_expect(eq(str, (char *)bp_json_tree_text(inner, "a"), "y"));
    size_t count = 0;
    for (const bp_json_tree *element = bp_json_tree_first(bp_json_tree_array(tree, "list"));
         element != NULL; element = bp_json_tree_next(element)) {
        cr_expect(eq(ptr, (void *)bp_json_tree_text(element, "a"), NULL));
        count++;
    }
    cr_expect(eq(sz, count, 3));
    cr_expect(eq(ptr, (void *)bp_json_tree_text(NULL, "a"), NULL));
    bp_json_tree_free(tree);
}

Test(json_tree, numbers_are_whole_and_exact_or_none) {
    static const struct {
        const char *text;
        bool is_good;
        uint64_t value;
    } cases[] = {{"0", true, 0},
                 {"7", true, 7},
                 {"9007199254740992", true, UINT64_C(9007199254740992)},
                 {"9007199254740994", false, 0},
                 {"-1", false, 0},
                 {"1.5", false, 0},
                 {"1e999", false, 0},
                 {"\"1\"", false, 0},
                 {"null", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_buffer text;
        uint64_t value = 0;
        bp_buffer_init(&text, 100);
        (void)bp_buffer_printf(&text, "{\"n\": %s}", cases[i].text);
        bp_json_tree *tree = read(text.data);
        cr_expect(eq(int, bp_json_tree_uint(tree, "n", &value), cases[i].is_good), "%s", text.data);
        cr_expect(eq(u64, value, cases[i].value), "%s", text.data);
        bp_json_tree_free(tree);
        bp_buffer_release(&text);
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
