/*
 * What the integers of the macOS kernel mean: without a Mac.
 */
#include "platform/darwin/convert.h"
#include "unit/unit.h"

static const bp_darwin_tick apple_silicon = {.numer = 125, .denom = 3};

Test(darwin_convert, ticks_become_nanoseconds_of_either_architecture) {
    cr_expect(eq(u64, bp_darwin_ticks_to_ns(1500, (bp_darwin_tick){1, 1}), 1500));
    cr_expect(eq(u64, bp_darwin_ticks_to_ns(24000000, apple_silicon), 1000000000));
    cr_expect(eq(u64, bp_darwin_ticks_to_ns(1, apple_silicon), 41));
    cr_expect(zero(u64, bp_darwin_ticks_to_ns(0, apple_silicon)));
}

Test(darwin_convert, ticks_of_centuries_are_exact_and_more_stays_at_the_largest_number) {
    /* 100 years of 24 MHz: the product of ticks and numerator would not fit in 64 bits. */
    uint64_t century_secs = 100ull * 365 * 86400;
    cr_expect(eq(u64, bp_darwin_ticks_to_ns(century_secs * 24000000, apple_silicon),
                 century_secs * 1000000000));
    cr_expect(eq(u64, bp_darwin_ticks_to_ns(UINT64_MAX, apple_silicon), UINT64_MAX));
    bp_darwin_tick large = {.numer = UINT32_MAX, .denom = UINT32_MAX};
    cr_expect(eq(u64, bp_darwin_ticks_to_ns(UINT64_MAX, large), UINT64_MAX));
}

Test(darwin_convert, a_timebase_of_nonsense_does_not_divide_by_zero) {
    cr_expect(eq(u64, bp_darwin_ticks_to_ns(7, (bp_darwin_tick){2, 0}), 14));
    cr_expect(zero(u64, bp_darwin_ticks_to_ns(7, (bp_darwin_tick){0, 0})));
}

Test(darwin_convert, a_frequency_gives_the_length_of_a_tick) {
    bp_darwin_tick tick = {7, 7};
    cr_expect(bp_darwin_tick_of(24000000, &tick));
    cr_expect(eq(u64, bp_darwin_ticks_to_ns(3, tick), 125));
    cr_expect(bp_darwin_tick_of(1000000000, &tick));
    cr_expect(eq(u64, bp_darwin_ticks_to_ns(3, tick), 3));
}

Test(darwin_convert, refuses_a_frequency_of_nonsense_and_leaves_the_tick_alone) {
    bp_darwin_tick tick = {7, 9};
    cr_expect(not(bp_darwin_tick_of(0, &tick)));
    cr_expect(not(bp_darwin_tick_of((uint64_t)UINT32_MAX + 1, &tick)));
    cr_expect(eq(u32, tick.numer, 7));
    cr_expect(eq(u32, tick.denom, 9));
}

Test(darwin_convert, time_values_are_seconds_and_microseconds) {
    cr_expect(zero(u64, bp_darwin_time_value_ns(0, 0)));
    cr_expect(eq(u64, bp_darwin_time_value_ns(1, 500000), 1500000000));
    cr_expect(eq(u64, bp_darwin_time_value_ns(INT32_MAX, 999999), 2147483647999999000u));
}

Test(darwin_convert, negative_time_counts_as_none) {
    cr_expect(eq(u64, bp_darwin_time_value_ns(-1, 5), 5000));
    cr_expect(eq(u64, bp_darwin_time_value_ns(5, INT32_MIN), 5000000000));
}

Test(darwin_convert, an_age_follows_the_clock_that_was_never_set) {
    bp_darwin_age age = {.has_awake = true, .awake_ns = 100, .now_wall_ns = 5000};
    /* Never asleep: whatever the wall clock says, there is one answer. */
    cr_expect(eq(u64, bp_darwin_age_ns(&age), 100));
    age.started_wall_ns = 9000;
    cr_expect(eq(u64, bp_darwin_age_ns(&age), 100));
}

Test(darwin_convert, an_age_includes_sleep_but_no_more_than_there_was) {
    bp_darwin_age age = {.has_awake = true,
                         .awake_ns = 100,
                         .asleep_since_boot_ns = 50,
                         .started_wall_ns = 1000,
                         .now_wall_ns = 1130};
    cr_expect(eq(u64, bp_darwin_age_ns(&age), 130));
    age.now_wall_ns = 9000;
    cr_expect(eq(u64, bp_darwin_age_ns(&age), 150));
    age.now_wall_ns = 0;
    cr_expect(eq(u64, bp_darwin_age_ns(&age), 100));
}

Test(darwin_convert, an_age_by_the_wall_clock_alone_is_never_negative) {
    bp_darwin_age age = {.awake_ns = 1, .started_wall_ns = 1000, .now_wall_ns = 1500};
    cr_expect(eq(u64, bp_darwin_age_ns(&age), 500));
    age.now_wall_ns = 999;
    cr_expect(zero(u64, bp_darwin_age_ns(&age)));
}

Test(darwin_convert, names_are_cut_and_always_ended) {
    char name[64];
    char full[64];
    for (size_t i = 0; i < sizeof full; i++) {
        full[i] = '\xff';
    }
    bp_darwin_copy_name(name, full, sizeof full);
    cr_expect(eq(sz, strlen(name), 63));
    bp_darwin_copy_name(name, full, 16);
    cr_expect(eq(sz, strlen(name), 16));
    bp_darwin_copy_name(name, "", 16);
    cr_expect(eq(str, name, ""));
}
