/*
 * The members in which two documents differ.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/json_diff.h"

static bp_json_differences list;
static bp_buffer before, after;
static bugpack_error error;

static void setup(void) {
    bp_json_differences_init(&list);
    bp_buffer_init(&before, SIZE_MAX / 4);
    bp_buffer_init(&after, SIZE_MAX / 4);
}

static void teardown(void) {
    bp_json_differences_release(&list);
    bp_buffer_release(&before);
    bp_buffer_release(&after);
}

TestSuite(json_diff, .init = setup, .fini = teardown);

static bugpack_status compare(const char *old_text, const char *new_text, bool by_name) {
    const bp_json_diff_rule rule = {"x.json", "", "skipped", by_name};
    bp_buffer_clear(&before);
    bp_buffer_clear(&after);
    (void)bp_buffer_append_text(&before, old_text);
    (void)bp_buffer_append_text(&after, new_text);
    return bp_json_diff(&before, &after, &rule, &list, &error);
}

/* The rows as "path before>after;", of redacted ones "path *;". */
static void expect_rows(const char *old_text, const char *new_text, bool by_name,
                        const char *expected) {
    bp_buffer rows;
    bp_json_differences_release(&list);
    bp_json_differences_init(&list);
    cr_assert(compare(old_text, new_text, by_name) == BUGPACK_OK, "%s", error.message);
    bp_buffer_init(&rows, SIZE_MAX / 4);
    for (size_t i = 0; i < list.count; i++) {
        const bp_json_difference *row = &list.rows[i];
        const char *texts = bp_buffer_text(&list.texts);
        if (row->is_redacted) {
            (void)bp_buffer_printf(&rows, "%s *;", texts + row->path);
        } else {
            (void)bp_buffer_printf(&rows, "%s %s>%s;", texts + row->path,
                                   row->has_before ? texts + row->before : "",
                                   row->has_after ? texts + row->after : "");
        }
    }
    cr_expect(strcmp(bp_buffer_text(&rows), expected) == 0, "%s and %s give %s", old_text, new_text,
              bp_buffer_text(&rows));
    bp_buffer_release(&rows);
}

Test(json_diff, names_what_differs) {
    expect_rows("{\"a\": 1, \"b\": {\"c\": [1, 2]}}", "{\"b\": {\"c\": [1, 3, 4]}, \"a\": 1}",
                false, "b.c[1] 2>3;b.c[2] >4;");
    expect_rows("{\"a\": \"x y\\\" z\"}", "{\"a\": {\"k\": [ 1,\n 2 ]}}", false,
                "a \"x y\\\" z\">{\"k\":[1,2]};");
    expect_rows("{\"a\": 1, \"skipped\": 1, \"b\": {\"skipped\": 2}}", "{\"a\": 1, \"b\": {}}",
                false, "");
    expect_rows("1", "2", false, " 1>2;");
    expect_rows("[]", "{}", false, " []>{};");
    expect_rows("{\"\": 1, \"a\": {\"\": 2}}", "{\"\": 3, \"a\": {\"\": 4}}", false, " 1>3;a 2>4;");
}

Test(json_diff, matches_elements_by_what_names_them) {
    expect_rows("[{\"name\": \"a\", \"v\": 1}, {\"name\": \"b\", \"v\": 2}]",
                "[{\"v\": 2, \"name\": \"b\"}, {\"name\": \"a\", \"v\": 9}]", false, "[a].v 1>9;");
    expect_rows(
        "[{\"tid\": 1, \"name\": \"p\", \"v\": 1}, {\"tid\": 2, \"name\": \"p\", \"v\": 2}]",
        "[{\"tid\": 2, \"name\": \"p\", \"v\": 3}]", false,
        "[p 1] {\"tid\":1,\"name\":\"p\",\"v\":1}>;[p 2].v 2>3;");
    expect_rows("[{\"name\": \"p\", \"v\": 1}, {\"name\": \"p\", \"v\": 2}]",
                "[{\"name\": \"p\", \"v\": 1}, {\"name\": \"p\", \"v\": 3}]", true, "[p].v 2>3;");
    expect_rows("[{\"name\": \"a\"}, {\"other\": 1}]", "[{\"name\": \"a\"}, {\"other\": 2}]", false,
                "[1].other 1>2;");
    expect_rows("[[{\"id\": 7, \"v\": 1}]]", "[[{\"id\": 7, \"v\": 2}]]", false, "[0][7].v 1>2;");
}

Test(json_diff, compares_numbers_to_the_last_bit) {
    expect_rows("[18446744073709551614]", "[18446744073709551615]", false,
                "[0] 18446744073709551614>18446744073709551615;");
    cr_expect(list.rows[0].is_number && list.rows[0].change.delta == 1);
    expect_rows("[0.5]", "[0.125]", false, "[0] 0.5>0.125;");
    cr_expect(list.rows[0].is_number && list.rows[0].decimals == 3);
    cr_expect(eq(i64, list.rows[0].change.delta, -375));
    expect_rows("[-1, 1e3, 0.0123456789012]", "[1, 2, 1]", false,
                "[0] -1>1;[1] 1e3>2;[2] 0.0123456789012>1;");
    cr_expect(not(list.rows[0].is_number || list.rows[1].is_number || list.rows[2].is_number));
}

Test(json_diff, knows_secrets_that_both_sides_hide) {
    expect_rows("[\"a REDACTED-key-0123456789ab b\"]", "[\"a REDACTED-key-ba9876543210 b\"]", false,
                "[0] *;");
    cr_expect(eq(sz, list.redacted_count, 1));
    static const char *const others[] = {"\"a REDACTED-key-ba9876543210 c\"",
                                         "\"a REDACTED-url-ba9876543210 b\"",
                                         "\"a secret b\"",
                                         "\"a REDACTED-\"",
                                         "\"a REDACTED-key-\"",
                                         "\"a REDACTED-key-ba9: 6543210 b\"",
                                         "\"a REDACTED\"",
                                         "7",
                                         "\"\""};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char text[100], rows[200];
        (void)snprintf(text, sizeof text, "[%s]", others[i]);
        (void)snprintf(rows, sizeof rows, "[0] \"a REDACTED-key-0123456789ab b\">%s;", others[i]);
        expect_rows("[\"a REDACTED-key-0123456789ab b\"]", text, false, rows);
        cr_expect(eq(sz, list.redacted_count, 0));
    }
}

Test(json_diff, refuses_what_is_no_document_and_names_it) {
    static const char *const bad[] = {"", "{", "[1,]", "{\"a\": 1} x", "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(compare(bad[i], "{}", false) == BUGPACK_ERR_CORRUPT, "%s", bad[i]);
        cr_expect(strncmp(error.message, "x.json: ", 8) == 0, "%s", error.message);
        cr_expect(compare("{}", bad[i], false) == BUGPACK_ERR_CORRUPT, "%s", bad[i]);
    }
}

static char *repeat(const char *begin, const char *text, size_t count, const char *end) {
    bp_buffer out;
    bp_buffer_init(&out, SIZE_MAX / 4);
    (void)bp_buffer_append_text(&out, begin);
    for (size_t i = 0; i < count; i++) {
        (void)bp_buffer_append_text(&out, text);
    }
    (void)bp_buffer_append_text(&out, end);
    return out.data;
}

Test(json_diff, stops_at_its_bounds) {
    char *many = repeat("[1", ",1", 20000, "]"), *others = repeat("[2", ",2", 20000, "]");
    cr_expect(compare(many, others, false) == BUGPACK_OK);
    cr_expect(eq(sz, list.count, BP_JSON_DIFFERENCE_MAX));
    cr_expect(list.is_cut);
    free(many);
    free(others);
    many = repeat("[1", ",1", 140000, "]");
    cr_expect(compare(many, many, false) == BUGPACK_OK);
    free(many);
    many = repeat("[1", ",1", 150000, "]");
    cr_expect(compare(many, many, false) == BUGPACK_ERR_CORRUPT);
    cr_expect(strstr(error.message, "would take over 36 MiB") != NULL, "%s", error.message);
    free(many);
    many = repeat("", "[", BP_JSON_DEPTH_MAX, ""),
    others = repeat(many, "]", BP_JSON_DEPTH_MAX, "");
    expect_rows(others, others, false, "");
    free(many);
    free(others);
    char *name = repeat("{\"", "n", 5000, "\": 1}"), *changed = repeat("{\"", "n", 5000, "\": 2}");
    expect_rows(name, changed, false, "");
    cr_expect(list.is_cut);
    free(name);
    free(changed);
}

Test(json_diff, takes_linear_time_for_what_looks_like_secrets, .timeout = 30) {
    char *one = repeat("[\"", "REDACTED-", 200000, "1-0123456789ab\"]");
    char *other = repeat("[\"", "REDACTED-", 200000, "2-0123456789ab\"]");
    cr_expect(compare(one, other, false) == BUGPACK_OK);
    cr_expect(list.count == 1 && list.redacted_count == 0);
    free(one);
    free(other);
}
