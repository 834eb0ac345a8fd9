#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static uint64_t read_clock(clockid_t id) {
    struct timespec now = {0};
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * BP_NS_PER_SEC + (uint64_t)now.tv_nsec;
}

uint64_t bp_clock_monotonic_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t bp_clock_wall_ns(void) {
    return read_clock(CLOCK_REALTIME);
}

bp_instant bp_clock_now(void) {
    return (bp_instant){.monotonic_ns = bp_clock_monotonic_ns(), .wall_ns = bp_clock_wall_ns()};
}

void bp_clock_sleep_until(uint64_t deadline_ns) {
    /* nanosleep in a loop: clock_nanosleep, which takes a deadline, is missing on macOS. */
    for (;;) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (now_ns >= deadline_ns) {
            return;
        }
        uint64_t left_ns = deadline_ns - now_ns;
        struct timespec left = {.tv_sec = (time_t)(left_ns / BP_NS_PER_SEC),
                                .tv_nsec = (long)(left_ns % BP_NS_PER_SEC)};
        (void)nanosleep(&left, NULL);
    }
}

/* The last second of year 9999: what four digits of a year can still say. */
static const uint64_t last_second = 253402300799u;

static struct tm civil_time(uint64_t wall_ns) {
    uint64_t seconds = wall_ns / BP_NS_PER_SEC;
    time_t when = (time_t)(seconds > last_second ? last_second : seconds);
    struct tm civil = {0};
    (void)gmtime_r(&when, &civil);
    return civil;
}

void bp_clock_format_iso(uint64_t wall_ns, char out[BP_CLOCK_ISO_BYTES]) {
    struct tm civil = civil_time(wall_ns);
    unsigned microseconds = (unsigned)(wall_ns % BP_NS_PER_SEC / 1000);
    (void)snprintf(out, BP_CLOCK_ISO_BYTES, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ",
                   (unsigned)(civil.tm_year + 1900) % 10000, (unsigned)(civil.tm_mon + 1) % 100,
                   (unsigned)civil.tm_mday % 100, (unsigned)civil.tm_hour % 100,
                   (unsigned)civil.tm_min % 100, (unsigned)civil.tm_sec % 100, microseconds);
}

void bp_clock_format_name(uint64_t wall_ns, char out[BP_CLOCK_NAME_BYTES]) {
    struct tm civil = civil_time(wall_ns);
    (void)snprintf(out, BP_CLOCK_NAME_BYTES, "%04u-%02u-%02uT%02u-%02u-%02uZ",
                   (unsigned)(civil.tm_year + 1900) % 10000, (unsigned)(civil.tm_mon + 1) % 100,
                   (unsigned)civil.tm_mday % 100, (unsigned)civil.tm_hour % 100,
                   (unsigned)civil.tm_min % 100, (unsigned)civil.tm_sec % 100);
}
