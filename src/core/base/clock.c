#include "base/clock.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

uint64_t bp_clock_read_ns(clockid_t id) {
    struct timespec now = {0};
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * BP_NS_PER_SEC + (uint64_t)now.tv_nsec;
}

struct timespec bp_clock_timespec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / BP_NS_PER_SEC),
                             .tv_nsec = (long)(ns % BP_NS_PER_SEC)};
}

uint64_t bp_clock_monotonic_ns(void) {
#ifdef CLOCK_UPTIME_RAW
    /* macOS, where CLOCK_MONOTONIC goes on while the machine sleeps and has whole microseconds. */
    return bp_clock_read_ns(CLOCK_UPTIME_RAW);
#else
    return bp_clock_read_ns(CLOCK_MONOTONIC);
#endif
}

uint64_t bp_clock_wall_ns(void) {
    return bp_clock_read_ns(CLOCK_REALTIME);
}

uint64_t bp_clock_monotonic_tick_ns(void) {
#ifdef CLOCK_MONOTONIC_COARSE
    return bp_clock_read_ns(CLOCK_MONOTONIC_COARSE);
#else
    return bp_clock_monotonic_ns();
#endif
}

uint64_t bp_clock_wall_tick_ns(void) {
#ifdef CLOCK_REALTIME_COARSE
    return bp_clock_read_ns(CLOCK_REALTIME_COARSE);
#else
    return bp_clock_wall_ns();
#endif
}

bp_instant bp_clock_now(void) {
    return (bp_instant){.monotonic_ns = bp_clock_monotonic_ns(), .wall_ns = bp_clock_wall_ns()};
}

int bp_clock_poll_ms(uint64_t deadline_ns) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    uint64_t left_ms = left_ns / BP_NS_PER_MS + (left_ns % BP_NS_PER_MS != 0);
    return left_ms < INT_MAX ? (int)left_ms : INT_MAX;
}

void bp_clock_sleep_until(uint64_t deadline_ns) {
    /* nanosleep in a loop: clock_nanosleep, which takes a deadline, is missing on macOS. */
    for (;;) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (now_ns >= deadline_ns) {
            return;
        }
        struct timespec left = bp_clock_timespec(deadline_ns - now_ns);
        (void)nanosleep(&left, NULL);
    }
}

static bool is_leap(unsigned year) {
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* The days of a year before a month. */
static unsigned days_before(unsigned year, unsigned month) {
    static const unsigned days[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    return days[month - 1] + (is_leap(year) && month > 2);
}

/*
 * Not gmtime_r: under a TZ of the "right/" kind glibc takes 27 leap seconds off there, and it takes
 * a lock that a forked child may find held for good.
 */
bp_civil_time bp_clock_civil(uint64_t wall_ns) {
    uint64_t seconds = wall_ns / BP_NS_PER_SEC;
    unsigned days = (unsigned)(seconds / 86400);
    unsigned rest = (unsigned)(seconds % 86400);
    bp_civil_time civil = {.year = 1970,
                           .month = 1,
                           .hour = rest / 3600,
                           .minute = rest / 60 % 60,
                           .second = rest % 60};
    for (; days >= 365u + is_leap(civil.year); civil.year++) {
        days -= 365u + is_leap(civil.year);
    }
    while (civil.month < 12 && days >= days_before(civil.year, civil.month + 1)) {
        civil.month++;
    }
    civil.day = days - days_before(civil.year, civil.month) + 1;
    return civil;
}

void bp_clock_format_iso(uint64_t wall_ns, char out[BP_CLOCK_ISO_BYTES]) {
    bp_civil_time at = bp_clock_civil(wall_ns);
    unsigned microseconds = (unsigned)(wall_ns % BP_NS_PER_SEC / 1000);
    /* The remainders change nothing: they show the compiler that the text fits. */
    (void)snprintf(out, BP_CLOCK_ISO_BYTES, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ", at.year % 10000,
                   at.month % 100, at.day % 100, at.hour % 100, at.minute % 100, at.second % 100,
                   microseconds % 1000000);
}

void bp_clock_format_name(uint64_t wall_ns, char out[BP_CLOCK_NAME_BYTES]) {
    bp_civil_time at = bp_clock_civil(wall_ns);
    (void)snprintf(out, BP_CLOCK_NAME_BYTES, "%04u-%02u-%02uT%02u-%02u-%02uZ", at.year % 10000,
                   at.month % 100, at.day % 100, at.hour % 100, at.minute % 100, at.second % 100);
}

/* Reads digits, exactly `count` of them, and moves on. */
static bool take_digits(const char **at, size_t count, unsigned max, unsigned *ret_value) {
    unsigned value = 0;
    for (size_t i = 0; i < count; i++) {
        if (**at < '0' || **at > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(*(*at)++ - '0');
    }
    *ret_value = value;
    return value <= max;
}

uint64_t bp_clock_secs(bp_civil_time at) {
    uint64_t past = at.year - 1;
    uint64_t leap_days = past / 4 - past / 100 + past / 400 - (1969 / 4 - 1969 / 100 + 1969 / 400);
    uint64_t days =
        (uint64_t)(at.year - 1970) * 365 + leap_days + days_before(at.year, at.month) + at.day - 1;
    return days * 86400 + at.hour * 3600u + at.minute * 60u + at.second;
}

bool bp_clock_parse(const char *text, uint64_t *ret_wall_ns) {
    static const struct {
        unsigned digits, min, max;
        char after, or_after;
    } fields[] = {{4, 1970, 2554, '-', '-'}, {2, 1, 12, '-', '-'}, {2, 1, 31, 'T', 'T'},
                  {2, 0, 23, ':', '-'},      {2, 0, 59, ':', '-'}, {2, 0, 60, '.', 'Z'}};
    unsigned values[6];
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!take_digits(&text, fields[i].digits, fields[i].max, &values[i]) ||
            values[i] < fields[i].min ||
            (*text != fields[i].after && *text != fields[i].or_after)) {
            return false;
        }
        text += *text != 'Z';
    }
    uint64_t fraction_ns = 0;
    for (uint64_t unit = BP_NS_PER_SEC / 10; *text >= '0' && *text <= '9'; unit /= 10) {
        fraction_ns += (uint64_t)(*text++ - '0') * unit;
    }
    uint64_t secs = bp_clock_secs(
        (bp_civil_time){values[0], values[1], values[2], values[3], values[4], values[5]});
    if (*text != 'Z' || secs >= UINT64_MAX / BP_NS_PER_SEC) {
        return false;
    }
    *ret_wall_ns = secs * BP_NS_PER_SEC + fraction_ns;
    return true;
}
