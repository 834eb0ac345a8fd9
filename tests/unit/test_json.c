#include <math.h>
#include <stdint.h>
#include <string.h>

#include "json_fixture.h"

TestSuite(json, .init = setup, .fini = teardown);

Test(json, indents_by_two_spaces_and_ends_with_a_newline) {
    bp_json *json = bp_json_new();
    bp_json_add_text(json, "name", "viewer");
    bp_json_object_begin(json, "process");
    bp_json_add_uint(json, "pid", 4711);
    bp_json_array_begin(json, "threads");
    bp_json_object_begin(json, NULL);
    bp_json_add_bool(json, "idle", true);
    bp_json_add_bool(json, "busy", false);
    bp_json_object_end(json);
    bp_json_add_null(json, NULL);
    bp_json_array_end(json);
    bp_json_object_end(json);
    cr_assert(eq(int, bp_json_finish(json, &out, &error), BUGPACK_OK));
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
    bp_json *json = bp_json_new();
    cr_assert(eq(int, bp_json_print(json, &out, &error), BUGPACK_OK));
    cr_expect(eq(str, out.data, "{}\n"));
    bp_buffer_clear(&out);
    bp_json_object_begin(json, "o");
    bp_json_object_end(json);
    bp_json_array_begin(json, "a");
    bp_json_array_end(json);
    cr_assert(eq(int, bp_json_finish(json, &out, &error), BUGPACK_OK));
    cr_expect(eq(str, out.data, "{\n  \"o\": {},\n  \"a\": []\n}\n"));
}

Test(json, prints_one_line_without_spaces_and_appends) {
    bp_json *json = bp_json_new();
    bp_json_add_text(json, "a b", "c d");
    bp_json_array_begin(json, "list");
    bp_json_add_int(json, NULL, 1);
    bp_json_add_int(json, NULL, 2);
    bp_json_array_end(json);
    (void)bp_buffer_append_text(&out, "earlier\n");
    cr_expect(eq(str, (char *)line_of(json), "earlier\n{\"a b\":\"c d\",\"list\":[1,2]}"));
}

Test(json, refuses_a_repeated_key_however_it_was_built) {
    bp_json *json = bp_json_new();
    bp_json_add_int(json, "pid", 1);
    bp_json_object_begin(json, "other");
    bp_json_add_int(json, "pid", 2);
    bp_json_object_end(json);
    cr_expect(eq(int, bp_json_print(json, &out, &error), BUGPACK_OK));
    bp_buffer_clear(&out);
    bp_json_add_int(json, "pid", 3);
    refuses(json, BUGPACK_ERR_INVALID, "twice");
}

Test(json, tells_keys_apart_that_differ_in_case) {
    bp_json *json = bp_json_new();
    bp_json_add_int(json, "key", 1);
    bp_json_add_int(json, "KEY", 2);
    cr_expect(eq(str, (char *)line_of(json), "{\"key\":1,\"KEY\":2}"));
}

Test(json, refuses_a_member_without_a_key_and_an_element_with_one) {
    bp_json *json = bp_json_new();
    bp_json_add_int(json, NULL, 1);
    refuses(json, BUGPACK_ERR_INVALID, "has no key");
    bp_buffer_clear(&out);
    json = bp_json_new();
    bp_json_array_begin(json, "a");
    bp_json_add_int(json, "key", 1);
    bp_json_array_end(json);
    refuses(json, BUGPACK_ERR_INVALID, "has a key");
}

Test(json, refuses_ends_that_do_not_match) {
    bp_json *json = bp_json_new();
    bp_json_object_end(json);
    refuses(json, BUGPACK_ERR_INVALID, "what was begun last");

    bp_buffer_clear(&out);
    json = bp_json_new();
    bp_json_array_begin(json, "a");
    bp_json_object_end(json);
    refuses(json, BUGPACK_ERR_INVALID, "what was begun last");

    bp_buffer_clear(&out);
    json = bp_json_new();
    bp_json_object_begin(json, "o");
    refuses(json, BUGPACK_ERR_INVALID, "was not ended");
}

Test(json, builds_to_the_depth_limit_and_no_further) {
    bp_json *json = bp_json_new();
    bp_json_array_begin(json, "a");
    for (int depth = 2; depth < BP_JSON_DEPTH_MAX; depth++) {
        bp_json_array_begin(json, NULL);
    }
    bp_json_add_int(json, NULL, 1);
    for (int depth = 1; depth < BP_JSON_DEPTH_MAX; depth++) {
        bp_json_array_end(json);
    }
    cr_assert(eq(int, bp_json_finish(json, &out, &error), BUGPACK_OK), "%s", error.message);
    const char *deepest = strstr(out.data, "1\n");
    cr_assert(deepest != NULL);
    cr_expect(eq(chr, deepest[-2 * BP_JSON_DEPTH_MAX - 1], '\n'), "the indentation is cut short");

    bp_buffer_clear(&out);
    json = bp_json_new();
    for (int depth = 1; depth <= BP_JSON_DEPTH_MAX; depth++) {
        bp_json_object_begin(json, "o");
    }
    for (int depth = 1; depth <= BP_JSON_DEPTH_MAX; depth++) {
        bp_json_object_end(json);
    }
    refuses(json, BUGPACK_ERR_INVALID, "too deep");
}

Test(json, reports_the_first_failure) {
    bp_json *json = bp_json_new();
    bp_json_add_number(json, "n", (double)NAN, 2);
    bp_json_object_end(json);
    bp_json_add_int(json, NULL, 1);
    bp_json_array_begin(json, "a");
    refuses(json, BUGPACK_ERR_INVALID, "not finite");
}

Test(json, accepts_a_document_that_could_not_be_allocated) {
    bp_json_object_begin(NULL, "o");
    bp_json_add_text(NULL, "t", "x");
    bp_json_add_bytes(NULL, "b", "x", 1);
    bp_json_add_uint(NULL, "u", 1);
    bp_json_add_int(NULL, "i", 1);
    bp_json_add_number(NULL, "n", 1.0, 1);
    bp_json_add_bool(NULL, "f", false);
    bp_json_add_null(NULL, "z");
    bp_json_array_begin(NULL, "a");
    bp_json_array_end(NULL);
    bp_json_object_end(NULL);
    refuses(NULL, BUGPACK_ERR_NO_MEMORY, "out of memory");
    cr_expect(eq(int, bp_json_finish(NULL, &out, NULL), BUGPACK_ERR_NO_MEMORY));
}

Test(json, writes_nothing_where_the_buffer_is_too_small) {
    bp_json *json = bp_json_new();
    bp_json_add_text(json, "name", "a text of some length");
    cr_assert(eq(int, bp_json_print(json, &out, &error), BUGPACK_OK));
    size_t whole = out.size;
    for (size_t limit = 0; limit <= whole; limit++) {
        bp_buffer small;
        bp_buffer_init(&small, limit);
        bugpack_status status = bp_json_print(json, &small, &error);
        cr_expect(eq(int, status, limit < whole ? BUGPACK_ERR_NO_MEMORY : BUGPACK_OK));
        cr_expect(eq(sz, small.size, limit < whole ? 0 : whole));
        bp_buffer_release(&small);
    }
    bp_json_free(json);
}

Test(json, builds_ten_thousand_threads) {
    bp_json *json = bp_json_new();
    bp_json_array_begin(json, "threads");
    for (uint64_t tid = 1; tid <= 10000; tid++) {
        bp_json_object_begin(json, NULL);
        bp_json_add_uint(json, "tid", tid);
        bp_json_add_text(json, "name", "net-rx");
        bp_json_add_number(json, "cpu_percent", (double)tid / 100.0, 2);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
    cr_assert(eq(int, bp_json_finish(json, &out, &error), BUGPACK_OK));
    size_t threads = 0;
    for (const char *at = out.data; (at = strstr(at, "\"tid\": ")) != NULL; at++) {
        threads++;
    }
    cr_expect(eq(sz, threads, 10000));
    cr_expect(strstr(out.data, "\"tid\": 9999,\n      \"name\": \"net-rx\",\n"
                               "      \"cpu_percent\": 99.99\n    }") != NULL);
}
