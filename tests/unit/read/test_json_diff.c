/*
 * The members in which two documents differ.
 */
#include "compare/json_diff.h"
#include "json/json.h"
#include "unit/unit.h"

static bp_json_side before, after;
static bp_json_changes list;
static bugpack_error error;

static void teardown(void) {
    bp_json_changes_release(&list);
    bp_json_side_release(&before);
    bp_json_side_release(&after);
}

TestSuite(json_diff, .fini = teardown);

/* In two pieces. */
static bugpack_status give_text(const void *context, bp_sink *sink, void *sink_context,
                                bugpack_error *sink_error) {
    const char *text = context;
    size_t half = strlen(text) / 2;
    bugpack_status status = sink(sink_context, text, half);
    return status == BUGPACK_OK ? sink(sink_context, text + half, strlen(text) - half) : status;
}

static bugpack_status read_side(bp_json_side *side, const char *text, const char *parts,
                                const char *skip, uint32_t *ret_root) {
    const bp_json_diff_rule rule = {"x.json", parts, skip};
    const bp_giver giver = {.give = give_text, .context = text};
    return bp_json_side_read(side, &giver, &rule, ret_root, &error);
}

static bugpack_status compare_parts(const char *old_text, const char *new_text, const char *parts,
                                    const char *skip) {
    uint32_t roots[2];
    teardown();
    bp_json_side_init(&before);
    bp_json_side_init(&after);
    bugpack_status status = read_side(&before, old_text, parts, skip, &roots[0]);
    if (status == BUGPACK_OK) {
        status = read_side(&after, new_text, parts, skip, &roots[1]);
    }
    return status == BUGPACK_OK
               ? bp_json_diff(&before, roots[0], &after, roots[1], "x.json", &list, &error)
               : status;
}

static bugpack_status compare(const char *old_text, const char *new_text) {
    return compare_parts(old_text, new_text, "", "");
}

/* The rows as "path before>after;". */
static void expect_changes(const char *old_text, const char *new_text, const char *expected) {
    BUFFER(rows, SIZE_MAX / 4);
    for (size_t i = 0; i < list.count; i++) {
        const bp_json_change *row = &list.rows[i];
        (void)bp_buffer_printf(&rows, "%s %.*s>%.*s;", row->path, (int)row->before.byte_count,
                               row->before.text, (int)row->after.byte_count, row->after.text);
    }
    cr_expect(strcmp(bp_buffer_text(&rows), expected) == 0, "%s and %s give %s", old_text, new_text,
              bp_buffer_text(&rows));
}

static void expect_rows(const char *old_text, const char *new_text, const char *expected) {
    cr_assert(compare(old_text, new_text) == BUGPACK_OK, "%s", error.message);
    expect_changes(old_text, new_text, expected);
}

Test(json_diff, names_what_differs) {
    expect_rows("{\"a\": 1, \"b\": {\"c\": [1, 2]}}", "{\"b\": {\"c\": [1, 3, 4]}, \"a\": 1}",
                "b.c[1] 2>3;b.c[2] >4;");
    expect_rows("{\"a\": \"x y\\\" z\"}", "{\"a\": {\"k\": [ 1,\n 2 ], \"l\": [[], {}]}}",
                "a \"x y\\\" z\">{\"k\":[1,2],\"l\":[[],{}]};");
    expect_rows("1", "2", " 1>2;");
    expect_rows("[]", "{}", " []>{};");
    expect_rows("{\"\": 1, \"a\": {\"\": 2}}", "{\"\": 3, \"a\": {\"\": 4}}", " 1>3;a 2>4;");
    expect_rows("[1, {\"a\": [2]}, 3]", "[1, {\"a\": [2]}, 3]", "");
}

Test(json_diff, leaves_out_what_a_rule_skips) {
    static const char old_text[] =
        "{\"a\": {\"s\": [1, {\"b\": 2}], \"t\": 1}, \"s\": {}, \"c\": 5, \"b\": [{\"s\": 1}]}";
    static const char new_text[] = "{\"a\": {\"t\": 2}, \"c\": 6, \"b\": [{\"s\": 3}, {\"s\": 4}]}";
    cr_assert(compare_parts(old_text, new_text, "", "s") == BUGPACK_OK, "%s", error.message);
    expect_changes(old_text, new_text, "b[1] >{};a.t 1>2;c 5>6;");
    cr_assert(compare_parts(old_text, new_text, "c nothing", "s") == BUGPACK_OK);
    expect_changes(old_text, new_text, "c 5>6;");
    cr_assert(compare_parts("[{\"tid\": 1, \"name\": \"p\", \"v\": 1}]",
                            "[{\"tid\": 2, \"name\": \"p\", \"v\": 2}]", "", "tid") == BUGPACK_OK);
    expect_changes("a thread", "one of the same name", "[p].v 1>2;");
}

Test(json_diff, matches_elements_by_what_names_them) {
    expect_rows("[{\"name\": \"a\", \"v\": 1}, {\"name\": \"b\", \"v\": 2}]",
                "[{\"v\": 2, \"name\": \"b\"}, {\"name\": \"a\", \"v\": 9}]", "[a].v 1>9;");
    expect_rows(
        "[{\"tid\": 1, \"name\": \"p\", \"v\": 1}, {\"tid\": 2, \"name\": \"p\", \"v\": 2}]",
        "[{\"tid\": 2, \"name\": \"p\", \"v\": 3}]",
        "[p 1] {\"tid\":1,\"name\":\"p\",\"v\":1}>;[p 2].v 2>3;");
    expect_rows("[{\"tid\": 1, \"v\": 1}, {\"tid\": 2, \"v\": 2}]", "[{\"tid\": 2, \"v\": 3}]",
                "[1] {\"tid\":1,\"v\":1}>;[2].v 2>3;");
    expect_rows("[{\"name\": \"p\", \"v\": 1}, {\"name\": \"p\", \"v\": 2}]",
                "[{\"name\": \"p\", \"v\": 1}, {\"name\": \"p\", \"v\": 3}]", "[p].v 2>3;");
    expect_rows("[{\"name\": \"a\"}, {\"other\": 1}]", "[{\"name\": \"a\"}, {\"other\": 2}]",
                "[1].other 1>2;");
    expect_rows("[[{\"id\": 7, \"v\": 1}]]", "[[{\"id\": 7, \"v\": 2}]]", "[0][7].v 1>2;");
}

Test(json_diff, has_the_largest_change_of_a_kind_first) {
    expect_rows("[{\"id\": 1, \"v\": 1, \"w\": 5}, {\"id\": 2, \"v\": 1.5, \"w\": 5},"
                " {\"id\": 3, \"v\": 9, \"w\": 5}, {\"id\": 4}]",
                "[{\"id\": 1, \"v\": 2, \"w\": 6}, {\"id\": 2, \"v\": 3, \"w\": 5},"
                " {\"id\": 3, \"v\": 1, \"w\": 7}]",
                "[4] {\"id\":4}>;[3].v 9>1;[2].v 1.5>3;[1].v 1>2;[3].w 5>7;[1].w 5>6;");
}

Test(json_diff, compares_numbers_to_the_last_bit) {
    expect_rows("[18446744073709551614]", "[18446744073709551615]",
                "[0] 18446744073709551614>18446744073709551615;");
    cr_expect(list.rows[0].is_number && list.rows[0].delta == 1);
    expect_rows("[0.5]", "[0.125]", "[0] 0.5>0.125;");
    cr_expect(list.rows[0].is_number && list.rows[0].decimals == 3);
    cr_expect(eq(i64, list.rows[0].delta, -375));
    expect_rows("[-1, 1e3, 0.0123456789012]", "[1, 2, 1]",
                "[0] -1>1;[1] 1e3>2;[2] 0.0123456789012>1;");
    cr_expect(not(list.rows[0].is_number || list.rows[1].is_number || list.rows[2].is_number));
}

Test(json_diff, knows_secrets_that_both_sides_hide) {
    static const char secret[] = "[\"a REDACTED-key-0123456789ab b\"]";
    static const char *const others[] = {"\"a REDACTED-key-ba9876543210 c\"",
                                         "\"a REDACTED-url-ba9876543210 b\"",
                                         "\"a secret b\"",
                                         "\"a REDACTED-\"",
                                         "\"a REDACTED-key-\"",
                                         "\"a REDACTED-key-ba9: 6543210 b\"",
                                         "\"a REDACTED\"",
                                         "7",
                                         "\"\""};
    expect_rows(secret, "[\"a REDACTED-key-ba9876543210 b\"]", "");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char text[100], rows[200];
        (void)snprintf(text, sizeof text, "[%s]", others[i]);
        (void)snprintf(rows, sizeof rows, "[0] \"a REDACTED-key-0123456789ab b\">%s;", others[i]);
        expect_rows(secret, text, rows);
    }
    expect_rows("[\"REDACTED-abcd\"]", "[\"RXXXXXXX-abcd\"]",
                "[0] \"REDACTED-abcd\">\"RXXXXXXX-abcd\";");
}

Test(json_diff, refuses_what_is_no_document_and_names_it) {
    static const char *const bad[] = {"", "{", "[1,]", "{\"a\": 1} x", "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(compare(bad[i], "{}") == BUGPACK_ERR_CORRUPT, "%s", bad[i]);
        cr_expect(strncmp(error.message, "x.json: ", 8) == 0, "%s", error.message);
        cr_expect(compare("{}", bad[i]) == BUGPACK_ERR_CORRUPT, "%s", bad[i]);
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
    char *many = repeat("[1", ",1", 300000, "]"), *others = repeat("[2", ",2", 300000, "]");
    cr_expect(compare(many, others) == BUGPACK_OK);
    cr_expect(eq(sz, list.count, BP_JSON_CHANGE_MAX));
    cr_expect(list.is_cut);
    free(many);
    free(others);
    many = repeat("[1", ",1", 3000000, "]");
    cr_expect(compare(many, "1") == BUGPACK_ERR_CORRUPT);
    cr_expect(strstr(error.message, "would take over 64 MiB") != NULL, "%s", error.message);
    cr_expect(compare_parts("1", "1", "", "") == BUGPACK_OK);
    free(many);
    many = repeat("{\"skipped\": [1", ",1", 3000000, "]}");
    cr_expect(compare_parts(many, "{}", "", "skipped") == BUGPACK_OK, "%s", error.message);
    cr_expect(eq(sz, list.count, 0));
    free(many);
    many = repeat("", "[", BP_JSON_DEPTH_MAX, ""),
    others = repeat(many, "]", BP_JSON_DEPTH_MAX, "");
    expect_rows(others, others, "");
    free(many);
    free(others);
    CLEANUP(free_memory)
    char *name = repeat("{\"", "n", 5000, "\": 1}"), *changed = repeat("{\"", "n", 5000, "\": 2}");
    expect_rows(name, changed, "");
    cr_expect(list.is_cut);
}

Test(json_diff, takes_linear_time_for_what_looks_like_secrets, .timeout = 30) {
    CLEANUP(free_memory) char *one = repeat("[\"", "REDACTED-", 200000, "1-0123456789ab\"]");
    CLEANUP(free_memory) char *other = repeat("[\"", "REDACTED-", 200000, "2-0123456789ab\"]");
    cr_expect(compare(one, other) == BUGPACK_OK);
    cr_expect(eq(sz, list.count, 1));
}
