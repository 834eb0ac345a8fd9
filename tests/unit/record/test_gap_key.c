#include <inttypes.h>

#include "trigger/gaps.h"
#include "unit/unit.h"

static const bp_tag_key hash_key = {.words = {1, 2}, .is_there = true};

static void expect_key(const bp_gap_key *key, const char *text, size_t channel_bytes,
                       bool is_unknown) {
    cr_expect(eq(str, key->text, text));
    cr_expect(eq(sz, key->bytes, strlen(text)));
    cr_expect(eq(sz, key->channel_bytes, channel_bytes), "%s", text);
    cr_expect(eq(int, key->is_unknown, is_unknown), "%s", text);
}

Test(gap_key, has_its_channel_before_the_first_colon) {
    static const struct {
        const char *text;
        size_t channel_bytes;
        bool is_unknown;
    } cases[] = {{"display:unimpl:draw", 7, false},
                 {"display:unknown:77", 7, true},
                 {"display:unknown", 7, false},
                 {"display:unknowns:1", 7, false},
                 {"display:a:unknown:1", 7, false},
                 {"no colon", 8, false},
                 {":", 0, false},
                 {":unknown:", 0, true},
                 {"../../x", 7, false},
                 {"a\xff\n\x1b:b", 4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_gap_key key;
        bp_gap_key_read(&key, &hash_key, cases[i].text);
        expect_key(&key, cases[i].text, cases[i].channel_bytes, cases[i].is_unknown);
    }
}

Test(gap_key, that_is_empty_gets_a_name) {
    bp_gap_key key;
    bp_gap_key_read(&key, &hash_key, "");
    expect_key(&key, BP_GAP_KEY_UNNAMED, strlen(BP_GAP_KEY_UNNAMED), false);
}

Test(gap_key, of_the_longest_length_stays_as_it_is) {
    char text[BUGPACK_GAP_KEY_MAX_BYTES + 1];
    memset(text, 'k', BUGPACK_GAP_KEY_MAX_BYTES);
    text[BUGPACK_GAP_KEY_MAX_BYTES] = '\0';
    bp_gap_key key;
    bp_gap_key_read(&key, &hash_key, text);
    expect_key(&key, text, BUGPACK_GAP_KEY_MAX_BYTES, false);
}

Test(gap_key, that_is_too_long_is_cut_and_told_apart_by_a_hash) {
    size_t bytes = 10240;
    CLEANUP(free_memory) char *text = malloc(bytes + 1);
    cr_assert(ne(ptr, text, NULL));
    memset(text, 'k', bytes);
    text[bytes] = '\0';
    memcpy(text, "display:", 8);
    bp_gap_key one;
    bp_gap_key again;
    bp_gap_key other;
    bp_gap_key_read(&one, &hash_key, text);
    bp_gap_key_read(&again, &hash_key, text);
    text[bytes - 1] = 'x';
    bp_gap_key_read(&other, &hash_key, text);
    cr_expect(eq(sz, one.bytes, BUGPACK_GAP_KEY_MAX_BYTES));
    cr_expect(eq(sz, strlen(one.text), one.bytes));
    cr_expect(eq(sz, one.channel_bytes, 7));
    cr_expect(eq(str, one.text, again.text));
    cr_expect(ne(str, one.text, other.text));
    cr_expect(zero(int, memcmp(one.text, other.text, BP_GAP_KEY_FRONT_BYTES)));
}

Test(gap_key, that_is_too_long_has_a_hash_that_is_no_help_in_guessing) {
    static const bp_tag_key next_session = {.words = {3, 4}, .is_there = true};
    static const bp_tag_key no_random = {.words = {0, 0}, .is_there = false};
    char text[300];
    memset(text, 'k', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    bp_gap_key one;
    bp_gap_key other;
    bp_gap_key without;
    bp_gap_key_read(&one, &hash_key, text);
    bp_gap_key_read(&other, &next_session, text);
    bp_gap_key_read(&without, &no_random, text);
    cr_expect(zero(int, memcmp(one.text, other.text, BP_GAP_KEY_FRONT_BYTES + 1)));
    cr_expect(ne(str, one.text, other.text));
    cr_expect(eq(sz, without.bytes, BP_GAP_KEY_FRONT_BYTES + 1));
    cr_expect(eq(chr, without.text[BP_GAP_KEY_FRONT_BYTES], '~'));
}

Test(gap_key, that_is_too_long_and_has_no_colon_keeps_its_hash_out_of_the_channel) {
    char text[300];
    memset(text, 'k', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    bp_gap_key key;
    bp_gap_key_read(&key, &hash_key, text);
    cr_expect(eq(sz, key.channel_bytes, BP_GAP_KEY_FRONT_BYTES));
    bp_gap_key overflow;
    bp_gap_key_make_overflow(&overflow, &key, true);
    cr_expect(le(sz, overflow.bytes, BUGPACK_GAP_KEY_MAX_BYTES));
}

Test(gap_key, that_is_cut_splits_no_character) {
    char text[300];
    for (size_t i = 0; i + 2 < sizeof text; i += 2) {
        memcpy(text + i, "\xc3\xa4", 2);
    }
    text[sizeof text - 2] = '\0';
    bp_gap_key key;
    bp_gap_key_read(&key, &hash_key, text);
    cr_expect(eq(sz, key.channel_bytes, BP_GAP_KEY_FRONT_BYTES - 1));
    cr_expect(eq(chr, key.text[BP_GAP_KEY_FRONT_BYTES - 1], '~'));
}

Test(gap_key, of_an_unknown_opcode_is_decimal) {
    bp_gap_key key;
    bp_gap_key_make_unknown(&key, "display", 0);
    expect_key(&key, "display:unknown:0", 7, true);
    bp_gap_key_make_unknown(&key, "display", UINT64_MAX);
    expect_key(&key, "display:unknown:18446744073709551615", 7, true);
    bp_gap_key_make_unknown(&key, "a:b", 1);
    expect_key(&key, "a:b:unknown:1", 3, true);
    bp_gap_key_make_unknown(&key, "", 1);
    expect_key(&key, ":unknown:1", 0, true);
}

Test(gap_key, of_an_unknown_opcode_has_the_same_channel_whatever_the_number) {
    char channel[200];
    memset(channel, 'c', sizeof channel - 1);
    channel[sizeof channel - 1] = '\0';
    bp_gap_key one;
    bp_gap_key other;
    bp_gap_key_make_unknown(&one, channel, 7);
    bp_gap_key_make_unknown(&other, channel, UINT64_MAX);
    cr_expect(eq(sz, one.channel_bytes, other.channel_bytes));
    cr_expect(eq(sz, other.bytes, BUGPACK_GAP_KEY_MAX_BYTES));
    cr_expect(eq(sz, strlen(other.text), other.bytes));
}
