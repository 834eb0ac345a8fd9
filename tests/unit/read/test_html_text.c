/*
 * What the text of a page becomes, and a picture that comes in pieces.
 */
#include "print/html_text.h"
#include "unit/unit.h"

static bp_buffer page;
static bp_html html;

static void set_up(void) {
    bp_buffer_init(&page, 1 << 20);
    bp_html_init(&html, bp_buffer_sink, &page);
}

static void tear_down(void) {
    bp_buffer_release(&page);
}

TestSuite(html_text, .init = set_up, .fini = tear_down);

static void expect_page(const char *expected) {
    cr_expect(eq(int, bp_html_finish(&html), BUGPACK_OK));
    cr_expect(eq(str, (char *)bp_buffer_text(&page), (char *)expected));
    tear_down();
    set_up();
}

Test(html_text, escapes_what_a_browser_would_obey_and_shows_what_it_could_not) {
    static const char *const rows[][2] = {{"a & b &lt;", "a &#38; b &#38;lt;"},
                                          {"<b>", "&#60;b&#62;"},
                                          {"' onload=\"", "&#39; onload=&#34;"},
                                          {"a\n\tb", "a\n\tb"},
                                          {"\x1b[m\r", "\\x1b[m\\x0d"},
                                          {"\xc3\xa9 \xff", "\xc3\xa9 \\xff"},
                                          {"\xe2\x80\xae", "\\u202e"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bp_html_print(&html, "%s", rows[i][0]);
        expect_page(rows[i][1]);
    }
}

Test(html_text, a_picture_is_the_same_in_pieces_of_any_size) {
    static const char bytes[] = "0123456789ab"; /* three bytes are four letters */
    for (size_t piece = 1; piece < sizeof bytes; piece++) {
        bp_html_picture picture = {.html = &html};
        base64_encode_init(&picture.base64);
        for (size_t at = 0; at < sizeof bytes - 1; at += piece) {
            size_t left = sizeof bytes - 1 - at;
            cr_assert(eq(int,
                         bp_html_picture_write(&picture, bytes + at, left < piece ? left : piece),
                         BUGPACK_OK));
        }
        bp_html_picture_end(&picture);
        expect_page("MDEyMzQ1Njc4OWFi");
    }
}
