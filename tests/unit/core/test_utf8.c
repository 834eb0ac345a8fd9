#include "base/utf8.h"
#include "unit/unit.h"

typedef struct sequence_case {
    const char *bytes;
    size_t byte_count;
    size_t length; /* of the first sequence; 0 when it is not well-formed */
} sequence_case;

/* The borders of Unicode 15, table 3-7, from both sides. */
static const sequence_case sequence_cases[] = {
    {"\x00", 1, 1},
    {"\x7F", 1, 1},
    {"\x80", 1, 0},
    {"\xBF", 1, 0},
    {"\xC0\x80", 2, 0},
    {"\xC1\xBF", 2, 0},
    {"\xC2\x80", 2, 2},
    {"\xC2\x7F", 2, 0},
    {"\xC2\xC0", 2, 0},
    {"\xC2", 1, 0},
    {"\xDF\xBF", 2, 2},
    {"\xE0\x9F\xBF", 3, 0},
    {"\xE0\xA0\x80", 3, 3},
    {"\xE0\xA0", 2, 0},
    {"\xE0\xA0\x7F", 3, 0},
    {"\xEC\xBF\xBF", 3, 3},
    {"\xED\x9F\xBF", 3, 3},
    {"\xED\xA0\x80", 3, 0},
    {"\xED\xBF\xBF", 3, 0},
    {"\xEE\x80\x80", 3, 3},
    {"\xEF\xBF\xBF", 3, 3},
    {"\xF0\x8F\xBF\xBF", 4, 0},
    {"\xF0\x90\x80\x80", 4, 4},
    {"\xF0\x90\x80", 3, 0},
    {"\xF0\x90\x80\xC0", 4, 0},
    {"\xF3\xBF\xBF\xBF", 4, 4},
    {"\xF4\x8F\xBF\xBF", 4, 4},
    {"\xF4\x90\x80\x80", 4, 0},
    {"\xF5\x80\x80\x80", 4, 0},
    {"\xF8\x88\x80\x80\x80", 5, 0},
    {"\xFE", 1, 0},
    {"\xFF", 1, 0},
};

Test(utf8, knows_every_border_of_the_well_formed_sequences) {
    for (size_t i = 0; i < sizeof sequence_cases / sizeof sequence_cases[0]; i++) {
        const sequence_case *c = &sequence_cases[i];
        size_t length = bp_utf8_sequence_length((const unsigned char *)c->bytes, c->byte_count);
        cr_assert(eq(sz, length, c->length), "case %zu", i);
        cr_assert(eq(int, bp_utf8_is_valid(c->bytes, c->byte_count), c->length == c->byte_count),
                  "case %zu", i);
    }
}

Test(utf8, finds_one_bad_byte_anywhere) {
    char text[] = "plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x90\x9B text";
    size_t byte_count = sizeof text - 1;
    cr_assert(bp_utf8_is_valid(text, byte_count));
    cr_assert(bp_utf8_is_valid("", 0));
    for (size_t i = 0; i < byte_count; i++) {
        char kept = text[i];
        text[i] = '\xFF';
        cr_assert(not(bp_utf8_is_valid(text, byte_count)), "byte %zu", i);
        text[i] = kept;
    }
}

/* The original bytes: a character from U+EF00 on is the byte in its last eight bits. */
static bugpack_status decode(bp_buffer *out, const char *text, size_t byte_count) {
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + byte_count;
    while (at < end) {
        size_t length = bp_utf8_sequence_length(at, (size_t)(end - at));
        if (length == 3 && at[0] == 0xEE && at[1] >= 0xBC) {
            (void)bp_buffer_append_char(out, (char)((at[1] & 0x03) << 6 | (at[2] & 0x3F)));
        } else {
            (void)bp_buffer_append(out, at, length);
        }
        at += length;
    }
    return out->status;
}

/* Encodes, checks that the result may go into JSON, decodes, and wants the same bytes back. */
static void expect_round_trip(bp_buffer *encoded, bp_buffer *decoded, const void *bytes,
                              size_t byte_count) {
    bp_buffer_clear(encoded);
    bp_buffer_clear(decoded);
    cr_assert(eq(int, bp_utf8_encode(encoded, bytes, byte_count), BUGPACK_OK));
    cr_assert(bp_utf8_is_valid(bp_buffer_text(encoded), encoded->size));
    cr_assert(eq(ptr, memchr(bp_buffer_text(encoded), 0, encoded->size), NULL));
    cr_assert(encoded->size <= 3 * byte_count, "%zu from %zu", encoded->size, byte_count);
    cr_assert(eq(int, decode(decoded, bp_buffer_text(encoded), encoded->size), BUGPACK_OK));
    cr_assert(eq(sz, decoded->size, byte_count));
    cr_assert(eq(int, memcmp(bp_buffer_text(decoded), bytes, byte_count), 0));
}

Test(utf8, gives_every_pair_of_bytes_back) {
    BUFFER(encoded, 1000);
    BUFFER(decoded, 1000);
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        unsigned char bytes[2] = {(unsigned char)(pair >> 8), (unsigned char)pair};
        expect_round_trip(&encoded, &decoded, bytes, 2);
    }
}

Test(utf8, gives_random_bytes_back) {
    BUFFER(encoded, 1000);
    BUFFER(decoded, 1000);
    uint32_t state = 12345; /* xorshift: the same bytes in every run */
    /* Bytes that begin and continue sequences are likelier than in plain noise. */
    static const unsigned char likely[] = {0xEE, 0xEF, 0xBC, 0xBF, 0x80, 0xED, 0xF0, 0xF4};
    for (int round = 0; round < 20000; round++) {
        unsigned char bytes[40];
        for (size_t i = 0; i < sizeof bytes; i++) {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            bytes[i] = (state & 0x100) != 0 ? (unsigned char)state : likely[(state >> 16) % 8];
        }
        expect_round_trip(&encoded, &decoded, bytes, (size_t)round % sizeof bytes);
    }
}

Test(utf8, escapes_as_the_header_says) {
    static const struct {
        const char *bytes;
        size_t byte_count;
        const char *encoded;
    } cases[] = {
        {"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x90\x9B\n\x7F", 11,
         "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x90\x9B\n\x7F"},
        {"\x00", 1, "\xEE\xBC\x80"},
        {"\xFF", 1, "\xEE\xBF\xBF"},
        {"a\x80z", 3, "a\xEE\xBE\x80z"},
        /* U+EF41 itself, which would otherwise read as an escaped 'A' */
        {"\xEE\xBD\x81", 3, "\xEE\xBF\xAE\xEE\xBE\xBD\xEE\xBE\x81"},
        /* its neighbours U+EEFF and U+F000 are ordinary characters */
        {"\xEE\xBB\xBF\xEF\x80\x80", 6, "\xEE\xBB\xBF\xEF\x80\x80"},
    };
    BUFFER(encoded, 100);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_buffer_clear(&encoded);
        (void)bp_utf8_encode(&encoded, cases[i].bytes, cases[i].byte_count);
        cr_assert(eq(str, bp_buffer_text(&encoded), cases[i].encoded), "case %zu", i);
    }
}

Test(utf8, cuts_at_the_last_whole_character) {
    static const char text[] = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x90\x9Bz"; /* 1+2+3+4+1 bytes */
    static const size_t cut_at[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t limit = 0; limit < sizeof cut_at / sizeof cut_at[0]; limit++) {
        cr_assert(eq(sz, bp_utf8_cut(text, sizeof text - 1, limit), cut_at[limit]), "limit %zu",
                  limit);
    }
}

Test(utf8, cuts_bytes_that_are_no_text_at_the_limit_itself) {
    cr_assert(eq(sz, bp_utf8_cut("\x80\x80\x80\x80\x80\x80\x80\x80", 8, 6), 6));
}

Test(utf8, what_is_escaped_is_not_escaped_again) {
    BUFFER(once, 100);
    BUFFER(twice, 100);
    cr_assert(eq(int, bp_utf8_encode(&once, "a\xFF\0b", 4), BUGPACK_OK));
    cr_assert(eq(int, bp_utf8_complete(&twice, bp_buffer_text(&once), once.size), BUGPACK_OK));
    cr_expect(eq(str, bp_buffer_text(&twice), bp_buffer_text(&once)));
    cr_assert(eq(int, bp_utf8_complete(&twice, "\xFF", 1), BUGPACK_OK));
    cr_expect(eq(str, bp_buffer_text(&twice),
                 "a\xEE\xBF\xBF\xEE\xBC\x80"
                 "b\xEE\xBF\xBF"));
}

Test(utf8, knows_the_borders_of_the_characters_that_direct_writing) {
    static const char *const controls[] = {"\u200e", "\u200f", "\u202a", "\u202e",
                                           "\u2066", "\u2069", "\u061c", "\ufeff"};
    static const char *const others[] = {"\u2010", "\u202f", "\u2065", "\u206a"};
    uint32_t code = 0;
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        size_t length = strlen(controls[i]);
        cr_expect(eq(sz, bp_utf8_control((const void *)controls[i], length, &code), length));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        cr_expect(zero(sz, bp_utf8_control((const void *)others[i], 3, &code)));
    }
}
