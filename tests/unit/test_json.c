#include <math.h>
#include <stdint.h>
#include <string.h>

#include "json_fixture.h"

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
    cr_expect(eq(str, (char *)line_of(), "earlier\n{\"a b\":\"c d\",\"list\":[1,2]}"));
}

Test(json, refuses_a_repeated_key_however_it_was_built) {
    bp_json_begin(&json, &out);
    bp_json_add_int(&json, "pid", 1);
    bp_json_object_begin(&json, "other");
    bp_json_add_int(&json, "pid", 2);
    bp_json_object_end(&json);
    cr_expect(eq(int, bp_json_finish(&json, &error), BUGPACK_OK));
    for (int nested = 0; nested < 2; nested++) {
        begin_after_text();
        if (nested == 1) {
            bp_json_object_begin(&json, "other");
        }
        bp_json_add_int(&json, "pid", 1);
        bp_json_add_int(&json, "pi", 2);
        bp_json_add_int(&json, "pid", 3);
        if (nested == 1) {
            bp_json_object_end(&json);
        }
        refuses(BUGPACK_ERR_INVALID, "twice");
    }
}

Test(json, tells_keys_apart_that_differ_in_case) {
    bp_json_begin(&json, &out);
    bp_json_add_int(&json, "key", 1);
    bp_json_add_int(&json, "KEY", 2);
    cr_expect(eq(str, (char *)line_of(), "{\"key\":1,\"KEY\":2}"));
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
    bp_buffer full;
    bp_buffer_init(&full, 1);
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
    cr_expect(eq(str, (char *)bp_buffer_text(&full), ""));
    bp_json_begin(&json, &full);
    cr_expect(eq(int, bp_json_finish(&json, NULL), BUGPACK_ERR_LIMIT));
    bp_buffer_release(&full);
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

Test(json, builds_ten_thousand_threads) {
    bp_json_begin(&json, &out);
    bp_json_array_begin(&json, "threads");
    for (uint64_t tid = 1; tid <= 10000; tid++) {
        bp_json_object_begin(&json, NULL);
        bp_json_add_uint(&json, "tid", tid);
        bp_json_add_text(&json, "name", "net-rx");
        bp_json_add_number(&json, "cpu_percent", (double)tid / 100.0, 2);
        bp_json_object_end(&json);
    }
    bp_json_array_end(&json);
    cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK));
    size_t threads = 0;
    for (const char *at = out.data; (at = strstr(at, "\"tid\": ")) != NULL; at++) {
        threads++;
    }
    cr_expect(eq(sz, threads, 10000));
    cr_expect(strstr(out.data, "\"tid\": 9999,\n      \"name\": \"net-rx\",\n"
                               "      \"cpu_percent\": 99.99\n    }") != NULL);
}
