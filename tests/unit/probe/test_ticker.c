/*
 * The grid of the ticks, without a clock.
 */
#include "process/ticker.h"
#include "unit/unit.h"

#define MS 1000000ull
#define SEC (1000 * MS)

/* The next slot, in milliseconds, after one at `slot_ms`. */
static uint64_t next_ms(uint64_t slot_ms, uint64_t began_ms, uint64_t ended_ms, uint64_t cpu_ms,
                        uint32_t cost_percent_max) {
    bp_tick tick = {.slot_ns = slot_ms * MS,
                    .began_ns = began_ms * MS,
                    .ended_ns = ended_ms * MS,
                    .cpu_ns = cpu_ms * MS};
    return bp_ticker_next_slot(&tick, SEC, cost_percent_max) / MS;
}

Test(ticker, ticks_in_time_stand_on_the_grid) {
    cr_expect(eq(u64, next_ms(5000, 5003, 5010, 0, 0), 6000));
    cr_expect(eq(u64, next_ms(5000, 5499, 5999, 0, 0), 6000));
    cr_expect(eq(u64, next_ms(5000, 5500, 6000, 0, 0), 6000));
}

Test(ticker, a_late_tick_is_taken_once_and_what_has_passed_is_left_out) {
    cr_expect(eq(u64, next_ms(5000, 65100, 65110, 0, 0), 66000));
}

Test(ticker, a_late_tick_is_not_followed_closely_by_the_next) {
    cr_expect(eq(u64, next_ms(5000, 5501, 5502, 0, 0), 7000));
}

Test(ticker, a_tick_longer_than_the_interval_leaves_slots_out) {
    cr_expect(eq(u64, next_ms(5000, 5000, 7001, 0, 0), 8000));
    cr_expect(eq(u64, next_ms(5000, 5000, 7000, 0, 0), 7000));
}

Test(ticker, an_expensive_tick_is_paid_for_by_slots_left_out) {
    cr_expect(eq(u64, next_ms(5000, 5000, 5035, 35, 1), 9000));
    cr_expect(eq(u64, next_ms(5000, 5000, 5035, 35, 5), 6000));
    cr_expect(eq(u64, next_ms(5000, 5000, 5035, 35, 0), 6000), "without a limit");
}
