/*
 * What a person sees of a command's output.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitizer.h"
#include "run/flow.h"
#include "run/screen.h"

static bp_run_screen *screen;
static bp_buffer out;
static bool is_partial;
static bugpack_error error;

static void open_screen(int rows, int columns, bool is_bare) {
    cr_assert(eq(int, bp_run_screen_new(rows, columns, is_bare, &screen, &error), BUGPACK_OK));
}

static void teardown(void) {
    bp_run_screen_free(screen);
    bp_buffer_release(&out);
}

static void setup(void) {
    bp_buffer_init(&out, (size_t)16 << 20);
    bugpack_status status = bp_run_screen_new(24, 80, true, &screen, &error);
    if (status == BUGPACK_ERR_UNSUPPORTED) {
        cr_skip("%s", error.message);
    }
    bp_run_screen_free(screen);
    screen = NULL;
}

TestSuite(run_screen, .init = setup, .fini = teardown);

static void feed(const char *text) {
    bp_run_screen_feed(screen, text, strlen(text));
}

static const char *shown(void) {
    bp_buffer_clear(&out);
    cr_assert(eq(int, bp_run_screen_print(screen, &out, &is_partial, &error), BUGPACK_OK));
    return bp_buffer_text(&out);
}

Test(run_screen, shows_what_a_person_sees) {
    static const struct {
        const char *bytes, *text;
        bool is_bare;
    } cases[] = {
        {"", "", true},
        {"one\ntwo  \n\n", "one\ntwo\n", true},
        {"one\ntwo", "one\n   two\n", false},
        {"\033[1;31mred\033[0m 10%\r20%\b\b5", "25% 10%\n", true},
        {"\033[3;5Hx\033[1;1Hy", "y\n\n    x\n", true},
        {"main\033[?1049h\033[H\033[2Jalternate", "alternate\n", true},
        {"main\033[?1049h\033[Halternate\033[?1049l", "main\n", true},
        {"\033]0;a title\007text\033]8;;http://x\033\\link\033]8;;\033\\", "textlink\n", true},
        {"caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd!", "caf\xc3\xa9 \xe4\xbd\xa0\xe5\xa5\xbd!\n", true},
        {"b\x7f\x01", "b\n", true},
        {"\xff\r", "\xef\xbf\xbd\n", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_screen(24, 80, cases[i].is_bare);
        feed(cases[i].bytes);
        cr_expect(eq(str, (char *)shown(), (char *)cases[i].text), "case %zu", i);
        cr_expect(not(is_partial));
        bp_run_screen_free(screen);
        screen = NULL;
    }
}

/* Redaction searches line by line. */
Test(run_screen, prints_a_line_over_several_rows_as_one) {
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"password=S3cr3tPw9\nb", "password=S3cr3tPw9\nb\n"},
        {"x password: S3cr3tPw9 end of it", "x password: S3cr3tPw9 end of it\n"},
        {"full row10\r\nnext", "full row10next\n"}, /* may be one line */
        {"a row of 9\r\n  next", "a row of 9\n  next\n"},
        {"short\nnext", "short\nnext\n"},
        {"\033[2;1Hxy\033[1;10Hz", "         z\nxy\n"},
        {"\u2502 framed \u2502\u2502 text   \u2502",
         "\u2502 framed \u2502\n\u2502 text   \u2502\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_screen(5, 10, true);
        feed(cases[i].bytes);
        cr_expect(eq(str, (char *)shown(), (char *)cases[i].text), "%zu", i);
        bp_run_screen_free(screen);
        screen = NULL;
    }
}

Test(run_screen, follows_its_window) {
    open_screen(3, 10, false);
    feed("1234567890abc\r\nd\r\ne");
    cr_expect(eq(str, (char *)shown(), "abc\nd\ne\n"));
    bp_run_screen_resize(screen, 2, 20);
    feed("\r\n12345678901234567890x");
    cr_expect(eq(str, (char *)shown(), "12345678901234567890x\n"));
    bp_run_screen_resize(screen, 0, 0);
    bp_run_screen_resize(screen, 1, 1);
    feed("\xe4\xbd\xa0\xe4\xbd\xa0");
    bp_run_screen_resize(screen, 60000, 60000);
    feed("\033[60000;60000Hx");
    (void)shown();
    size_t rows = 0;
    for (const char *at = out.data; (at = strchr(at, '\n')) != NULL; at++) {
        rows++;
    }
    cr_expect(eq(sz, rows, BP_RUN_SCREEN_ROWS_MAX));
}

/* Lines, colours, and now and then something that moves the cursor or changes a mode. */
static size_t make_output(unsigned seed, char *bytes, size_t most_bytes, bool may_scroll_a_part) {
    static const char *const pieces[] = {
        "\033[31m", "\033[K",      "\033]0;t\007", "\t",          "\xe4\xbd\xa0", "\r",
        "\033[m",   "a long line", "\b",           "\x0e\x0f",    "\033[5A",      "\033[2;3H",
        "\033[2J",  "\033(A",      "\033(B",       "\033[4h",     "\033[4l",      "\033[?7l",
        "\033[?7h", "\033[2;5r",   "\033[r",       "\033[?1049h", "\033[?1049l"};
    size_t used = 0;
    while (used + 64 < most_bytes) {
        size_t kind = (size_t)rand_r(&seed) % (rand_r(&seed) % 4096 == 0 ? 23 : 9);
        if (kind == 19 && !may_scroll_a_part) {
            continue;
        }
        const char *piece = pieces[kind];
        memcpy(bytes + used, piece, strlen(piece));
        used += strlen(piece);
        for (int words = rand_r(&seed) % 8; words > 0 && used + 32 < most_bytes; words--) {
            used += (size_t)snprintf(bytes + used, 32, "%x ", rand_r(&seed) % 4096);
        }
        bytes[used++] = '\n';
    }
    return used;
}

/* Without the time limit nothing but what scrolls away is left out, so both screens are the same.
 */
Test(run_screen, shows_the_same_when_it_leaves_out_what_scrolls_away) {
    enum { output_bytes = 600 * 1024, piece_bytes = 40 };
    char *bytes = malloc(output_bytes);
    cr_assert(bytes != NULL);
    /* A sanitizer draws ten times as slowly: one of each kind of output is enough for it. */
    for (unsigned seed = 1; seed <= (BP_SANITIZED ? 2 : 6); seed++) {
        size_t count = make_output(seed, bytes, output_bytes, seed % 2 == 0);
        open_screen(24, 80, true);
        bp_run_screen_feed(screen, bytes, count);
        char *at_once = strdup(shown());
        bool was_partial = is_partial;
        bp_run_screen_free(screen);
        open_screen(24, 80, true);
        for (size_t at = 0; at < count; at += piece_bytes) {
            bp_run_screen_feed(screen, bytes + at,
                               count - at < piece_bytes ? count - at : piece_bytes);
            (void)shown();
            was_partial = was_partial || is_partial; /* what was lost may have changed a mode */
        }
        cr_expect(was_partial || strcmp(at_once, out.data) == 0, "seed %u:\n%s---\n%s", seed,
                  at_once, out.data);
        cr_expect(not(is_partial));
        free(at_once);
        bp_run_screen_free(screen);
        screen = NULL;
    }
    free(bytes);
}

Test(run_screen, bounds_the_time_that_output_can_cost_and_says_so) {
    enum { output_bytes = 512 * 1024 };
    static const char *const costly[] = {"\033#8", "\033[9L", "\033[2J"};
    char *bytes = malloc(output_bytes);
    cr_assert(bytes != NULL);
    for (size_t i = 0; i < sizeof costly / sizeof costly[0]; i++) {
        size_t length = strlen(costly[i]);
        for (size_t at = 0; at + length <= output_bytes; at += length) {
            memcpy(bytes + at, costly[i], length);
        }
        open_screen(200, 500, false);
        bp_run_screen_feed(screen, bytes, output_bytes - output_bytes % length);
        (void)shown();
        cr_expect(eq(int, is_partial, i < 2), "behind a clear nothing is missing");
        /* Lines replace the whole screen, once there is time to draw them. A sanitizer makes
         * drawing so slow that there never is. */
        do {
            for (int line = 0; line < 500; line++) {
                feed("text\r\n");
            }
            (void)shown();
        } while (is_partial && !BP_SANITIZED);
        bp_run_screen_free(screen);
        screen = NULL;
    }
    free(bytes);
}

Test(run_screen, a_string_without_an_end_shows_nothing_and_takes_no_room) {
    static const char *const ends[] = {"\007", "\033\\"};
    for (size_t i = 0; i < 2; i++) {
        open_screen(24, 80, false);
        feed("before \033]1337;File=:");
        for (int piece = 0; piece < 100000; piece++) {
            feed("AAAAAAAAAA");
        }
        feed(ends[i]);
        feed("after");
        cr_expect(eq(str, (char *)shown(), "before after\n"));
        bp_run_screen_free(screen);
        screen = NULL;
    }
}

Test(run_screen, survives_any_bytes_and_prints_no_control_character) {
    enum { output_bytes = 32 * 1024 };
    static const char alphabet[] =
        "\033\033\033[[[];?0123456789ABCDEFGHIJKLMPSTXZ@abcdfghlmnrstuq#(c\x0e\x0f"
        "\x7f\xc2\x85\xe4\xbd\xa0\xcc\x81\xff\t\b\n\r ";
    char *bytes = malloc(output_bytes);
    cr_assert(bytes != NULL);
    for (unsigned seed = 1; seed <= 20; seed++) {
        unsigned state = seed;
        for (size_t i = 0; i < output_bytes; i++) {
            bytes[i] = alphabet[(size_t)rand_r(&state) % (sizeof alphabet - 1)];
        }
        open_screen((int)seed, 3 * (int)seed, seed % 2 == 0);
        bp_run_screen_feed(screen, bytes, output_bytes / 2);
        bp_run_screen_resize(screen, 40 - (int)seed, (int)seed * 7 % 90);
        bp_run_screen_feed(screen, bytes + output_bytes / 2, output_bytes / 2);
        const unsigned char *text = (const unsigned char *)shown();
        for (size_t i = 0; i < out.size; i++) {
            bool is_high = text[i] == 0xc2 && text[i + 1] < 0xa0;
            bool is_control = (text[i] < 0x20 && text[i] != '\n') || text[i] == 0x7f || is_high;
            cr_assert(not(is_control));
        }
        bp_run_screen_free(screen);
        screen = NULL;
    }
    free(bytes);
}

Test(run_flow, knows_what_moves_and_what_is_incomplete) {
    static const struct {
        const char *bytes;
        size_t moving_bytes, whole_bytes;
        bool is_cleared, is_partial;
    } cases[] = {
        {"text\r\n\033[31m\033[K\033]0;t\007\033]0;t\033\\", 0, 27, false, false},
        {"ab\033[A\n", 5, 6, false, false},
        {"ab\033[3", 0, 2, false, false},
        {"ab\033", 0, 2, false, false},
        {"ab\033]0;t", 0, 2, false, false},
        {"\x0eq\x0f"
         "a",
         3, 4, false, false},
        {"\033[2Ja", 4, 5, true, false},
        {"\033[H\033[Ja", 6, 7, true, false},
        {"\033[Ja", 3, 4, false, false},
        {"\033c", 2, 2, true, false},
        {"\033[2;10r", 7, 7, false, true},
        {"\033[1;24r", 7, 7, false, false},
        {"\033[2;10r\033[r", 10, 10, false, false},
        {"\033[?69h", 6, 6, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_part = false;
        bp_run_flow flow = bp_run_flow_scan(cases[i].bytes, strlen(cases[i].bytes), 24, &is_part);
        cr_expect(eq(sz, flow.moving_bytes, cases[i].moving_bytes), "case %zu", i);
        cr_expect(eq(sz, flow.whole_bytes, cases[i].whole_bytes), "case %zu", i);
        cr_expect(eq(int, flow.cleared_at != SIZE_MAX, cases[i].is_cleared), "case %zu", i);
        cr_expect(eq(int, is_part, cases[i].is_partial), "case %zu", i);
    }
    cr_expect(eq(sz, bp_run_flow_tail("a\nb\nc\n", 6, 1), 2));
    cr_expect(eq(sz, bp_run_flow_tail("a\nb\n", 4, 1), 0));
}
