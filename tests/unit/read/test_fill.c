/*
 * Patterns with facts in them.
 */
#include "base/buffer.h"
#include "print/fill.h"
#include "print/html_text.h"
#include "unit/unit.h"

static void append(void *context, const char *text, size_t byte_count, bool is_fact) {
    (void)bp_buffer_append(context, text, byte_count);
}

/* Facts are put into brackets. */
static void mark(void *context, const char *text, size_t byte_count, bool is_fact) {
    (void)bp_buffer_append_text(context, is_fact ? "<" : "");
    (void)bp_buffer_append(context, text, byte_count);
    (void)bp_buffer_append_text(context, is_fact ? ">" : "");
}

/* The line; NULL where something is not known. */
static const char *fill(const char *pattern, bp_fill_taker *take) {
    static const char facts_text[] =
        "{\"name\": \"net\", \"cpu\": 12.345, \"count\": 1, \"rss_kb\": 1536, \"ms\": 2500,"
        "\"ns\": 1500000000, \"set\": true, \"unset\": false, \"zero\": 0, \"share\": 0.425001, "
        "\"inner\": {\"a\": "
        "\"b\"},"
        "\"list\": [{\"a\": \"first\"}, {\"a\": \"second\"}]}";
    static char line[256];
    bp_json_tree *facts = NULL;
    cr_assert(bp_json_tree_read(facts_text, strlen(facts_text), &facts, NULL) == BUGPACK_OK);
    BUFFER(out, sizeof line - 1);
    bool is_known = bp_fill(pattern, facts, take, &out);
    (void)memcpy(line, bp_buffer_text(&out), out.size + 1);
    bp_json_tree_free(facts);
    return is_known ? line : NULL;
}

Test(fill, prints_each_unit) {
    static const struct {
        const char *pattern, *line;
    } rows[] = {{"no field", "no field"},
                {"{name}.", "net."},
                {"[{name:5s}][{name:-5s}][{name:2s}]", "[  net][net  ][net]"},
                {"{cpu:.1f} {cpu:6.1f}|{count:4u}", "12.3   12.3|   1"},
                {"{rss_kb:k} {rss_kb:.1m} {ms:.2t} {ns:.1n}", "1.5 MiB 1.5 2.50 1.5"},
                {"{share:.0h} %", "43 %"},
                {"{ms:b} {ms:K} {ms:.0c} {cpu:.0c}", "2.4 KiB 2 100 12"},
                {"thread{count:p} thread{zero:p}", "thread threads"},
                {"{inner.a} {list.a}", "b first"},
                {"{ms:.0f s|?} {gone:.0f s|?} {gone|}.", "2500 s ? ."}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect(eq(str, fill(rows[i].pattern, append), rows[i].line));
    }
}

Test(fill, leaves_out_a_group_or_the_line_where_something_is_not_known) {
    static const struct {
        const char *pattern, *line;
    } rows[] = {{"a{[, {name}]}{[, {gone}]}{[, {name} {gone|-}]}", "a, net, net -"},
                {"{[{set:!}yes]}{[{unset:!}no]}{[{gone:!}no]}{[{count:+}1]}{[{zero:+}no]}", "yes1"},
                {"{[{list:*}yes]}{[{inner:*}yes]}{[{gone:*}no]}{[{name:*}no]}", "yesyes"},
                {"{[{gone:~}yes]}{[{unset:~}no]}{[{name:~}no]}", "yes"},
                {"{[{name:f}]}{[{cpu}]}", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect(eq(str, fill(rows[i].pattern, append), rows[i].line));
    }
    cr_expect(eq(ptr, fill("{name} {gone}", append), NULL));
    cr_expect(eq(ptr, fill("{zero:+}{zero:u} more", append), NULL));
}

Test(fill, says_what_is_from_the_report) {
    cr_expect(eq(str, fill("<p>{name:4s} {gone|none}</p>", mark), "<p> <net> none</p>"));
}

static bugpack_status take_page(void *context, const void *bytes, size_t byte_count) {
    return bp_buffer_append(context, bytes, byte_count);
}

Test(html_text, escapes_what_could_end_a_text_or_an_attribute) {
    static const char text[] = "a&b<c>d\"e'f\x01\xff\n\t";
    bp_html html;
    BUFFER(out, 1024);
    bp_html_init(&html, take_page, &out);
    cr_assert(zero(int, bp_html_text(&html, text, strlen(text))));
    cr_assert(zero(int, bp_html_finish(&html)));
    cr_expect(eq(str, bp_buffer_text(&out), "a&#38;b&#60;c&#62;d&#34;e&#39;f\\x01\\xff\n\t"));
}
