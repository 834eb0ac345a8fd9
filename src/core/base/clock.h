/*
 * Two clocks and how they are written. Intervals come from the monotonic clock, names and
 * timestamps from the wall clock; nothing is ever computed from a difference of wall times. The
 * monotonic clock stands still while the machine sleeps.
 */
#ifndef BP_BASE_CLOCK_H
#define BP_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define BP_NS_PER_SEC 1000000000ull
#define BP_NS_PER_MS 1000000ull

/* One instant on both clocks, in nanoseconds; `wall_ns` counts from 1970-01-01T00:00:00Z. */
typedef struct bp_instant {
    uint64_t monotonic_ns;
    uint64_t wall_ns;
} bp_instant;

bp_instant bp_clock_now(void);
uint64_t bp_clock_monotonic_ns(void);
uint64_t bp_clock_wall_ns(void);
/* The monotonic clock as of the system's last tick, as the next one. */
uint64_t bp_clock_monotonic_tick_ns(void);
/* The wall clock as of the system's last tick, where it has such a clock: at most a few
 * milliseconds late, at a fifth of the cost. */
uint64_t bp_clock_wall_tick_ns(void);

/* Any clock of the system; 0 when it cannot be read. */
uint64_t bp_clock_read_ns(clockid_t id);

/* The same length or instant for a system call. */
struct timespec bp_clock_timespec(uint64_t ns);

/* The time left until the monotonic clock shows `deadline_ns`, for poll(2): milliseconds, rounded
 * up, and 0 when it has passed. A very long wait is cut short: look at the clock after it. */
int bp_clock_poll_ms(uint64_t deadline_ns);

/* Sleeps until the monotonic clock shows `deadline_ns`, whatever signals arrive. */
void bp_clock_sleep_until(uint64_t deadline_ns);

/* A moment of UTC as people write it: month and day count from 1. */
typedef struct bp_civil_time {
    unsigned year, month, day, hour, minute, second;
} bp_civil_time;

/* The second of `wall_ns`: UTC, whatever TZ says, and without a lock. */
bp_civil_time bp_clock_civil(uint64_t wall_ns);

/* The reverse, in seconds since 1970, for years from 1970 on. A day that a month does not have
 * becomes one of the next month. */
uint64_t bp_clock_secs(bp_civil_time at);

/*
 * "2026-11-21T00:36:51.123456Z" with its NUL: UTC, whatever TZ says. Nanoseconds in 64 bits end in
 * 2554, so every time has a year of four digits.
 */
#define BP_CLOCK_ISO_BYTES 32
void bp_clock_format_iso(uint64_t wall_ns, char out[BP_CLOCK_ISO_BYTES]);

/* "2026-11-21T00-36-51Z" with its NUL: the form that file names carry. */
#define BP_CLOCK_NAME_BYTES 24
void bp_clock_format_name(uint64_t wall_ns, char out[BP_CLOCK_NAME_BYTES]);

/*
 * Reads either form, with up to nine digits of a fraction or none, at the start of a text. False
 * for all else, and for a time that 64 bits of nanoseconds do not hold. A day that a month does not
 * have becomes one of the next month.
 */
bool bp_clock_parse(const char *text, uint64_t *ret_wall_ns);

#endif
