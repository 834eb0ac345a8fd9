/*
 * Secrets in streams: cut anywhere, in JSON, in long lines, over several records; and rules of
 * callers.
 */
#include <time.h>

#include "redact/tag.h"
#include "redact/view.h"
#include "unit/redacted.h"
#include "unit/unit.h"

/* A line of logs.jsonl. */
#define LINE(tid, text)                                                                            \
    "{\"seq\":1,\"level\":\"info\",\"channel\":\"app\",\"tid\":" #tid ",\"message\":\"" text "\"}" \
    "\n"
#define KEY_BEGIN "-----BEGIN PRIVATE KEY-----"
#define OF_A_CALLER                                                                                \
    "let digits = [0-9]{4}\n[ticket]\ncategory = mine\npattern = T-(%{digits})\n"                  \
    "[email]\nkeyword = @corp\nbefore = 10\npattern = [a-z]+@corp\n"

static bp_rule_set *set;
static bp_redactor *redactor;
static bp_buffer out;

static void use(const char *rules) {
    set = redacted_set(rules);
    redactor = bp_redactor_new(set);
    cr_assert(redactor != NULL);
}

static void drop(void) {
    bp_redactor_free(redactor);
    bp_rule_set_drop(set);
    redactor = NULL;
    set = NULL;
}

static void teardown(void) {
    drop();
    bp_buffer_release(&out);
}

TestSuite(redact, .fini = teardown);

static const char *run(bp_redact_form form, const char *text) {
    bp_buffer_release(&out);
    redacted(redactor, form, text, strlen(text), 1000, &out);
    return bp_buffer_text(&out);
}

static const char *run_plain(bp_redact_form form, const char *text) {
    (void)run(form, text);
    redacted_without_tags(out.data);
    return out.data;
}

static uint64_t count_of(const char *id) {
    for (size_t i = 0; i < set->list.count; i++) {
        if (strcmp(set->list.rules[i].id, id) == 0) {
            return bp_redactor_counts(redactor)[i];
        }
    }
    cr_fatal("no rule %s", id);
    return 0;
}

Test(redact, hashes_as_the_authors_of_siphash_do) {
    bp_tag_key key = {.words = {0x0706050403020100u, 0x0F0E0D0C0B0A0908u}, .is_there = true};
    unsigned char message[15];
    for (unsigned i = 0; i < sizeof message; i++) {
        message[i] = (unsigned char)i;
    }
    /* Appendix A of the paper. */
    cr_expect(eq(u64, bp_tag_hash(&key, message, sizeof message), 0xA129CA6149BE45E5u));
}

Test(redact, gives_a_secret_the_same_tag_in_one_report_and_another_in_the_next) {
    char first[200], again[200];
    use(NULL);
    (void)snprintf(first, sizeof first, "%s", run(BP_REDACT_TEXT, "password=hunter2"));
    (void)snprintf(again, sizeof again, "%s",
                   run(BP_REDACT_JSON, "{\"password\": \"hun\\u0074er2\"}"));
    cr_expect(strncmp(first, "password=REDACTED-password-", 27) == 0, "%s", first);
    cr_expect(strstr(again, first + strlen("password=")) != NULL, "%s", again);
    cr_expect(ne(str, run(BP_REDACT_TEXT, "password=hunter3"), first));
    bp_redactor_free(redactor);
    redactor = bp_redactor_new(set);
    cr_expect(ne(str, run(BP_REDACT_TEXT, "password=hunter2"), first));
}

/* A value some lines below its name, wherever a block that is searched ends. */
Test(redact, finds_what_a_line_above_names) {
    static const char *const values[] = {
        "data:\n  password: |\n    hunter2\n  port: 1\n",
        "- name: DB_PASSWORD\n  value: hunter2\n",
        "- value: hunter2\n  name: DB_PASSWORD\n",
        "<key>Password</key>\n\t<string>hunter2</string>\n",
        "machine h\n  login bob\n  password hunter2\n",
        "--B\r\nContent-Disposition: form-data; name=\"password\"\r\nContent-Type: "
        "text/plain\r\n\r\n"
        "hunter2\r\n--B--\r\n",
        "variable \"db_password\" {\n  default = \"hunter2\"\n}\n",
        "Cookie: lang=en;\r\n SID=hunter2\r\nHost: h\r\n",
        "Authorization: Bearer AAAAAAAAAA0\r\n  hunter2hunter2hunter2Q\r\nHost: "
        "h\r\n",
        "[\"password\"]=>\n  string(7) \"hunter2\"\n",
        "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\nAAAAhunter2hunter2AAA=\nPrivate-MAC: "
        "0\n",
    };
    static char text[256 * 1024];
    use(NULL);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        size_t length = strlen(values[i]);
        for (size_t shift = 0; shift < length; shift++) {
            size_t at = 64 * 1024 - shift;
            memset(text, 'x', sizeof text);
            for (size_t line = 99; line < sizeof text; line += 100) {
                text[line] = '\n';
            }
            text[at - 1] = '\n';
            memcpy(text + at, values[i], length);
            text[sizeof text - 1] = '\0';
            bp_buffer_release(&out);
            redacted(redactor, BP_REDACT_TEXT, text, sizeof text - 1, 65536, &out);
            cr_expect(strstr(bp_buffer_text(&out), "hunter2") == NULL, "%s at %zu", values[i], at);
        }
    }
}

Test(redact, leaves_what_was_redacted_before_as_it_is) {
    use(NULL);
    CLEANUP(free_memory)
    char *once = strdup(run(BP_REDACT_TEXT, "password=hunter2 https://u:hunter2@h/ "
                                            "Authorization: Bearer abcdefghijkl1\n"));
    cr_expect(eq(str, run(BP_REDACT_TEXT, once), once));
}

Test(redact, counts_by_rule_and_entry) {
    use(NULL);
    (void)run(BP_REDACT_TEXT, "password=a1b2 password=a1b2\nAKIAIOSFODNN7EXAMPLE\n");
    cr_expect(eq(u64, count_of("password"), 2));
    cr_expect(eq(u64, count_of("aws-access-key"), 1));
    (void)run(BP_REDACT_TEXT, "nothing");
    cr_expect(eq(u64, count_of("password"), 0));
}

/* A text, and what must be left of it. */
static const struct {
    const char *name, *rules;
    bp_redact_form form;
    const char *from, *to;
} rows[] = {
    {"a number", NULL, BP_REDACT_JSON, "{\"password\":123456,\"n\":1}",
     "{\"password\":\"«»\",\"n\":1}"},
    {"a quote", NULL, BP_REDACT_JSON, "{\"password\" :\n \"x\\\"y\"}", "{\"password\" :\n \"«»\"}"},
    {"an argument", NULL, BP_REDACT_JSON, "[\"--password\",\n  \"hunter2\"]",
     "[\"--password\",\n  \"«»\"]"},
    {"no value", NULL, BP_REDACT_JSON, "{\"password\":null,\"passwords\":3}",
     "{\"password\":null,\"passwords\":3}"},
    {"surrogates", NULL, BP_REDACT_JSON, "{\"m\":\"password=\\ud83d\\ude00x1\"}",
     "{\"m\":\"password=«»\"}"},
    {"JSON in JSON", NULL, BP_REDACT_JSON, "{\"m\":\"{\\\"\\\\u0070assword\\\":\\\"hunter2\\\"}\"}",
     "{\"m\":\"{\\\"\\\\u0070assword\\\":\\\"«»\\\"}\"}"},
    {"capitals", NULL, BP_REDACT_JSON, "{\"PASSWORD\":\"HUNTER\"}\r\n",
     "{\"PASSWORD\":\"«»\"}\r\n"},
    {"no JSON", NULL, BP_REDACT_JSON, "not json password=hunter2", "not json \"«»\""},
    {"no end", NULL, BP_REDACT_JSON, "{\"unterminated\":\"password=hunter2",
     "{\"unterminated\":\"password=«»"},
    {"a card that is a number", NULL, BP_REDACT_JSON,
     "{\"mark\":4012888888881881,\"n\":[4111111111111111]}",
     "{\"mark\":4012888888881881,\"n\":[4111111111111111]}"},
    {"a name alone", NULL, BP_REDACT_JSON, "\"password\"", "\"password\""},
    {"escapes in a text", NULL, BP_REDACT_TEXT, "{\"\\u0070assword\":\"hunter2\"}",
     "{\"\\u0070assword\":\"«»\"}"},
    {"two keys whose lines are mixed", NULL, BP_REDACT_JSON_LINES,
     "{\"t\":1,\"m\":\"" KEY_BEGIN "\"}\n{\"t\":2,\"m\":\"" KEY_BEGIN "\"}\n"
     "{\"t\":1,\"m\":\"MIIEvQIBADANBgkqhkiG\"}\n{\"t\":1,\"m\":\"-----END PRIVATE KEY-----\"}\n"
     "{\"t\":2,\"m\":\"MIIEpAIBAAKCAQEA0Z3V\"}\n{\"t\":2,\"m\":\"-----END PRIVATE KEY-----\"}\n"
     "{\"t\":2,\"m\":\"afterwardsallisasbefore\"}\n",
     "{\"t\":1,\"m\":\"«»\"}\n{\"t\":2,\"m\":\"«»\"}\n{\"t\":1,\"m\":\"«»\"}\n"
     "{\"t\":1,\"m\":\"-----END PRIVATE KEY-----\"}\n{\"t\":2,\"m\":\"«»\"}\n"
     "{\"t\":2,\"m\":\"-----END PRIVATE KEY-----\"}\n"
     "{\"t\":2,\"m\":\"afterwardsallisasbefore\"}\n"},
    {"a key in an array", NULL, BP_REDACT_JSON,
     "{\"k\":[\"" KEY_BEGIN "\",\"MIIEvQIBADANBgkqhkiG\",\"9Qk=\"]}",
     "{\"k\":[\"«»\",\"«»\",\"«»\"]}"},
    {"a key in another member", NULL, BP_REDACT_JSON,
     "{\"k\":\"" KEY_BEGIN "\",\"another\":\"MIIEvQIBADANBgkqhkiG\"}",
     "{\"k\":\"«»\",\"another\":\"MIIEvQIBADANBgkqhkiG\"}"},
    {"a key in lines with a prefix", NULL, BP_REDACT_TEXT,
     "12:00 app: " KEY_BEGIN "\r\n12:00 app: MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\r\n"
     "12:00 app: -----END PRIVATE KEY-----\r\n12:01 app: ok\r\n",
     "12:00 app: «»\r\n12:00 app: «»\r\n12:00 app: -----END PRIVATE KEY-----\r\n"
     "12:01 app: ok\r\n"},
    {"a header before the value of a name", NULL, BP_REDACT_JSON,
     "{\"name\":\"DB_PASSWORD\",\"t\":\"ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R\","
     "\"a\":\"Authorization: Basic aHVudGVyMg\",\"value\":\"hunter2\"}",
     "{\"name\":\"DB_PASSWORD\",\"t\":\"«»\",\"a\":\"Authorization: Basic «»\",\"value\":\"«»\"}"},
    {"a name that is not of ASCII", NULL, BP_REDACT_TEXT, "contraseña: hunter2\n",
     "contraseña: «»\n"},
    {"lines that are records", NULL, BP_REDACT_JSON_LINES,
     LINE(1, "Cookie: a=b;\\r") LINE(1, " sid=hunter2\\r") LINE(1, "- name: DB_PASSWORD")
         LINE(2, "  value: hunter2") LINE(1, "  value: hunter2") LINE(1, "  value: hunter2")
             LINE(1, "  password: |") LINE(1, "    hunter2") LINE(1, "a") LINE(1, "password:")
                 LINE(1, "b") LINE(1, "  value: hunter2")
                     LINE(1, "Content-Disposition: form-data; name=\\\"password\\\"\\r")
                         LINE(1, "\\r") LINE(1, "hunter2\\r") LINE(1, "hunter2\\r")
                             LINE(1, "; name=\\\"password\\\"") LINE(1, "") LINE(1, "hunter2"),
     LINE(1, "Cookie: «»\\r") LINE(1, "«»\\r") LINE(1, "- name: DB_PASSWORD")
         LINE(2, "  value: hunter2") LINE(1, "  value: «»") LINE(1, "  value: hunter2")
             LINE(1, "  password: |") LINE(1, "    «»") LINE(1, "a") LINE(1, "password:")
                 LINE(1, "b") LINE(1, "  value: hunter2")
                     LINE(1, "Content-Disposition: form-data; name=\\\"password\\\"\\r")
                         LINE(1, "\\r") LINE(1, "«»\\r") LINE(1, "hunter2\\r")
                             LINE(1, "; name=\\\"password\\\"") LINE(1, "") LINE(1, "«»")},
    {"a record that ends within its message", NULL, BP_REDACT_JSON_LINES,
     LINE(1, "password:") "{\"level\":\"info\",\"channel\":\"app\",\"tid\":1,\"message\":\"",
     LINE(1, "password:") "{\"level\":\"info\",\"channel\":\"app\",\"tid\":1,\"message\":\""},
    {"a folded JWT in a header", NULL, BP_REDACT_TEXT,
     "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0\r\n"
     " IiwibmFtZSI6ImJvYiBzbWl0aCJ9.dozjgNryP4J3jVmNHl0w5N\r\nHost: h\r\n",
     "Authorization: Bearer «»\r\nHost: h\r\n"},
    {"a folded token in a header", NULL, BP_REDACT_TEXT,
     "Authorization: Bearer 0a1B2c3D4e5F6g7H8i9J\r\n\t0a1B2c3D4e5F6g7H8i9J==\r\n  at a.b(c)\r\n",
     "Authorization: Bearer «»\r\n  at a.b(c)\r\n"},
    {"a header and its next line", NULL, BP_REDACT_TEXT,
     "Cookie: SID=31d4d96e; a=b\n  Accept=all\nCookie: a=1;\n\n  b=2\n",
     "Cookie: «»\n  Accept=all\nCookie: «»\n\n  b=2\n"},
    {"behind a colour within a word", NULL, BP_REDACT_TEXT,
     "x\033[1mrubygems_0123456789abcdef0123456789abcdef\033[m\n", "x\033[1m«»\033[m\n"},
    {"a group in each pattern that calls it",
     "group digit = [0-9]\ngroup pair = %{digit}%{digit}\n"
     "[ticket]\nkeyword = t-\nlines = 1\npattern = T-(%{pair}{2})(?:\\n%{digit})?\n",
     BP_REDACT_TEXT, "a T-1234 T-123 T-x\n", "a T-«» T-123 T-x\n"},
    {"rules of a caller", OF_A_CALLER, BP_REDACT_TEXT, "T-1234 T-5678 bob@corp T-x\n",
     "T-«» T-«» «» T-x\n"},
    {"rules of a caller, JSON", OF_A_CALLER, BP_REDACT_JSON, "{\"T-1234\":\"a\\\"T-5678\"}",
     "{\"T-«»\":\"a\\\"T-«»\"}"},
    {"whole characters", "[cut]\nkeyword = k-\npattern = k-.(...)\n", BP_REDACT_TEXT, "k-éxé.\n",
     "k-«».\n"},
    {"within its string", "[wide]\nkeyword = w-\npattern = w-([a-z\\xFE\\xFF]+)\n", BP_REDACT_JSON,
     "{\"a\":\"w-x\",\"b\":\"c\"}", "{\"a\":\"w-«»\",\"b\":\"c\"}"},
};

Test(redact, leaves_of_a_text_what_is_no_secret) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        use(rows[i].rules);
        const char *left = run_plain(rows[i].form, rows[i].from);
        cr_expect(strcmp(left, rows[i].to) == 0, "%s: %s", rows[i].name, left);
        drop();
    }
}

/* What stands below a key that names a secret: where it is as JSON, in a string of JSON, and in a
 * text. */
static const struct {
    const char *from, *to;
} nested[] = {
    {"{\"password\":[\"a\",\"b\"],\"c\":[\"d\"]}", "{\"password\":[\"«»\",\"«»\"],\"c\":[\"d\"]}"},
    {"{\"password\":{\"a\":\"x\",\"b\":[[\"y\"],{\"z\":\"w\"}]},\"c\":\"d\"}",
     "{\"password\":{\"a\":\"«»\",\"b\":[[\"«»\"],{\"z\":\"«»\"}]},\"c\":\"d\"}"},
    {"[{\"passwords\":[]},\"a\",{\"password\":{}},\"b\"]",
     "[{\"passwords\":[]},\"a\",{\"password\":{}},\"b\"]"},
    {"{\"tokens\":{\"used\":5,\"model\":\"large\"}}",
     "{\"tokens\":{\"used\":5,\"model\":\"large\"}}"},
    {"{\"tokens\":[\"ab\",\"8c1f0a77b2\"],\"a\":\"8c1f0a77b2\"}",
     "{\"tokens\":[\"ab\",\"«»\"],\"a\":\"8c1f0a77b2\"}"},
    {"{\"token\":{\"password\":[\"a\",\"b\"],\"x\":\"y\"}}",
     "{\"token\":{\"password\":[\"«»\",\"«»\"],\"x\":\"y\"}}"},
    {"{\"headers\":{\"Cookie\":[\"a=1; b=2\",\"c=3\"],\"Authorization\":[\"Basic eA==\",\"Bearer "
     "a.b-c\"]}}",
     "{\"headers\":{\"Cookie\":[\"«»\",\"«»\"],\"Authorization\":[\"Basic «»\",\"Bearer «»\"]}}"},
    {"{\"password_policy\":{\"min\":\"eight\"},\"password\":[true,null,8]}",
     "{\"password_policy\":{\"min\":\"eight\"},\"password\":[true,null,8]}"},
    {"{\"password\" : [ \"a\\\"b\", \"c\\\\\", \"d}]\" ], \"e\": \"f\"}",
     "{\"password\" : [ \"«»\", \"«»\", \"«»\" ], \"e\": \"f\"}"},
    {"{\"password\":[],\"user\":\"x\"}", "{\"password\":[],\"user\":\"x\"}"},
    /* The longest key, and as many as there may be within each other. */
    {"{\"0123456789abcdef0123456789abcdef0123456789abcdef01234567password\":[\"a\",\"b\"]}",
     "{\"0123456789abcdef0123456789abcdef0123456789abcdef01234567password\":[\"«»\",\"«»\"]}"},
    {"{\"token\":{\"token\":{\"token\":{\"token\":{\"token\":{\"token\":{\"token\":"
     "{\"password\":[\"a\",\"b\"]}}}}}}}}",
     "{\"token\":{\"token\":{\"token\":{\"token\":{\"token\":{\"token\":{\"token\":"
     "{\"password\":[\"«»\",\"«»\"]}}}}}}}}"},
};

/* The text as a string of JSON would have it. */
static void quote_json(const char *text, char *quoted) {
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            *quoted++ = '\\';
        }
        *quoted++ = *text;
    }
    *quoted = '\0';
}

Test(redact, replaces_all_below_a_key) {
    char from[2][1000], to[2][1000];
    use(NULL);
    for (size_t i = 0; i < sizeof nested / sizeof nested[0]; i++) {
        (void)snprintf(from[0], sizeof from[0], "%s", nested[i].from);
        (void)snprintf(to[0], sizeof to[0], "%s", nested[i].to);
        for (int level = 0; level < 3; level++) {
            cr_expect(eq(str, run_plain(BP_REDACT_JSON_LINES, from[0]), to[0]));
            cr_expect(eq(str, run_plain(BP_REDACT_JSON, from[0]), to[0]));
            cr_expect(eq(str, run_plain(BP_REDACT_TEXT, from[0]), to[0]));
            quote_json(from[0], from[1]);
            quote_json(to[0], to[1]);
            (void)snprintf(from[0], sizeof from[0], "{\"m\":\"%.900s\",\"n\":\"x\"}", from[1]);
            (void)snprintf(to[0], sizeof to[0], "{\"m\":\"%.900s\",\"n\":\"x\"}", to[1]);
        }
    }
    cr_expect(
        eq(str,
           run_plain(BP_REDACT_JSON, "{\"\\u0070assword\":[123456,\"a\",-1234567],\"n\":[123456]}"),
           "{\"\\u0070assword\":[\"«»\",\"«»\",\"«»\"],\"n\":[123456]}"));
    cr_expect(eq(str,
                 run_plain(BP_REDACT_TEXT, "got {'passwords': ['a b', 'c'], 'd': ['e']} ok\n"
                                           "['f']\n"),
                 "got {'passwords': ['«»', '«»'], 'd': ['e']} ok\n['f']\n"));
}

Test(redact, sees_json_without_its_escapes_and_knows_where_it_came_from) {
    static const char json[] = "{\"message\":\"a\\ud83d\\ude00b\",\"message\":\"c\",\"d\":xyz1}";
    static const char seen[] = "message\xFE"
                               "a\U0001F600b\xFF"
                               "message\xFE"
                               "c\xFF"
                               "d\xFE\xFDxyz1\xFF\xFF";
    CLEANUP(bp_view_release) bp_view view = {.text = NULL};
    use(NULL);
    const bp_view_how how = {.mode = BP_CODES_SHOWN, .keywords = set->keywords};
    cr_assert(zero(int, bp_view_json(&view, json, sizeof json - 1, &how)));
    cr_assert(eq(sz, view.size, sizeof seen - 1));
    cr_assert(zero(int, memcmp(view.text, seen, view.size)));
    for (size_t at = 0; at < view.size; at++) {
        cr_expect(view.text[at] >= 0x80 || json[bp_view_raw(&view, at)] == (char)view.text[at],
                  "%zu", at);
    }
    cr_expect(eq(sz, view.message_from, 8));
    cr_expect(eq(sz, view.message_to, 14)); /* of the first one */
}

/* Longer than what is searched at a time, in lines or in one. */
Test(redact, replaces_all_below_a_key_however_much_it_is) {
    static const char *const between[] = {",\n  ", ","};
    for (size_t i = 0; i < 2; i++) {
        BUFFER(text, 1 << 24);
        use(NULL);
        (void)bp_buffer_append_text(&text, "{\"passwords\": {\"list\": [\"hunter\"");
        for (unsigned n = 0; n < 60000; n++) {
            (void)bp_buffer_printf(&text, "%s{\"of\":[\"hunter%u\"]}", between[i], n);
        }
        (void)bp_buffer_append_text(&text, "]},\"after\":[\"rest\"]}");
        const char *result = run(BP_REDACT_JSON, bp_buffer_text(&text));
        cr_expect(strstr(result, "hunter") == NULL, "%.200s", strstr(result, "hunter"));
        cr_expect(strstr(result, "]},\"after\":[\"rest\"]}") != NULL);
        cr_expect(eq(u64, count_of("password"), 60001));
        drop();
    }
}

static void append_record(bp_buffer *text, unsigned tid, const char *message) {
    (void)bp_buffer_printf(text,
                           "{\"seq\":1,\"level\":\"info\",\"channel\":\"ui\",\"tid\":%u,"
                           "\"thread\":\"t\",\"message\":\"%s\"}\n",
                           tid, message);
}

Test(redact, follows_a_key_over_the_records_of_its_thread) {
    BUFFER(text, 1 << 20);
    use(NULL);
    append_record(&text, 1, "-----BEGIN EC PRIVATE KEY-----");
    append_record(&text, 2, "another thread goes on with words");
    append_record(&text, 1, "MHcCAQEEIIrYSSNQFaA2Hwf583QmKbyavkgoftpCYFpfdKSecret");
    append_record(&text, 2, "verylongwordofanotherthread");
    append_record(&text, 1, "AB==");
    append_record(&text, 1, "-----END EC PRIVATE KEY-----");
    append_record(&text, 1, "afterwardsallisasbefore");
    const char *result = run(BP_REDACT_JSON_LINES, bp_buffer_text(&text));
    cr_expect(strstr(result, "MHcC") == NULL && strstr(result, "AB==") == NULL, "%s", result);
    cr_expect(strstr(result, "goes on with words") != NULL &&
                  strstr(result, "verylongwordofanotherthread") != NULL &&
                  strstr(result, "afterwardsallisasbefore") != NULL,
              "%s", result);
}

Test(redact, passes_on_what_is_no_text) {
    static const char bytes[] = "\0password=hunter2\xFF";
    use(NULL);
    redacted(redactor, BP_REDACT_TEXT, bytes, sizeof bytes, 5, &out);
    cr_expect(out.size == sizeof bytes && memcmp(out.data, bytes, sizeof bytes) == 0);
    cr_expect(not(bp_redactor_is_searched(redactor)));
    bp_buffer_release(&out);
    redacted(redactor, bp_redact_form_of("a.PNG"), "password=hunter2", 16, 5, &out);
    cr_expect(eq(str, out.data, "password=hunter2"));
}

Test(redact, takes_bytes_that_are_not_utf8) {
    use(NULL);
    cr_expect(eq(str,
                 run_plain(BP_REDACT_TEXT, "\xC3(\xFE\xFFpassword=a\x80"
                                           "b\xFF\xF0 x"),
                 "\xC3(\xFE\xFFpassword=«»\xFF\xF0 x"));
    (void)run(BP_REDACT_JSON, "{\"a\":\"\xFE\xFF\xFD\",\"password\":\"\xFFz1\"}");
    cr_expect(strstr(out.data, "z1") == NULL, "%s", out.data);
}

/* A line of `byte_count` bytes with a secret at each multiple of `step`. */
static void check_long(bp_redact_form form, const char *begin, const char *end, size_t byte_count,
                       size_t step, size_t piece_bytes) {
    static const char secret[] = " password=hunter2hunter2hunter2 ";
    char *line = malloc(byte_count + 100);
    cr_assert(line != NULL);
    memset(line, 'x', byte_count);
    memcpy(line, begin, strlen(begin));
    for (size_t at = step; at + 100 < byte_count; at += step) {
        memcpy(line + at, secret, sizeof secret - 1);
    }
    memcpy(line + byte_count, end, strlen(end) + 1);
    bp_buffer_release(&out);
    redacted(redactor, form, line, strlen(line), piece_bytes, &out);
    cr_expect(strstr(out.data, "hunter2") == NULL);
    cr_expect(eq(u64, count_of("password"), (byte_count - 101) / step));
    cr_expect(strcmp(out.data + out.size - strlen(end), end) == 0, "%zu, %d: %s", step, (int)form,
              out.data + out.size - 50);
    free(line);
}

Test(redact, searches_long_lines_in_pieces) {
    use(NULL);
    for (size_t step = 65521; step < 65560; step += 3) {
        check_long(BP_REDACT_TEXT, "", "\n", 3000000, step, 65536);
        check_long(BP_REDACT_JSON, "{\"m\":\"", "\"}\n", 3000000, step, 40000);
        check_long(BP_REDACT_JSON_LINES, "{\"m\":\"", "\",\"password\":1}\n", 3000000, step, 70000);
    }
}

/* Appends the parts of a text, which '|' separates: "ab*3" is ababab. */
static void append_parts(bp_buffer *text, const char *part) {
    for (size_t length; *part != '\0'; part += part[length] == '|' ? length + 1 : length) {
        length = strcspn(part, "|");
        size_t byte_count = strcspn(part, "|*");
        long count = byte_count < length ? strtol(part + byte_count + 1, NULL, 10) : 1;
        for (; count > 0; count--) {
            (void)bp_buffer_append(text, part, byte_count);
        }
    }
}

/* Texts at the limits of what is held, of what a match may reach, and of what is followed. */
#define TICKET "[ticket]\nkeyword = t-\nlines = 1\npattern = t-\\n +([0-9]+)\n"
static const struct {
    bp_redact_form form;
    const char *rules, *from, *to;
} limits[] = {
    /* Where a piece ends: between matches, characters, lines of a document, and a key and its
     * value. */
    {BP_REDACT_TEXT, "[long]\npattern = S(a{3000})E\n", "x*259999|S|a*3000|E|x*57000",
     "x*259999|S«»E|x*57000"},
    {BP_REDACT_TEXT,
     "[long]\nkeyword = ka\npattern = ka(x{3000})E\n[earlier]\npattern = S([a-z]{3000})E\n",
     "-*260000|S|y*998|ka|x*2000|E|-*9000", "-*260000|S«»E|-*9000"},
    {BP_REDACT_TEXT,
     "[long]\nkeyword = ka\npattern = ka.{2000}aaaaa(b{20}c{20})\n"
     "[short]\nkeyword = aaaaa\npattern = (a{5}b{20})\n",
     "x*260000|ka|.*2000|aaaaa|b*20|c*20|x*9000", "x*260000|ka|.*2000|«»|x*9000"},
    {BP_REDACT_TEXT, "[half]\npattern = ([\\x80-\\xBF]zz)\n", "x*261119|ézz|x*4000",
     "x*261119|«»|x*4000"},
    {BP_REDACT_JSON, "[word]\npattern = \\b(ww+)\n", "{\"a\":[|\"words\",\n*6500|\"x|w*12000|\"]}",
     "{\"a\":[|\"words\",\n*6500|\"x|w*12000|\"]}"},
    {BP_REDACT_JSON, NULL,
     "{\"a\":[|\"words\",\n*6500|\"\"],\n\"password\":\n[|true,*2500|\"hunter2\"]}",
     "{\"a\":[|\"words\",\n*6500|\"\"],\n\"password\":\n[|true,*2500|\"«»\"]}"},
    /* Whether the next record begins in a string. */
    {BP_REDACT_JSON_LINES, NULL, "{\"m\":\"|x*300000|\"}\n{\"a\":{\"password\":[\"b c\"]}}\n",
     "{\"m\":\"|x*300000|\"}\n{\"a\":{\"password\":[\"«»\"]}}\n"},
    {BP_REDACT_JSON_LINES, NULL, "{\"m\":\"a\\\n{\"password\":[\"b c\"]}\n",
     "{\"m\":\"a\\\n{\"password\":[\"«»\"]}\n"},
    /* The thread of a record that is cut. */
    {BP_REDACT_JSON_LINES, NULL,
     "{\"level\":\"info\",\"tid\":7,\"message\":\"|x*255000|" KEY_BEGIN
     "|\\nQUJDREVGR0hJSktM*900|\"}\n",
     "{\"level\":\"info\",\"tid\":7,\"message\":\"|x*255000|«»|\\n«»*900|\"}\n"},
    /* Lines below a name: up to 8 KiB, and those of a name in them. */
    {BP_REDACT_TEXT, TICKET, "t-\n t-\n 5678\n", "t-\n t-\n «»\n"},
    {BP_REDACT_TEXT, TICKET, "t-\n| *8000|5678\n", "t-\n| *8000|«»\n"},
    {BP_REDACT_TEXT, TICKET, "t-\n| *9000|5678\n", "t-\n| *9000|5678\n"},
    /* A key is followed over sixteen other lines, and for a thousand. */
    {BP_REDACT_TEXT, NULL, KEY_BEGIN "|\nan other one*16|\nMIIEvQIBADANBgkqhkiG\n",
     "«»|\nan other one*16|\n«»\n"},
    {BP_REDACT_TEXT, NULL, KEY_BEGIN "|\nan other one*17|\nMIIEvQIBADANBgkqhkiG\n",
     "«»|\nan other one*17|\nMIIEvQIBADANBgkqhkiG\n"},
    {BP_REDACT_TEXT, NULL, KEY_BEGIN "|\nMIIEvQIBADANBgkqhkiG*1002|\n",
     "«»|\n«»*1001|\nMIIEvQIBADANBgkqhkiG\n"},
};

Test(redact, searches_up_to_its_limits) {
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        BUFFER(from, 1 << 20);
        BUFFER(to, 1 << 20);
        append_parts(&from, limits[i].from);
        append_parts(&to, limits[i].to);
        use(limits[i].rules);
        const char *left = run_plain(limits[i].form, bp_buffer_text(&from));
        cr_expect(strcmp(left, bp_buffer_text(&to)) == 0, "row %zu: %.60s ... %s", i, left,
                  left + (strlen(left) > 200 ? strlen(left) - 200 : 0));
        drop();
    }
}

Test(redact, keeps_of_a_line_in_parts_what_a_match_began_with) {
    static char text[5000];
    use("[long]\nkeyword = sa\npattern = S(a{3000})E\n");
    (void)snprintf(text, sizeof text,
                   "{\"level\":\"info\",\"tid\":7,\"message\":\"S%02000d\",\"unfinished\":true}\n"
                   "{\"level\":\"info\",\"tid\":7,\"message\":\"%01000dE\",\"continues\":true}\n",
                   0, 0);
    for (char *digit = strchr(text, '0'); digit != NULL; digit = strchr(digit, '0')) {
        *digit = 'a';
    }
    cr_expect(eq(ptr, strstr(run_plain(BP_REDACT_JSON_LINES, text), "aaa"), NULL));
}

Test(redact, drops_the_rest_of_a_secret_that_has_no_end) {
    enum { size = 3000000 };
    CLEANUP(free_memory) char *line = malloc(size + 100);
    cr_assert(line != NULL);
    use(NULL);
    memset(line, 'x', size);
    memcpy(line, "password=1", 10);
    memcpy(line + size, "\nnext", 6);
    (void)run(BP_REDACT_TEXT, line);
    redacted_without_tags(out.data);
#ifdef BP_WITHOUT_PCRE2_JIT
    /* The interpreter reaches its limit, and the line goes whole. */
    cr_expect(strcmp(out.data, "«»\nnext") == 0, "%.99s", out.data);
#else
    cr_expect(strcmp(out.data, "password=«»\nnext") == 0, "%.99s", out.data);
#endif
    memcpy(line, "{\"password\":\"1", 14);
    memcpy(line + size, "\",\"b\":1}", 9);
    (void)run(BP_REDACT_JSON, line);
    redacted_without_tags(out.data);
    cr_expect(strcmp(out.data, "{\"password\":\"«»\",\"b\":1}") == 0, "%.99s", out.data);
    memcpy(line + size - 40, "\\\"rest-of-it", 12); /* a quote that does not end the string */
    (void)run(BP_REDACT_JSON, line);
    redacted_without_tags(out.data);
    cr_expect(strcmp(out.data, "{\"password\":\"«»\",\"b\":1}") == 0, "%.99s", out.data);
}

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

Test(redact, replaces_what_a_pattern_cannot_decide) {
    BUFFER(text, 1 << 24);
    use("[slow]\npattern = (?:a+)+(?:a+)+b\n");
    for (unsigned i = 0; i < 20000; i++) {
        (void)bp_buffer_append_text(&text,
                                    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac b\n");
    }
    double began = seconds();
    (void)run(BP_REDACT_TEXT, bp_buffer_text(&text));
    cr_expect(seconds() - began < 20, "%.1f s", seconds() - began);
    cr_expect(strstr(out.data, "aaaa") == NULL);
    cr_expect(eq(u64, count_of("slow"), 20000));
}

Test(redact, redacts_a_name_without_touching_the_open_entry) {
    BUFFER(name, 1000);
    use(NULL);
    cr_assert(eq(int, bp_redactor_text(redactor, "gap:password=hunter2", 20, &name), BUGPACK_OK));
    redacted_without_tags(name.data);
    cr_expect(eq(str, name.data, "gap:password=«»"));
}

Test(redact, refuses_rules_that_are_wrong_and_says_where) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"pattern = a", "f, line 1: expected [id]"},
        {"[A]\n", "f, line 1: an id has up to 31 lower case letters, digits and '-'"},
        {"[a\n", "f, line 1: expected [id]"},
        {"[a]\nfoo = 1\n", "f, line 2: this key is not known"},
        {"[a]\npattern = x\n\nnonsense\n", "f, line 4: expected \"key = value\""},
        {"[a]\n[b]\n", "f, line 2: the rule above has no pattern"},
        {"[a]\npattern = %{none}\n", "f, line 2: %{...} names nothing that is defined above"},
        {"group A-B = x\n", "f, line 1: a group is called as a rule is"},
        {"[a]\nlines = 17\n", "f, line 2: \"lines\" is 1 to 16"},
        {"[a]\npattern = x\npattern = y\n", "f, line 3: a rule has one pattern"},
        {"use = nothing", "f, line 1: \"use\" names a rule that is not there"},
        {"[a]\nbefore = 1000\n", "f, line 2: \"before\" is 1 to 256"},
        {"[a]\npattern = (x\n", "redaction rule \"a\", at byte 2: missing closing parenthesis"},
        {"[a]\nkeyword = [x\npattern = x\n",
         "a keyword is too short, too long or not understood: [x"},
        {"[a]\nkeyword = x\npattern = x\n",
         "a keyword is too short, too long or not understood: x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_rule_list list = {.rules = NULL};
        bp_rule_set *none = NULL;
        bugpack_status status =
            bp_rule_list_parse(&list, "f", cases[i].text, strlen(cases[i].text), &failure);
        if (status == BUGPACK_OK) {
            status = bp_rule_set_new(&list, &none, &failure);
        }
        cr_expect(eq(int, status, BUGPACK_ERR_INVALID));
        cr_expect(eq(str, failure.message, cases[i].message));
        bp_rule_list_release(&list);
        cr_expect(none == NULL);
    }
}
