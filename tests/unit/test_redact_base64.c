/*
 * Secrets inside of base64, where that is asked for.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#include "unit/redacted.h"

static bp_rule_set *set;
static bp_redactor *redactor;
static bp_buffer out;

static void use(const char *rules) {
    set = redacted_set(rules);
    redactor = bp_redactor_new(set);
    cr_assert(redactor != NULL);
}

static void teardown(void) {
    bp_redactor_free(redactor);
    bp_rule_set_drop(set);
    bp_buffer_release(&out);
}

TestSuite(redact_base64, .fini = teardown);

/* RFC 4648, in lines of `width` characters, or in one for 0. */
static void append_base64(bp_buffer *to, const char *text, size_t size, bool is_url, size_t width,
                          const char *line_end) {
    const char *digits = is_url
                             ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
                             : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0, column = 0; i < size; i += 3) {
        unsigned bits = 0;
        for (size_t j = i; j < i + 3; j++) {
            bits = bits << 8 | (j < size ? (unsigned char)text[j] : 0);
        }
        for (unsigned j = 0; j < 4; j++) {
            if (width > 0 && column++ == width) {
                (void)bp_buffer_append_text(to, line_end);
                column = 1;
            }
            (void)bp_buffer_append_char(to, i + j > size ? '=' : digits[bits >> (18 - 6 * j) & 63]);
        }
    }
}

/* Whether the characters of a secret are replaced in a text that has it in base64. */
static bool is_found(bp_redact_form form, const char *before, const char *text, const char *after,
                     bool is_url, size_t width, const char *line_end) {
    bp_buffer given;
    bp_buffer_init(&given, 1 << 24);
    (void)bp_buffer_append_text(&given, before);
    append_base64(&given, text, strlen(text), is_url, width, line_end);
    (void)bp_buffer_append_text(&given, after);
    bp_buffer_release(&out);
    redacted(redactor, form, given.data, given.size, 1000, &out);
    bool is_kept =
        out.size == given.size && (out.size == 0 || memcmp(out.data, given.data, out.size) == 0);
    bool has_tag = strstr(bp_buffer_text(&out), "REDACTED-") != NULL;
    cr_expect(is_kept != has_tag, "%s", out.data);
    bp_buffer_release(&given);
    return has_tag;
}

static const char config[] = "{\"user\":\"bob\",\"password\":\"hunter2hunter2\",\"port\":5432}";

Test(redact_base64, is_searched_where_a_rule_file_says_so) {
    use("use = base64");
    static const char *const befores[] = {"", "data: ", "data:", "/", "//", "x/y", "key=Zm9v,"};
    for (size_t i = 0; i < sizeof befores / sizeof befores[0]; i++) {
        for (unsigned is_url = 0; is_url < 2; is_url++) {
            cr_expect(is_found(BP_REDACT_TEXT, befores[i], config, "\n", is_url, 0, ""), "%s",
                      befores[i]);
            cr_expect(is_found(BP_REDACT_TEXT, befores[i], config, "", is_url, 0, ""));
        }
    }
    cr_expect(is_found(BP_REDACT_JSON, "{\"config\":\"", config, "\"}\n", false, 0, ""));
    cr_expect(is_found(BP_REDACT_JSON_LINES, "{\"message\":\"got ", config, "\"}\n", false, 0, ""));
    cr_expect(
        is_found(BP_REDACT_TEXT, "", "Cookie: SID=5ecre75ecre75ecre75ecre75ecre7", "", 0, 0, ""));
}

Test(redact_base64, is_left_alone_by_default_and_without_a_secret) {
    use(NULL);
    cr_expect(not(is_found(BP_REDACT_TEXT, "data: ", config, "\n", false, 0, "")));
    teardown();
    out = (bp_buffer){.data = NULL};
    use("use = base64");
    cr_expect(not(
        is_found(BP_REDACT_TEXT, "", "nothing that anybody hides, at some length", "", 0, 0, "")));
    cr_expect(not(is_found(BP_REDACT_TEXT, "", "", "", false, 0, "")));
}

Test(redact_base64, keeps_what_surrounds_the_secret) {
    use("use = base64");
    cr_expect(is_found(BP_REDACT_TEXT, "data: ", config, "\nnext line\n", false, 0, ""));
    /* {"user":"bob","password":" is before it, and what follows is left. */
    cr_expect(strncmp(out.data, "data: eyJ1c2VyIjoiYm9iIiwicGFzc3dvcmQiOi", 40) == 0, "%s",
              out.data);
    cr_expect(strstr(out.data, "\nnext line\n") != NULL, "%s", out.data);
}

Test(redact_base64, may_be_in_lines) {
    use("use = base64");
    static const char *const line_ends[] = {"\n", "\r\n", "\n    "};
    static const size_t widths[] = {64, 76, 60};
    char text[400];
    for (size_t from = 0; from < 120; from++) { /* over the end of a line, too */
        memset(text, '.', sizeof text);
        memcpy(text + from, "\npassword=hunter2hunter2\n", 25);
        memcpy(text + 300, "", 1);
        for (size_t i = 0; i < 9; i++) {
            cr_expect(is_found(BP_REDACT_TEXT, "key:\n", text, "\nend\n", false, widths[i % 3],
                               line_ends[i / 3]),
                      "%zu %zu", from, i);
            cr_expect(strstr(out.data, "end\n") != NULL);
        }
    }
}

Test(redact_base64, of_any_length_is_searched) {
    use("use = base64");
    enum { size = 1 << 20, step = 50000 };
    char *text = malloc(size + 1);
    bp_buffer given;
    cr_assert(text != NULL);
    memset(text, '.', size);
    text[size] = '\0';
    unsigned count = 0;
    for (size_t at = 1000; at + 100 < size; at += step + 1, count++) {
        memcpy(text + at, " password=hunter2hunter2hunter2 ", 32);
    }
    for (unsigned form = BP_REDACT_TEXT; form <= BP_REDACT_JSON_LINES; form++) {
        const bool is_json = form == BP_REDACT_JSON || form == BP_REDACT_JSON_LINES;
        bp_buffer_init(&given, 1 << 24);
        (void)bp_buffer_append_text(&given, is_json ? "{\"a\":\"" : "");
        append_base64(&given, text, size, false, 0, "");
        (void)bp_buffer_append_text(&given, is_json ? "\"}\n" : "\n");
        bp_buffer_release(&out);
        redacted(redactor, (bp_redact_form)form, given.data, given.size, 65536, &out);
        unsigned found = 0;
        for (const char *tag = out.data; (tag = strstr(tag, "REDACTED-")) != NULL; tag++) {
            found++;
        }
        cr_expect(eq(uint, found, count));
        bp_buffer_release(&given);
    }
    free(text);
}
