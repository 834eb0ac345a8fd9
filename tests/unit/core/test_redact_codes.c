/*
 * What stands between the characters of a text and is not read: colours in all places of every
 * rule's example, and characters that are written in another way.
 */
#include <ctype.h>

#include "unit/redacted.h"
#include "unit/unit.h"

static bp_buffer out;

static void teardown(void) {
    redacted_teardown();
    bp_buffer_release(&out);
}

TestSuite(redact_codes, .init = redacted_setup, .fini = teardown);

static char *run(bp_redact_form form, bool is_off, const char *text) {
    bp_buffer_release(&out);
    redacted(redactors[is_off], form, text, strlen(text), 1000, &out);
    redacted_without_tags(out.data);
    return out.data;
}

/* How programs begin and end a colour. */
static const struct {
    const char *begin, *end;
} colours[] = {
    {"\033[36m", "\033[0m"},                  /* most */
    {"\033[01;31m\033[K", "\033[m\033[K"},    /* grep */
    {"\033[38;2;255;100;0m", "\033(B\033[m"}, /* tput sgr0 */
    {"\x9B"
     "1m",
     "\xC2\x9B"
     "0m"},                                     /* CSI as one byte, and as a character of UTF-8 */
    {"\033]8;;http://h/x\033\\", "\033]8;;\a"}, /* a link */
    {"\\x1b[33m", "\\x1B[0m"},                  /* as logs print them */
    {"\\033[1;33m", "\\033[0;39m"},
    {"\\e[33m", "\\e[0m"},
    {"^[[33m", "^[[0m"},
    {"#033[33m", "#033[0m"},
    {"\\u001b[33m", "\\\\u001b[0m"},
    {"\\u{1b}[33m", "\\x1b(B\\x1b[m"},
};

enum { link_colour = 4, colour_count = sizeof colours / sizeof colours[0] };

/* Which parts of a text get a colour. */
enum colouring { WORDS, SEPARATORS, EACH, LETTERS, ALL, HALF, colouring_count };

static bool is_coloured(enum colouring colouring, const char *text, size_t at) {
    bool is_word = isalnum((unsigned char)text[at]) || text[at] == '_';
    switch (colouring) {
    case WORDS:
        return is_word;
    case SEPARATORS:
        return !is_word;
    case LETTERS:
        return isalpha((unsigned char)text[at]);
    case HALF:
        return at < strlen(text) / 2;
    default:
        return true;
    }
}

/* Colours a text, but for ends of lines; each character alone with EACH. */
static void append_coloured(bp_buffer *to, enum colouring colouring, size_t colour,
                            const char *text) {
    bool is_on = false;
    for (size_t i = 0;; i++) {
        bool is_end = text[i] == '\0' || text[i] == '\n';
        bool wants = !is_end && is_coloured(colouring, text, i);
        if (is_on && (!wants || colouring == EACH)) {
            (void)bp_buffer_append_text(to, colours[colour].end);
            is_on = false;
        }
        if (text[i] == '\0') {
            return;
        }
        if (wants && !is_on) {
            (void)bp_buffer_append_text(to, colours[colour].begin);
            is_on = true;
        }
        (void)bp_buffer_append_char(to, text[i]);
    }
}

/* Takes what was added out again. */
static void remove_all(char *text, const char *what) {
    for (char *at = text; (at = strstr(at, what)) != NULL;) {
        memmove(at, at + strlen(what), strlen(at + strlen(what)) + 1);
    }
}

static void append_json(bp_buffer *to, const char *text) {
    (void)bp_buffer_append_text(to, "{\"level\":\"info\",\"message\":\"");
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20) {
            (void)bp_buffer_printf(to, "\\u%04x", byte);
        } else {
            (void)bp_buffer_printf(to, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
        }
    }
    (void)bp_buffer_append_text(to, "\"}\n");
}

static void check_coloured(const bp_rule *rule, bool is_json, enum colouring colouring,
                           size_t colour, const char *plain, const char *expected) {
    bp_buffer coloured, text, wanted, begin, end;
    bp_buffer *const buffers[] = {&coloured, &text, &wanted, &begin, &end};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        bp_buffer_init(buffers[i], 1 << 20);
    }
    append_coloured(&coloured, colouring, colour, plain);
    bp_redact_form form = is_json ? BP_REDACT_JSON_LINES : BP_REDACT_TEXT;
    if (is_json) {
        append_json(&text, coloured.data);
        append_json(&wanted, expected);
        append_json(&begin, colours[colour].begin);
        append_json(&end, colours[colour].end);
    } else {
        (void)bp_buffer_append_text(&text, coloured.data);
        (void)bp_buffer_append_text(&wanted, expected);
    }
    char *result = run(form, rule->is_off, text.data);
    if (is_json) { /* as JSON has them, without what is around */
        enum { head = sizeof "{\"level\":\"info\",\"message\":\"" - 1, tail = 3 };
        begin.data[begin.size - tail] = end.data[end.size - tail] = '\0';
        remove_all(result, begin.data + head);
        remove_all(result, end.data + head);
    } else {
        remove_all(result, colours[colour].begin);
        remove_all(result, colours[colour].end);
    }
    cr_expect(strcmp(result, wanted.data) == 0, "%s, colouring %d, colour %zu, %s: %s\n  left %s",
              rule->id, (int)colouring, colour, is_json ? "JSON" : "text", plain, result);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        bp_buffer_release(buffers[i]);
    }
}

static size_t example_count;

static void check_example(const bp_rule *rule, bool is_match, const char *text) {
    char plain[1024], expected[1024];
    if (!is_match || rule->is_of_traffic) {
        return;
    }
    redacted_example(text, plain, expected);
    for (int colouring = 0; colouring < colouring_count; colouring++) {
        for (size_t colour = 0; colour < colour_count; colour++) {
            bool is_word_cut = colour == link_colour && colouring == HALF;
            bool is_ambiguous = strchr(text, '\\') != NULL && colours[colour].begin[0] == '\\';
            if (is_word_cut || is_ambiguous) {
                continue;
            }
            check_coloured(rule, false, colouring, colour, plain, expected);
            check_coloured(rule, true, colouring, colour, plain, expected);
        }
    }
    example_count++;
}

Test(redact_codes, find_every_example_in_every_colouring, .timeout = 600) {
    (void)redacted_each_example(check_example);
    cr_expect(example_count >= 120, "%zu", example_count);
}

/* What programs print, and what must be left of it: the colours around, too. */
static const struct {
    const char *program, *from, *to;
} lines[] = {
    {"shell", "\033[36mpassword\033[0m=\033[33mS3cr3tPw9\033[0m\n",
     "\033[36mpassword\033[0m=\033[33m«»\033[0m\n"},
    {"Node", "{ user: \033[32m'bob'\033[39m, password: \033[32m'S3cr3tPw9'\033[39m }",
     "{ user: \033[32m'bob'\033[39m, password: \033[32m'«»'\033[39m }"},
    {"logrus",
     "\033[36mINFO\033[0m[0001] login   \033[36mpassword\033[0m=S3cr3tPw9 \033[36mu\033[0m=a",
     "\033[36mINFO\033[0m[0001] login   \033[36mpassword\033[0m=«» \033[36mu\033[0m=a"},
    {"tracing",
     "\033[32m INFO\033[0m \033[3mtoken\033[0m\033[2m=\033[0m\"8c1f0a77b2\" "
     "\033[3mn\033[0m\033[2m=\033[0m1",
     "\033[32m INFO\033[0m \033[3mtoken\033[0m\033[2m=\033[0m\"«»\" "
     "\033[3mn\033[0m\033[2m=\033[0m1"},
    {"structlog",
     "[\033[32m\033[1minfo\033[0m] \033[1mlogin\033[0m \033[36mpassword\033[0m="
     "\033[35mS3cr3tPw9\033[0m",
     "[\033[32m\033[1minfo\033[0m] \033[1mlogin\033[0m \033[36mpassword\033[0m=\033[35m«»\033[0m"},
    {"jq",
     "\033[1;39m{\033[0m\033[34;1m\"password\"\033[0m\033[1;39m:\033[0m\033[0;32m\"S3cr3tPw9\""
     "\033[0m\033[1;39m}\033[0m",
     "\033[1;39m{\033[0m\033[34;1m\"password\"\033[0m\033[1;39m:\033[0m\033[0;32m\"«»\"\033[0m"
     "\033[1;39m}\033[0m"},
    {"jq, below a key",
     "\033[34;1m\"password\"\033[0m\033[1;39m:\033[0m\033[1;39m[\033[0;32m\"a1\""
     "\033[0m\033[1;39m,\033[0;32m\"b2\"\033[0m\033[1;39m]\033[0m",
     "\033[34;1m\"password\"\033[0m\033[1;39m:\033[0m\033[1;39m[\033[0;32m\"«»\""
     "\033[0m\033[1;39m,\033[0;32m\"«»\"\033[0m\033[1;39m]\033[0m"},
    {"zap", "\033[34mINFO\033[0m\tmain\t{\"token\": \"8c1f0a77b2\"}",
     "\033[34mINFO\033[0m\tmain\t{\"token\": \"«»\"}"},
    {"a key", "\033[33mAKIAIOSFODNN7EXAMPLE\033[0m", "\033[33m«»\033[0m"},
    {"a part of a value", "password=S3c\033[1mr3t\033[0mPw9 next", "password=«» next"},
    {"a token behind a letter", "x\033[36mhf_abcdefghijABCDEFGHIJabcdefghijABCD\033[0m y",
     "x\033[36m«»\033[0m y"},
    {"grep, behind a letter", "x\033[01;31m\033[KAKIAIOSFODNN7EXAMPLE\033[m\033[K=1",
     "x\033[01;31m\033[K«»\033[m\033[K=1"},
    {"a token behind a letter, printed", "x\\e[36mhf_abcdefghijABCDEFGHIJabcdefghijABCD\\e[0m",
     "x\\e[36m«»\\e[0m"},
    {"a token behind a letter, encoded", "x%1B[36mAKIAIOSFODNN7EXAMPLE%1B[0m y",
     "x%1B[36m«»%1B[0m y"},
    {"a part of a word", "my\033[36mpassword\033[0mless login: it\033[1mpass\033[0med 12",
     "my\033[36mpassword\033[0mless login: it\033[1mpass\033[0med 12"},
    {"rsyslog", "#033[36mpassword#033[0m=#033[33mS3cr3tPw9#033[0m",
     "#033[36mpassword#033[0m=#033[33m«»#033[0m"},
    {"a title", "\033]0;password=S3cr3tPw9\a$ ls", "\033]0;password=«»\a$ ls"},
    {"a link", "\033]8;;https://bob:S3cr3tPw9@h/x\033\\password\033]8;;\033\\=S3cr3tPw9 x",
     "\033]8;;https://bob:«»@h/x\033\\password\033]8;;\033\\=«» x"},
    {"a link, printed", "\\e]8;;https://bob:S3cr3tPw9@h/x\\e\\\\password\\e]8;;\\e\\\\=S3cr3tPw9 x",
     "\\e]8;;https://bob:«»@h/x\\e\\\\password\\e]8;;\\e\\\\=«» x"},
    {"man", "p\bpa\bas\bss\bsw\bwo\bor\brd\bd=S\bS3\b3cr3tPw9 x",
     "p\bpa\bas\bss\bsw\bwo\bor\brd\bd=«» x"},
    {"a pattern", "grep '^[[:alpha:]]password=S3cr3tPw9' x", "grep '^[[:alpha:]]password=«»' x"},
    {"no sequence", "\033[1;2\xC3\xA4 password=S3cr3tPw9 \033",
     "\033[1;2\xC3\xA4 password=«» \033"},
    {"UTF-8", "\xD0\x9B password=S3cr3tPw9 \xC5\x9Bm", "\xD0\x9B password=«» \xC5\x9Bm"},
};

Test(redact_codes, find_what_programs_print_and_keep_their_colours) {
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char *result = run(BP_REDACT_TEXT, false, lines[i].from);
        cr_expect(strcmp(result, lines[i].to) == 0, "%s: %s", lines[i].program, result);
    }
}

Test(redact_codes, find_coloured_json) {
    cr_expect(
        eq(str,
           run(BP_REDACT_JSON, false,
               "\033[1;39m{\n  \033[0m\033[34;1m\"password\"\033[0m\033[1;39m: \033[0m"
               "\033[0;32m\"S3cr3tPw9\"\033[0m,\n\"token\" \033[0m: [ \033[1m\"8c1f0a77b2\"]}"),
           "\033[1;39m{\n  \033[0m\033[34;1m\"password\"\033[0m\033[1;39m: \033[0m"
           "\033[0;32m\"«»\"\033[0m,\n\"token\" \033[0m: [ \033[1m\"«»\"]}"));
}

/* Characters that are written in another way. */
static const struct {
    const char *from, *to;
} written[] = {
    {"GET /?u=1%26password%3DS3cr3tPw9", "GET /?u=1%26password%3D«»"},
    {"to=https%3A%2F%2Fbob%3AS3cr3tPw9%40h%2F", "to=https%3A%2F%2Fbob%3A«»%40h%2F"},
    {"x%3DAKIAIOSFODNN7EXAMPLE", "x%3D«»"},
    {"token%3Dhf_abcdefghijABCDEFGHIJabcdefghijABCD", "token%3D«»"},
    {"password%253DS3cr3tPw9", "password%253D«»"},
    {"%7B%22password%22%3A%22S3cr3tPw9%22%7D", "%7B%22password%22%3A%22«»%22%7D"},
    {"%1B%5B36mpassword%1B%5B0m=S3cr3tPw9", "%1B%5B36mpassword%1B%5B0m=«»"},
    {"{&quot;password&quot;:&quot;S3cr3tPw9&quot;}", "{&quot;password&quot;:&quot;«»&quot;}"},
    {"{&#34;password&#x22;:&#034;S3cr3tPw9&#34;}", "{&#34;password&#x22;:&#034;«»&#34;}"},
    {"{&amp;quot;password&amp;quot;:&amp;quot;S3cr3tPw9&amp;quot;}",
     "{&amp;quot;password&amp;quot;:&amp;quot;«»&amp;quot;}"},
    {"/m?a=1&amp;key=b3Zlcmxvb2s1 x", "/m?a=1&amp;key=«» x"},
    {"&lt;password&gt;S3cr3tPw9&lt;/password&gt;", "&lt;password&gt;«»&lt;/password&gt;"},
    {"password\\\\x3dS3cr3tPw9", "password\\\\x3d«»"},
    {"password\\\\u{3d}S3cr3tPw9 x", "password\\\\u{3d}«» x"},
    {"password\\\\075S3cr3tPw9 x", "password\\\\075«» x"},
    {"{\\\\x22password\\\\x22:\\\\x22S3cr3tPw9\\\\x22}",
     "{\\\\x22password\\\\x22:\\\\x22«»\\\\x22}"},
    /* and what is a part of a value stays one */
    {"?password=S3cr%26et%20Pw9%3Dx&b=1", "?password=«»&b=1"},
    {"100%25 of 5%2 &amp; &#9999999; %zz", "100%25 of 5%2 &amp; &#9999999; %zz"},
    {"C:\\\\x64\\\\password\\\\099 \\\\x3", "C:\\\\x64\\\\password\\\\099 \\\\x3"},
};

Test(redact_codes, decode_what_is_written_in_another_way) {
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++) {
        char json[2][256];
        cr_expect(eq(str, run(BP_REDACT_TEXT, false, written[i].from), written[i].to));
        (void)snprintf(json[0], sizeof json[0], "{\"m\":\"%s\"}", written[i].from);
        (void)snprintf(json[1], sizeof json[1], "{\"m\":\"%s\"}", written[i].to);
        cr_expect(eq(str, run(BP_REDACT_JSON_LINES, false, json[0]), json[1]));
    }
}
