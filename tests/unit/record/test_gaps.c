#include "trigger/gaps.h"
#include "unit/unit.h"

static bp_gaps *gaps;

static void tear_down(void) {
    bp_gaps_free(gaps);
}

static void make_gaps(uint32_t cap, uint32_t channel_cap) {
    const bp_gaps_options options = {.cap = cap, .channel_cap = channel_cap};
    cr_assert(zero(int, bp_gaps_new(&options, &gaps, NULL)));
}

static bp_gap_occurrence see_row(const char *text, bp_gap **ret_gap) {
    bp_gap_key key;
    bp_gaps_read_key(gaps, &key, text);
    return bp_gaps_see(gaps, &key, true, ret_gap);
}

static int see(const char *text) {
    bp_gap *gap = NULL;
    return (int)see_row(text, &gap);
}

/* Sees it, and has its report written or fail at once. */
static bool see_and_settle(const char *text, bool is_written) {
    bp_gap *gap = NULL;
    bool is_report = see_row(text, &gap) == BP_GAP_REPORT;
    if (is_report) {
        bp_gaps_settle(gaps, gap, is_written);
    }
    return is_report;
}

static bp_pedantic_gap row_of(const char *text) {
    bp_pedantic_gap *rows = NULL;
    bp_pedantic_gap found = {.key = NULL};
    size_t count = 0;
    cr_assert(zero(int, bp_gaps_list(gaps, NULL, &rows, &count, NULL)));
    for (size_t i = 0; i < count; i++) {
        found = strcmp(rows[i].key, text) == 0 ? rows[i] : found;
    }
    free(rows);
    cr_assert(ne(ptr, found.key, NULL), "no row of \"%s\"", text);
    return found;
}

static void expect_reason(const char *text, const char *reason) {
    cr_expect(eq(str, row_of(text).reason, reason));
}

static uint32_t distinct(void) {
    bugpack_pedantic_state totals;
    bp_gaps_count(gaps, &totals);
    return totals.distinct_count;
}

TestSuite(gaps, .fini = tear_down);

Test(gaps, report_each_key_once_and_count_every_sight) {
    make_gaps(50, 20);
    cr_expect(see_and_settle("display:unimpl:rop3", true));
    for (int i = 0; i < 9; i++) {
        cr_expect(not(see_and_settle("display:unimpl:rop3", true)));
    }
    cr_expect(see_and_settle("display:unimpl:rop", true));
    bp_pedantic_gap row = row_of("display:unimpl:rop3");
    cr_expect(eq(u64, row.count, 10));
    cr_expect(row.is_written);
    cr_expect(eq(str, row.reason, ""));
    cr_expect(gt(u64, row.first_wall_ns, 0));
    cr_expect(ge(u64, row.last_wall_ns, row.first_wall_ns));
}

Test(gaps, report_no_key_a_second_time_while_its_report_is_on_its_way) {
    make_gaps(50, 20);
    cr_expect(eq(int, see("a:b:c"), BP_GAP_REPORT));
    cr_expect(eq(int, see("a:b:c"), BP_GAP_COUNTED));
    expect_reason("a:b:c", "its report is on its way");
}

Test(gaps, let_reports_on_their_way_take_places_so_that_the_cap_is_never_passed) {
    make_gaps(2, 0);
    bp_gap *first = NULL;
    bp_gap *refused = NULL;
    cr_expect(eq(int, see_row("a:1", &first), BP_GAP_REPORT));
    cr_expect(eq(int, see("b:2"), BP_GAP_REPORT));
    cr_expect(eq(int, see_row("c:3", &refused), BP_GAP_CAP));
    cr_expect(eq(int, see("d:4"), BP_GAP_COUNTED), "the cap is told once");
    expect_reason("c:3", "the session takes at most 2 reports of gaps");
    bp_gaps_settle(gaps, first, false);
    cr_expect(eq(int, see("c:3"), BP_GAP_REPORT), "a failed report gives its place back");
    cr_expect(eq(int, see("d:4"), BP_GAP_COUNTED));
}

Test(gaps, never_report_with_a_cap_of_0) {
    make_gaps(0, 0);
    cr_expect(eq(int, see("a:1"), BP_GAP_CAP));
    cr_expect(eq(int, see("a:1"), BP_GAP_COUNTED));
}

Test(gaps, try_a_failed_report_again_at_later_sights_and_then_give_up) {
    make_gaps(50, 20);
    for (unsigned i = 0; i < BUGPACK_GAP_TRIES; i++) {
        expect_reason((see_and_settle("a:b", false), "a:b"),
                      i + 1 < BUGPACK_GAP_TRIES
                          ? "its report could not be written; the next occurrence tries again"
                          : "its report could not be written, and its tries are used up");
    }
    cr_expect(eq(int, see("a:b"), BP_GAP_COUNTED));
    bugpack_pedantic_state totals;
    bp_gaps_count(gaps, &totals);
    cr_expect(zero(uint, totals.written_count));
    cr_expect(zero(uint, totals.pending_count));
    cr_expect(eq(u64, totals.occurrence_count, BUGPACK_GAP_TRIES + 1));
}

Test(gaps, keep_one_channel_from_using_all_places) {
    make_gaps(50, 2);
    cr_expect(see_and_settle("noisy:1", true));
    cr_expect(see_and_settle("noisy:2", true));
    cr_expect(eq(int, see("noisy:3"), BP_GAP_CHANNEL_CAP));
    cr_expect(eq(int, see("noisy:4"), BP_GAP_COUNTED), "a channel's share is told once");
    cr_expect(see_and_settle("quiet:1", true));
    expect_reason("noisy:4", "one channel takes at most 2 reports of gaps");
    cr_expect(see_and_settle("noi:1", true), "another channel, whose name begins alike");
}

Test(gaps, count_while_off_and_report_at_the_next_sight) {
    make_gaps(50, 20);
    bp_gap_key key;
    bp_gap *gap = NULL;
    bp_gaps_read_key(gaps, &key, "a:b");
    cr_expect(eq(int, bp_gaps_see(gaps, &key, false, &gap), BP_GAP_COUNTED));
    expect_reason("a:b", "pedantic mode was off");
    cr_expect(eq(int, bp_gaps_see(gaps, &key, true, &gap), BP_GAP_REPORT));
    cr_expect(eq(u64, row_of("a:b").count, 2));
}

Test(gaps, name_a_long_key_alike_in_a_session_and_otherwise_in_the_next) {
    make_gaps(50, 20);
    bp_gaps *next = gaps;
    make_gaps(50, 20);
    char text[300];
    bp_gap_key one, again, other;
    memset(text, 'k', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    bp_gaps_read_key(gaps, &one, text);
    bp_gaps_read_key(gaps, &again, text);
    bp_gaps_read_key(next, &other, text);
    cr_expect(eq(str, one.made, again.made));
    cr_expect(ne(str, one.made, other.made));
    bp_gaps_free(next);
}

/* Makes `count` keys of a format with one number in it. */
static void see_many(const char *before, unsigned count) {
    char text[64];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(text, sizeof text, "%s%u", before, i);
        (void)see_and_settle(text, true);
    }
}

Test(gaps, have_room_for_64_unknown_opcodes_of_a_channel_and_one_key_for_all_others) {
    make_gaps(4096, 0);
    bp_gap *gap = NULL;
    bp_gap_key key;
    for (uint64_t opcode = 0; opcode < 1000; opcode++) {
        bp_gap_key_make_unknown(&key, "display", opcode);
        if (bp_gaps_see(gaps, &key, true, &gap) == BP_GAP_REPORT) {
            bp_gaps_settle(gaps, gap, true);
        }
    }
    cr_expect(eq(uint, distinct(), BUGPACK_GAP_UNKNOWN_OPCODES_MAX + 1));
    cr_expect(eq(u64, row_of("display:unknown:63").count, 1));
    bp_pedantic_gap row = row_of("display:unknown:overflow");
    cr_expect(eq(u64, row.count, 1000 - BUGPACK_GAP_UNKNOWN_OPCODES_MAX));
    cr_expect(row.is_written);
    cr_expect(see_and_settle("display:unimpl:x", true), "other kinds have room still");
    cr_expect(see_and_settle("main:unknown:1", true), "other channels have room still");
    cr_expect(not(see_and_settle("display:unknown:4711", true)), "however it is called");
    cr_expect(eq(u64, row_of("display:unknown:overflow").count, 937));
}

Test(gaps, have_room_for_256_keys_of_a_channel_and_one_key_for_all_others) {
    make_gaps(4096, 0);
    see_many("display:unimpl:", 1000);
    cr_expect(eq(uint, distinct(), BUGPACK_GAP_CHANNEL_KEYS_MAX + 1));
    cr_expect(eq(u64, row_of("display:overflow").count, 1000 - BUGPACK_GAP_CHANNEL_KEYS_MAX));
}

Test(gaps, take_a_key_that_is_called_like_an_overflow_for_what_it_is) {
    make_gaps(4096, 0);
    cr_expect(see_and_settle("display:overflow", true));
    cr_expect(see_and_settle("overflow", true));
    cr_expect(see_and_settle("display:x", true), "it does not count as an overflow");
    see_many("display:unimpl:", 300);
    cr_expect(eq(uint, distinct(), BUGPACK_GAP_CHANNEL_KEYS_MAX + 1));
    cr_expect(eq(u64, row_of("display:overflow").count, 47));
}

Test(gaps, are_bounded_however_many_channels_a_peer_makes_up) {
    make_gaps(4096, 0);
    see_many("channel-", 10000);
    cr_expect(eq(uint, distinct(), BUGPACK_GAP_KEYS_MAX));
    cr_expect(eq(u64, row_of("overflow").count, 10000 - (BUGPACK_GAP_KEYS_MAX - 1)));
    bugpack_pedantic_state totals;
    bp_gaps_count(gaps, &totals);
    cr_expect(eq(u64, totals.occurrence_count, 10000));
}

Test(gaps, list_nothing_when_there_was_none) {
    make_gaps(50, 20);
    bp_pedantic_gap *rows = NULL;
    size_t count = 1;
    cr_expect(zero(int, bp_gaps_list(gaps, NULL, &rows, &count, NULL)));
    cr_expect(zero(sz, count));
    cr_expect(eq(ptr, rows, NULL));
    bp_gaps_free(NULL);
}
