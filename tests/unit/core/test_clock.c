#include <limits.h>
#include <time.h>

#include "base/clock.h"
#include "unit/unit.h"

static void expect_iso(uint64_t wall_ns, const char *expected) {
    char text[BP_CLOCK_ISO_BYTES];
    bp_clock_format_iso(wall_ns, text);
    cr_assert(eq(str, text, expected));
}

static void expect_name(uint64_t wall_ns, const char *expected) {
    char text[BP_CLOCK_NAME_BYTES];
    bp_clock_format_name(wall_ns, text);
    cr_assert(eq(str, text, expected));
}

Test(clock, cuts_below_the_microsecond_and_never_rounds_up) {
    expect_iso(1795221411123456789u, "2026-11-21T00:36:51.123456Z");
    expect_iso(1795221411999999999u, "2026-11-21T00:36:51.999999Z");
    expect_name(1795221411999999999u, "2026-11-21T00-36-51Z");
}

/* Nanoseconds in 64 bits end in 2554, long before four digits of a year do. */
Test(clock, writes_the_largest_time_there_is) {
    expect_iso(UINT64_MAX, "2554-07-21T23:34:33.709551Z");
    expect_name(UINT64_MAX, "2554-07-21T23-34-33Z");
}

Test(clock, writes_utc_under_any_time_zone) {
    static const char *const zones[] = {"Pacific/Kiritimati", "America/Anchorage", "XYZ-14:59",
                                        "right/UTC", ""};
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        cr_assert(eq(int, setenv("TZ", zones[i], 1), 0));
        tzset();
        expect_name(1795221411 * BP_NS_PER_SEC, "2026-11-21T00-36-51Z");
        expect_iso(1795221411 * BP_NS_PER_SEC, "2026-11-21T00:36:51.000000Z");
    }
}

Test(clock, agrees_with_the_system_about_every_day_there_is) {
    cr_assert(eq(int, setenv("TZ", "UTC0", 1), 0));
    tzset();
    for (uint64_t second = 0; second < UINT64_MAX / BP_NS_PER_SEC; second += 86399) {
        time_t when = (time_t)second;
        struct tm civil;
        char expected[BP_CLOCK_NAME_BYTES], text[BP_CLOCK_NAME_BYTES];
        (void)strftime(expected, sizeof expected, "%Y-%m-%dT%H-%M-%SZ", gmtime_r(&when, &civil));
        bp_clock_format_name(second * BP_NS_PER_SEC, text);
        if (strcmp(text, expected) != 0) { /* the macro alone takes most of a second */
            cr_assert(eq(str, text, expected));
        }
        uint64_t read_ns = 0;
        if (!bp_clock_parse(text, &read_ns) || read_ns != second * BP_NS_PER_SEC) {
            cr_assert(eq(u64, read_ns, second * BP_NS_PER_SEC));
        }
    }
}

Test(clock, reads_both_forms_and_nothing_else) {
    static const struct {
        const char *text;
        uint64_t wall_ns;
    } good[] = {{"1970-01-01T00:00:00Z", 0},
                {"1970-01-01T00:00:01.5Z", 1500000000},
                {"2026-11-21T00:36:51.123456Z", 1795221411123456000},
                {"2026-11-21T00-36-51Z-2.zip", 1795221411000000000},
                {"1970-01-01T00:00:00.0000000019Z", 1}};
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-11-21",
                                      "2026-11-21T00:36:51",
                                      "2026-11-21T00:36:51+00:00",
                                      "1969-12-31T23:59:59Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2026-11-21T24:00:00Z",
                                      "2554-07-22T00:00:00Z",
                                      "2026-11-21 00:36:51Z"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t wall_ns = 7;
        cr_expect(bp_clock_parse(good[i].text, &wall_ns), "%s", good[i].text);
        cr_expect(eq(u64, wall_ns, good[i].wall_ns));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t wall_ns = 7;
        cr_expect(not(bp_clock_parse(bad[i], &wall_ns)), "%s", bad[i]);
        cr_expect(eq(u64, wall_ns, 7));
    }
}

Test(clock, reads_the_wall_clock_of_the_system) {
    uint64_t before_secs = (uint64_t)time(NULL);
    uint64_t wall_ns = bp_clock_now().wall_ns;
    /* time(2) reads a coarser clock, which may lag by a tick. */
    cr_assert(ge(u64, wall_ns, (before_secs - 1) * BP_NS_PER_SEC));
    cr_assert(le(u64, wall_ns, ((uint64_t)time(NULL) + 2) * BP_NS_PER_SEC));
}

Test(clock, sleeps_until_the_deadline_and_not_less) {
    uint64_t deadline_ns = bp_clock_monotonic_ns() + 20 * BP_NS_PER_MS;
    bp_clock_sleep_until(deadline_ns);
    cr_assert(ge(u64, bp_clock_monotonic_ns(), deadline_ns));
    bp_clock_sleep_until(0); /* long past: returns at once, or this test times out */
}

Test(clock, tells_poll_what_is_left) {
    uint64_t hour_ns = 3600 * BP_NS_PER_SEC;
    uint64_t now_ns = bp_clock_monotonic_ns();
    int left_ms = bp_clock_poll_ms(now_ns + hour_ns);
    cr_expect(gt(int, left_ms, 0));
    cr_expect(le(int, left_ms, 3600 * 1000));
    cr_expect(eq(int, bp_clock_poll_ms(now_ns), 0));
    cr_expect(eq(int, bp_clock_poll_ms(0), 0));
    cr_expect(eq(int, bp_clock_poll_ms(UINT64_MAX), INT_MAX));
}
