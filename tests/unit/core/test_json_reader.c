/*
 * The strict reader: what it must accept, what it must refuse, and in which words.
 */
#include "json/json.h"
#include "json/scanner.h"
#include "support/not_tried.h"
#include "support/temp_dir.h"
#include "unit/json_cases.h"
#include "unit/unit.h"

static bp_buffer out, wide;
static bugpack_error error;

static void setup(void) {
    bp_buffer_init(&out, (size_t)256 << 20);
    bp_buffer_init(&wide, (size_t)64 << 20);
    error = (bugpack_error)BUGPACK_ERROR_INIT;
}

static void teardown(void) {
    bp_buffer_release(&out);
    bp_buffer_release(&wide);
}

TestSuite(json_reader, .init = setup, .fini = teardown);

static bugpack_status reformat(const char *text) {
    return bp_json_reformat(text, strlen(text), &out, &error);
}

/* A case in words that a terminal can show. */
static const char *shown(const json_case *one) {
    static char text[160];
    size_t used = 0;
    for (size_t i = 0; i < one->byte_count && used + 5 < sizeof text; i++) {
        unsigned char byte = (unsigned char)one->text[i];
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 byte >= 0x20 && byte < 0x7F ? "%c" : "\\x%02X", byte);
    }
    text[used] = '\0';
    return text;
}

Test(json_reader, accepts_what_rfc_8259_allows) {
    for (size_t i = 0; i < json_accepted_count; i++) {
        bp_buffer_clear(&out);
        bugpack_status status =
            bp_json_reformat(json_accepted[i].text, json_accepted[i].byte_count, &out, &error);
        cr_expect(status == BUGPACK_OK, "%s: %s", shown(&json_accepted[i]), error.message);
    }
}

Test(json_reader, refuses_everything_else_with_a_place_and_leaves_the_output_alone) {
    for (size_t i = 0; i < json_refused_count; i++) {
        bp_buffer_clear(&out);
        (void)bp_buffer_append_text(&out, "before");
        error = (bugpack_error)BUGPACK_ERROR_INIT;
        bugpack_status status =
            bp_json_reformat(json_refused[i].text, json_refused[i].byte_count, &out, &error);
        cr_expect(status == BUGPACK_ERR_CORRUPT, "accepted: %s", shown(&json_refused[i]));
        cr_expect(strncmp(error.message, "line ", 5) == 0, "%s: %s", shown(&json_refused[i]),
                  error.message);
        cr_expect(eq(str, out.data, "before"));
        cr_expect(eq(int, out.status, BUGPACK_OK));
    }
}

/* Every cut of a document is refused, and so is every cut of a document by one byte of memory. */
Test(json_reader, refuses_every_truncation) {
    static const char whole[] =
        "{\"a\\u00e9\": [1, -0.5e+3, \"x\\ud83d\\ude00\", true, null, {}], \"b\": {\"c\": []}}";
    cr_assert(eq(int, reformat(whole), BUGPACK_OK), "%s", error.message);
    for (size_t length = 0; length < strlen(whole); length++) {
        CLEANUP(free_memory)
        char *cut = malloc(length + 1); /* exactly so long that a sanitizer sees an overrun */
        cr_assert(cut != NULL);
        memcpy(cut, whole, length);
        bp_buffer_clear(&out);
        cr_expect(eq(int, bp_json_reformat(cut, length, &out, &error), BUGPACK_ERR_CORRUPT));
        cr_expect(eq(sz, out.size, 0));
    }
}

Test(json_reader, keeps_numbers_and_strings_byte_for_byte) {
    cr_assert(eq(int,
                 reformat("\t[1.50,-0,1E+2,12345678901234567890123,1e999,\"\\u0041\\/\\u00e9\"]"),
                 BUGPACK_OK));
    cr_expect(eq(str, out.data,
                 "[\n  1.50,\n  -0,\n  1E+2,\n  12345678901234567890123,\n  1e999,\n"
                 "  \"\\u0041\\/\\u00e9\"\n]\n"));
}

Test(json_reader, lays_out_as_the_builder_does_and_again_the_same) {
    cr_assert(eq(int, reformat("{\"a\":{},\"b\":[ ],\"c\":{\"d\":[1,{\"e\":null}]}}"), BUGPACK_OK));
    static const char laid_out[] = "{\n"
                                   "  \"a\": {},\n"
                                   "  \"b\": [],\n"
                                   "  \"c\": {\n"
                                   "    \"d\": [\n"
                                   "      1,\n"
                                   "      {\n"
                                   "        \"e\": null\n"
                                   "      }\n"
                                   "    ]\n"
                                   "  }\n"
                                   "}\n";
    cr_expect(eq(str, out.data, laid_out));
    bp_buffer_clear(&out);
    cr_assert(eq(int, reformat(laid_out), BUGPACK_OK));
    cr_expect(eq(str, out.data, laid_out));
}

Test(json_reader, skips_a_byte_order_mark_and_does_not_count_it) {
    cr_assert(eq(int, reformat("\xEF\xBB\xBF{}"), BUGPACK_OK));
    cr_expect(eq(str, out.data, "{}\n"));
    cr_expect(eq(int, reformat("\xEF\xBB\xBF!"), BUGPACK_ERR_CORRUPT));
    cr_expect(eq(str, error.message, "line 1, column 1: expected a value, but found '!'"));
}

Test(json_reader, says_where_and_what_was_expected) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "line 1, column 1: expected a value, but there is no text"},
        {" \n ", "line 2, column 2: expected a value, but there is no text"},
        {"{\n  \"a\": 1;\n}", "line 2, column 9: expected ',' or '}', but found ';'"},
        {"[1 2]", "line 1, column 4: expected ',' or ']', but found '2'"},
        {"[1,]", "line 1, column 4: expected a value, but found ']'"},
        {"[,", "line 1, column 2: expected a value or ']', but found ','"},
        {"{\"a\":1,}", "line 1, column 8: expected a key in double quotes, but found '}'"},
        {"{a:1}", "line 1, column 2: expected a key in double quotes or '}', but found 'a'"},
        {"{\"a\" 1}", "line 1, column 6: expected ':' after the key, but found '1'"},
        {"[1", "line 1, column 3: expected ',' or ']', but the text ends here"},
        {"{} x", "line 1, column 4: expected the end of the text, but found 'x'"},
        {"[\x01]", "line 1, column 2: expected a value or ']', but found byte 0x01"},
        {"NaN", "line 1, column 1: expected a value, but found 'N'"},
        {"01", "line 1, column 1: a number must not begin with 0"},
        {"[-]", "line 1, column 3: expected a digit of the number here"},
        {"[1.]", "line 1, column 4: expected a digit of the number here"},
        {"\"a", "line 1, column 1: the string is not closed"},
        {"\"a\nb\"", "line 1, column 3: a control character in a string must be written as an "
                     "escape"},
        {"[\"\xC3\xA9\xE2\x82\xAC\", x]", "line 1, column 8: expected a value, but found 'x'"},
        {"[\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 abcdef\xC3\xA9\xC3\xA9\xC3\xA9\", x]",
         "line 1, column 19: expected a value, but found 'x'"},
        {"\"\xC3\xA9\xFF\"", "line 1, column 3: this is not valid UTF-8"},
        {"\"\\x41\"", "line 1, column 2: expected one of \" \\ / b f n r t u after a backslash"},
        {"\"\\u12g4\"", "line 1, column 2: expected four hexadecimal digits after \\u"},
        {"\"\\ud800\"", "line 1, column 2: a high surrogate without a low one behind it"},
        {"\"\\udc00\"", "line 1, column 2: a low surrogate without a high one before it"},
        {"{\"a\":1,\n \"\\u0061\":2}",
         "line 2, column 2: this key was there before in the same object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect(eq(int, reformat(cases[i].text), BUGPACK_ERR_CORRUPT));
        cr_expect(eq(str, error.message, cases[i].message));
    }
}

Test(json_reader, accepts_the_depth_limit_and_refuses_one_more) {
    char text[2 * BP_JSON_DEPTH_MAX + 3];
    for (size_t depth = BP_JSON_DEPTH_MAX; depth <= BP_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        bugpack_status expected = depth > BP_JSON_DEPTH_MAX ? BUGPACK_ERR_CORRUPT : BUGPACK_OK;
        cr_expect(eq(int, reformat(text), expected));
    }
    cr_expect(eq(str, error.message, "line 1, column 65: nested more than 64 deep"));
}

Test(json_reader, refuses_a_million_open_brackets_without_recursion) {
    size_t count = 1000000;
    CLEANUP(free_memory) char *text = malloc(count);
    cr_assert(text != NULL);
    memset(text, '[', count);
    cr_expect(eq(int, bp_json_reformat(text, count, &out, &error), BUGPACK_ERR_CORRUPT));
}

Test(json_reader, keeps_the_first_bytes_where_the_buffer_is_too_small) {
    BUFFER(small, 20);
    (void)bp_buffer_append_text(&small, "before");
    static const char text[] = "[1,2,3,4,5,6,7]";
    cr_expect(eq(int, bp_json_reformat(text, strlen(text), &small, &error), BUGPACK_ERR_LIMIT));
    cr_expect(eq(str, small.data, "before"));
}

Test(json_reader, needs_no_error_and_no_text) {
    cr_expect(eq(int, bp_json_reformat(NULL, 0, &out, NULL), BUGPACK_ERR_CORRUPT));
    cr_expect(eq(int, bp_json_reformat("{]", 2, &out, NULL), BUGPACK_ERR_CORRUPT));
    cr_expect(eq(sz, out.size, 0));
}

/* Reads a text of which the first `first_bytes` come alone, to its end or its fault. */
static bugpack_status read_in_parts(const json_case *one, size_t first_bytes) {
    bp_json_scanner scanner;
    bp_json_token token = {.kind = BP_JSON_MORE};
    bugpack_status status = BUGPACK_OK;
    char *part = malloc(first_bytes + 1); /* of just this size, so that a read behind it is seen */
    cr_assert(ne(ptr, part, NULL));
    memcpy(part, one->text, first_bytes);
    bp_json_scanner_init(&scanner, "", 0);
    bp_json_scanner_continue(&scanner, part, first_bytes, true);
    while (status == BUGPACK_OK && token.kind != BP_JSON_FINISH) {
        status = bp_json_scanner_next(&scanner, &token, &error);
        if (status == BUGPACK_OK && token.kind == BP_JSON_MORE) {
            size_t given = (size_t)(scanner.at - scanner.text);
            cr_assert(le(sz, given, first_bytes));
            bp_json_scanner_continue(&scanner, one->text + given, one->byte_count - given, false);
        }
    }
    bp_json_scanner_release(&scanner);
    free(part);
    return status;
}

Test(json_reader, reads_a_text_in_two_parts_as_it_reads_it_at_once) {
    const struct {
        const json_case *cases;
        size_t count;
    } lists[] = {{json_accepted, json_accepted_count}, {json_refused, json_refused_count}};
    for (size_t list = 0; list < 2; list++) {
        for (size_t i = 0; i < lists[list].count; i++) {
            const json_case *one = &lists[list].cases[i];
            bool has_mark = one->byte_count >= 3 && memcmp(one->text, "\xEF\xBB\xBF", 3) == 0;
            bugpack_error at_once = BUGPACK_ERROR_INIT;
            bp_buffer_clear(&out);
            bugpack_status status = bp_json_reformat(one->text, one->byte_count, &out, &at_once);
            size_t step = one->byte_count > 2000 ? one->byte_count / 100 : 1;
            for (size_t first = 0; !has_mark && first <= one->byte_count; first += step) {
                error = (bugpack_error)BUGPACK_ERROR_INIT;
                cr_expect(eq(int, read_in_parts(one, first), status), "%s at %zu", shown(one),
                          first);
                cr_expect(eq(str, error.message, at_once.message), "%s at %zu", shown(one), first);
            }
        }
    }
}

/* How many lines are read, each as a document; -1 where one is none. */
static int count_lines(const char *text) {
    bp_json_scanner scanner;
    bp_json_token token = {.kind = BP_JSON_MORE};
    int count = -1;
    bp_json_scanner_init(&scanner, text, strlen(text));
    scanner.is_lines = true;
    bugpack_status status = BUGPACK_OK;
    while (status == BUGPACK_OK && (token.kind != BP_JSON_FINISH || token.byte_count > 0)) {
        status = bp_json_scanner_next(&scanner, &token, &error);
        count += status == BUGPACK_OK && token.kind == BP_JSON_FINISH;
    }
    bp_json_scanner_release(&scanner);
    return status == BUGPACK_OK ? count : -1;
}

Test(json_reader, reads_lines_that_are_documents) {
    cr_expect(eq(int, count_lines(""), 0));
    cr_expect(eq(int, count_lines("{\"a\": 1}\n[ ]\n 3 \n"), 3));
    cr_expect(eq(int, count_lines("{}\n{}"), -1));
    cr_expect(eq(str, error.message,
                 "line 2, column 3: expected the end of the line, but the text "
                 "ends here"));
    cr_expect(eq(int, count_lines("{}\n{\n}\n"), -1), "a document of two lines");
    cr_expect(eq(int, count_lines("{}\n\n{}\n"), -1), "an empty line");
    cr_expect(eq(int, count_lines("{} {}\n"), -1), "a line of two documents");
}

/* --- objects with very many keys, as a hostile text would have them --- */

/* Appends {"<prefix>0":0,"<prefix>1":0,…} but for the closing brace, one key a line. */
static void append_object(const char *prefix, size_t key_count) {
    for (size_t i = 0; i < key_count; i++) {
        (void)bp_buffer_printf(&wide, "%c\"%s%zu\":0\n", i == 0 ? '{' : ',', prefix, i);
    }
}

static bugpack_status reformat_wide(void) {
    cr_assert(eq(int, wide.status, BUGPACK_OK));
    return bp_json_reformat(wide.data, wide.size, &out, &error);
}

Test(json_reader, accepts_many_different_keys) {
    append_object("key", 200000);
    (void)bp_buffer_append_text(&wide, "}");
    cr_expect(eq(int, reformat_wide(), BUGPACK_OK), "%s", error.message);
}

Test(json_reader, finds_the_one_repetition_among_many) {
    for (size_t count = 2; count <= 40; count++) {
        for (size_t repeated = 0; repeated < count; repeated++) {
            char message[100];
            bp_buffer_clear(&wide);
            append_object("k", count);
            (void)bp_buffer_printf(&wide, ",\"\\u006b%zu\":1}", repeated);
            cr_expect(eq(int, reformat_wide(), BUGPACK_ERR_CORRUPT));
            (void)snprintf(message, sizeof message,
                           "line %zu, column 2: this key was there before in the same object",
                           count + 1);
            cr_expect(eq(str, error.message, message));
        }
    }
}

Test(json_reader, reports_the_earliest_of_several_repetitions) {
    append_object("k", 30);
    (void)bp_buffer_append_text(&wide, ",\"k7\":1\n,\"k3\":1\n,\"k7\":1\n,\"k20\":1}");
    cr_expect(eq(int, reformat_wide(), BUGPACK_ERR_CORRUPT));
    cr_expect(
        eq(str, error.message, "line 31, column 2: this key was there before in the same object"));
}

Test(json_reader, keeps_the_keys_of_nested_objects_apart) {
    append_object("k", 20);
    (void)bp_buffer_append_text(&wide, ",\"inner\":\n");
    append_object("k", 20);
    (void)bp_buffer_append_text(&wide, "},\"list\":[\n");
    append_object("k", 20);
    (void)bp_buffer_append_text(&wide, "}],\"k20\":0}");
    cr_expect(eq(int, reformat_wide(), BUGPACK_OK), "%s", error.message);

    bp_buffer_clear(&wide);
    append_object("k", 20);
    (void)bp_buffer_append_text(&wide, ",\"inner\":\n");
    append_object("k", 20);
    (void)bp_buffer_append_text(&wide, "},\n\"k19\":0}");
    cr_expect(eq(int, reformat_wide(), BUGPACK_ERR_CORRUPT));
    cr_expect(
        eq(str, error.message, "line 43, column 1: this key was there before in the same object"));
}

Test(json_reader, tells_long_keys_apart_that_differ_at_the_end) {
    char prefix[2001];
    memset(prefix, 'x', sizeof prefix - 1);
    prefix[sizeof prefix - 1] = '\0';
    append_object(prefix, 5000);
    (void)bp_buffer_append_text(&wide, "}");
    cr_expect(eq(int, reformat_wide(), BUGPACK_OK), "%s", error.message);
    wide.size--;
    (void)bp_buffer_printf(&wide, ",\"%s4321\":0}", prefix);
    cr_expect(eq(int, reformat_wide(), BUGPACK_ERR_CORRUPT));
}

Test(json_reader, compares_characters_however_they_were_written) {
    static const char *const same[][2] = {{"\xc3\xa9", "\\u00E9"},
                                          {"x\xf0\x9f\x98\x80", "\\u0078\\uD83D\\uDE00"},
                                          {"a/\xe2\x82\xac", "a\\/\xe2\x82\xac"}};
    static const char *const other[][2] = {
        {"\xc3\xa9", "\xc3\xa8"}, {"\xc3\xa9", "\xe2\x82\xac"},   {"a", "ab"}, {"a", "a\\u0000"},
        {"", "\\u0000"},          {"\xc3\xa9", "\xc3\xa9\\u0062"}};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        bp_buffer_clear(&wide);
        (void)bp_buffer_printf(&wide, "{\"%s\":0,\"%s\":0}", same[i][0], same[i][1]);
        cr_expect(eq(int, reformat_wide(), BUGPACK_ERR_CORRUPT), "%s", wide.data);
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        bp_buffer_clear(&wide);
        (void)bp_buffer_printf(&wide, "{\"%s\":0,\"%s\":0}", other[i][0], other[i][1]);
        cr_expect(eq(int, reformat_wide(), BUGPACK_OK), "%s: %s", wide.data, error.message);
    }
}

/* --- beside Python's reader, which most who read reports by script will use --- */

/* Prints one digit for each file, in the order of their names: whether Python accepts the text. */
static const char program[] = "import json, os, sys\n"
                              "def accepts(path):\n"
                              "    try:\n"
                              "        json.loads(open(path, 'rb').read().decode('utf-8'))\n"
                              "        return '1'\n"
                              "    except ValueError:\n"
                              "        return '0'\n"
                              "names = sorted(n for n in os.listdir('.') if n != 'program')\n"
                              "print(''.join(accepts(n) for n in names))\n";

static bool write_cases(const temp_dir *dir, const json_case *cases, size_t count) {
    bool written = temp_dir_write(dir, "program", program, strlen(program));
    for (size_t i = 0; i < count; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "%06zu", i);
        written = written && temp_dir_write(dir, name, cases[i].text, cases[i].byte_count);
    }
    return written;
}

/* Python's verdicts on all cases, one character each; false when there is no Python. */
static bool ask_python(const json_case *cases, size_t count, char *verdicts, size_t bytes) {
    temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    cr_assert(write_cases(&dir, cases, count));
    char command[512];
    (void)snprintf(command, sizeof command, "cd '%s' && python3 program 2>/dev/null", dir.path);
    FILE *output = popen(command, "re");
    cr_assert(output != NULL);
    bool answered = fgets(verdicts, (int)bytes, output) != NULL;
    (void)pclose(output);
    temp_dir_remove(&dir);
    return answered;
}

static void compare(const json_case *cases, size_t count, bool accepted) {
    char verdicts[1024] = "";
    cr_assert(lt(sz, count, sizeof verdicts));
    if (!ask_python(cases, count, verdicts, sizeof verdicts)) {
        not_tried("python3 is not installed");
    }
    cr_assert(eq(sz, strcspn(verdicts, "\n"), count));
    for (size_t i = 0; i < count; i++) {
        bool python_accepts = verdicts[i] == '1';
        bool agrees = python_accepts == accepted;
        cr_expect(agrees == cases[i].others_agree, "case %zu: %s", i, cases[i].text);
    }
}

Test(json_reader, python_accepts_what_we_accept) {
    compare(json_accepted, json_accepted_count, true);
}

Test(json_reader, python_refuses_what_we_refuse_but_for_where_we_are_stricter) {
    compare(json_refused, json_refused_count, false);
}
