/*
 * The grid of a pulse, without a clock.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "probe/pulse.h"

#define MS 1000000ull
#define SEC (1000 * MS)

/* The next slot, in milliseconds, after one at `slot_ms`, and how many were left out. */
static uint64_t next_ms(uint64_t slot_ms, uint64_t began_ms, uint64_t ended_ms, uint64_t cpu_ms,
                        uint32_t cost_percent_max, uint64_t *ret_missed_count) {
    bp_pulse_tick tick = {.slot_ns = slot_ms * MS,
                          .began_ns = began_ms * MS,
                          .ended_ns = ended_ms * MS,
                          .cpu_ns = cpu_ms * MS};
    return bp_pulse_next_slot(&tick, SEC, cost_percent_max, ret_missed_count) / MS;
}

Test(pulse, ticks_in_time_stand_on_the_grid) {
    uint64_t missed = 42;
    cr_expect(eq(u64, next_ms(5000, 5003, 5010, 0, 0, &missed), 6000));
    cr_expect(eq(u64, missed, 0));
    cr_expect(eq(u64, next_ms(5000, 5499, 5999, 0, 0, &missed), 6000));
    cr_expect(eq(u64, next_ms(5000, 5500, 6000, 0, 0, &missed), 6000));
    cr_expect(eq(u64, missed, 0));
}

Test(pulse, a_late_tick_is_taken_once_and_what_has_passed_is_missed) {
    uint64_t missed;
    cr_expect(eq(u64, next_ms(5000, 65100, 65110, 0, 0, &missed), 66000));
    cr_expect(eq(u64, missed, 60));
}

Test(pulse, a_late_tick_is_not_followed_closely_by_the_next) {
    uint64_t missed;
    cr_expect(eq(u64, next_ms(5000, 5501, 5502, 0, 0, &missed), 7000));
    cr_expect(eq(u64, missed, 1));
}

Test(pulse, a_tick_longer_than_the_interval_leaves_slots_out) {
    uint64_t missed;
    cr_expect(eq(u64, next_ms(5000, 5000, 7001, 0, 0, &missed), 8000));
    cr_expect(eq(u64, missed, 2));
    cr_expect(eq(u64, next_ms(5000, 5000, 7000, 0, 0, &missed), 7000));
    cr_expect(eq(u64, missed, 1));
}

Test(pulse, an_expensive_tick_is_paid_for_by_slots_left_out) {
    uint64_t missed;
    cr_expect(eq(u64, next_ms(5000, 5000, 5035, 35, 1, &missed), 9000));
    cr_expect(eq(u64, missed, 3));
    cr_expect(eq(u64, next_ms(5000, 5000, 5035, 35, 5, &missed), 6000));
    cr_expect(eq(u64, missed, 0));
    cr_expect(eq(u64, next_ms(5000, 5000, 5035, 35, 0, &missed), 6000), "without a limit");
}

Test(pulse, absurd_times_end_at_the_end_of_time) {
    bp_pulse_tick tick = {UINT64_MAX - 5, UINT64_MAX - 4, UINT64_MAX, UINT64_MAX};
    uint64_t missed;
    cr_expect(eq(u64, bp_pulse_next_slot(&tick, SEC, 1, &missed), UINT64_MAX));
    tick = (bp_pulse_tick){0, UINT64_MAX - 1, UINT64_MAX, 0};
    cr_expect(eq(u64, bp_pulse_next_slot(&tick, 3, 1, &missed), UINT64_MAX));
    tick = (bp_pulse_tick){0, 0, 0, UINT64_MAX};
    cr_expect(eq(u64, bp_pulse_next_slot(&tick, 1, 1, &missed), UINT64_MAX));
}

static void never_beat(void *context, bp_task_snapshot *snapshot, const bugpack_error *error) {
    (void)context, (void)snapshot, (void)error;
    cr_fatal("a pulse that did not start");
}

static void never_wait(void *context, uint64_t deadline_ns) {
    (void)context, (void)deadline_ns;
}

Test(pulse, rejects_options_without_sense_and_leaves_output_alone) {
    bp_pulse *untouched = (bp_pulse *)&untouched;
    bp_pulse *pulse = untouched;
    bp_pulse_options options = BP_PULSE_OPTIONS_INIT;
    options.interval_ms = 0;
    cr_expect(eq(int, bp_pulse_start(NULL, &options, never_beat, NULL, &pulse, NULL),
                 BUGPACK_ERR_INVALID));
    options = (bp_pulse_options)BP_PULSE_OPTIONS_INIT;
    options.wait = never_wait;
    cr_expect(eq(int, bp_pulse_start(NULL, &options, never_beat, NULL, &pulse, NULL),
                 BUGPACK_ERR_INVALID));
    cr_expect(eq(ptr, pulse, untouched));
    bp_pulse_stop(NULL);
}
