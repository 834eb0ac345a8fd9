#include "recorder/line_splitter.h"

#include "base/buffer.h"
#include "base/utf8.h"
#include "unit/unit.h"

/* What was taken: each line between brackets. */
static void take_bracketed(void *context, const char *line, size_t line_bytes, unsigned part) {
    cr_assert(le(sz, line_bytes, BUGPACK_LOG_MESSAGE_MAX_BYTES));
    bp_buffer *lines = context;
    (void)bp_buffer_append_char(lines, '[');
    (void)bp_buffer_append(lines, line, line_bytes);
    (void)bp_buffer_append_char(lines, ']');
}

static void expect(const bp_buffer *lines, const char *expected, size_t expected_bytes) {
    cr_assert(eq(sz, lines->size, expected_bytes), "%s", bp_buffer_text(lines));
    cr_assert(zero(int, memcmp(bp_buffer_text(lines), expected, expected_bytes)), "%s",
              bp_buffer_text(lines));
}

static const char mixed[] = "one\n\ntwo\r\nth\0ree\n\r\nfo\rur\n\r\r\n\xC3\xA4\xff\nlast";
static const char mixed_lines[] = "[one][][two][th\0ree][][fo\rur][\r][\xC3\xA4\xff][last]";

Test(line_splitter, gives_the_same_lines_wherever_the_pieces_end) {
    const size_t byte_count = sizeof mixed - 1;
    for (size_t first = 0; first <= byte_count; first++) {
        for (size_t second = first; second <= byte_count; second++) {
            BUFFER(lines, 1 << 16);
            bp_line_splitter splitter;
            bp_line_splitter_init(&splitter, take_bracketed, &lines);
            bp_line_splitter_feed(&splitter, mixed, first);
            bp_line_splitter_feed(&splitter, mixed + first, second - first);
            bp_line_splitter_feed(&splitter, mixed + second, byte_count - second);
            bp_line_splitter_flush(&splitter);
            expect(&lines, mixed_lines, sizeof mixed_lines - 1);
        }
    }
}

typedef struct fixture {
    bp_buffer lines;
    bp_line_splitter splitter;
} fixture;

static fixture *new_fixture(void) {
    fixture *made = malloc(sizeof *made);
    bp_buffer_init(&made->lines, (size_t)4 << 20);
    bp_line_splitter_init(&made->splitter, take_bracketed, &made->lines);
    return made;
}

static void free_fixture(fixture *made) {
    bp_buffer_release(&made->lines);
    free(made);
}

static void feed(fixture *made, const char *text) {
    bp_line_splitter_feed(&made->splitter, text, strlen(text));
}

Test(line_splitter, keeps_what_has_no_newline_until_it_is_flushed) {
    fixture *made = new_fixture();
    feed(made, "half");
    expect(&made->lines, "", 0);
    bp_line_splitter_flush(&made->splitter);
    expect(&made->lines, "[half]", 6);
    bp_line_splitter_flush(&made->splitter);
    expect(&made->lines, "[half]", 6);
    free_fixture(made);
}

Test(line_splitter, adds_no_empty_line_when_the_newline_comes_after_a_flush) {
    fixture *made = new_fixture();
    feed(made, "50 %\r");
    bp_line_splitter_flush(&made->splitter);
    feed(made, "\n");
    expect(&made->lines, "[50 %]", 6);
    feed(made, "a");
    bp_line_splitter_flush(&made->splitter);
    feed(made, "\r\n\nb\n");
    expect(&made->lines, "[50 %][a][][b]", 14);
    free_fixture(made);
}

/* `length` bytes of x and an end, whole or in two pieces. */
static void expect_long_line(size_t length, const char *end, const char *tail, size_t cut) {
    fixture *made = new_fixture();
    char *text = malloc(length + 3);
    memset(text, 'x', length);
    size_t end_bytes = strlen(end);
    memcpy(text + length, end, end_bytes);
    bp_line_splitter_feed(&made->splitter, text, cut);
    bp_line_splitter_feed(&made->splitter, text + cut, length + end_bytes - cut);
    feed(made, "next\n");
    BUFFER(expected, 1 << 20);
    take_bracketed(&expected, text, BUGPACK_LOG_MESSAGE_MAX_BYTES, 0);
    (void)bp_buffer_append_text(&expected, tail);
    (void)bp_buffer_append_text(&expected, "[next]");
    expect(&made->lines, expected.data, expected.size);
    free(text);
    free_fixture(made);
}

Test(line_splitter, cuts_a_line_only_where_it_is_over_the_limit) {
    for (size_t piece = 0; piece < 3; piece++) {
        size_t cut = BUGPACK_LOG_MESSAGE_MAX_BYTES - 1 + piece;
        expect_long_line(BUGPACK_LOG_MESSAGE_MAX_BYTES, "\n", "", cut);
        expect_long_line(BUGPACK_LOG_MESSAGE_MAX_BYTES, "\r\n", "", cut);
        expect_long_line(BUGPACK_LOG_MESSAGE_MAX_BYTES + 1, "\n", "[x]", cut);
        expect_long_line(BUGPACK_LOG_MESSAGE_MAX_BYTES + 1, "\r\n", "[x]", cut);
        expect_long_line(BUGPACK_LOG_MESSAGE_MAX_BYTES + 2, "\n", "[xx]", cut);
    }
}

/* Only adds up. */
typedef struct tally {
    size_t line_count, byte_count, split_count;
    unsigned char sum;
} tally;

static void take_tally(void *context, const char *line, size_t line_bytes, unsigned part) {
    tally *seen = context;
    cr_assert(le(sz, line_bytes, BUGPACK_LOG_MESSAGE_MAX_BYTES));
    seen->line_count++;
    seen->byte_count += line_bytes;
    seen->split_count += !bp_utf8_is_valid(line, line_bytes);
    for (size_t i = 0; i < line_bytes; i++) {
        seen->sum = (unsigned char)(seen->sum * 31 + (unsigned char)line[i]);
    }
}

Test(line_splitter, cuts_a_megabyte_without_a_newline_between_characters_and_loses_nothing) {
    const size_t byte_count = (size_t)3 << 20;
    CLEANUP(free_memory) char *text = malloc(byte_count);
    for (size_t i = 0; i < byte_count; i += 3) {
        memcpy(text + i, "\xE2\x82\xAC", 3);
    }
    tally expected = {0};
    for (size_t i = 0; i < byte_count; i++) {
        expected.sum = (unsigned char)(expected.sum * 31 + (unsigned char)text[i]);
    }
    static const size_t pieces[] = {1, 7, 4095, 4096, 4097, (size_t)3 << 20};
    for (size_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
        tally seen = {0};
        bp_line_splitter splitter;
        bp_line_splitter_init(&splitter, take_tally, &seen);
        for (size_t at = 0; at < byte_count; at += pieces[p]) {
            size_t left = byte_count - at;
            bp_line_splitter_feed(&splitter, text + at, left < pieces[p] ? left : pieces[p]);
        }
        bp_line_splitter_flush(&splitter);
        cr_assert(eq(sz, seen.byte_count, byte_count), "pieces of %zu", pieces[p]);
        cr_assert(eq(uint, seen.sum, expected.sum));
        cr_assert(zero(sz, seen.split_count));
        cr_assert(eq(sz, seen.line_count, (byte_count + 4094) / 4095), "4095 is a multiple of 3");
    }
}

Test(line_splitter, gets_through_bytes_among_which_there_is_no_place_to_cut) {
    CLEANUP(free_memory) char *text = malloc(100000);
    memset(text, 0xBF, 100000);
    tally seen = {0};
    bp_line_splitter splitter;
    bp_line_splitter_init(&splitter, take_tally, &seen);
    bp_line_splitter_feed(&splitter, text, 100000);
    bp_line_splitter_flush(&splitter);
    cr_assert(eq(sz, seen.byte_count, 100000));
}
