/*
 * Values of the macOS kernel. Pure, without a system header, tested everywhere.
 *
 * A task's times and a process's start are in ticks (1 ns on Intel, 125/3 ns on Apple silicon),
 * Mach's times of a thread in seconds and microseconds.
 */
#ifndef BP_PLATFORM_DARWIN_CONVERT_H
#define BP_PLATFORM_DARWIN_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds of one tick, as a fraction. A denominator of 0 counts as 1. */
typedef struct bp_darwin_tick {
    uint32_t numer, denom;
} bp_darwin_tick;

/* A tick of a clock with `hertz`; false when that is 0 or over 32 bits. */
bool bp_darwin_tick_of(uint64_t hertz, bp_darwin_tick *ret_tick);

/* Rounded down, exact for every size that fits; a time over 584 years stays there. */
uint64_t bp_darwin_ticks_to_ns(uint64_t ticks, bp_darwin_tick tick);

/* A time_value of Mach's in nanoseconds; negative parts count as 0. */
uint64_t bp_darwin_time_value_ns(int32_t seconds, int32_t microseconds);

/* The sum, or the largest number. */
uint64_t bp_darwin_add(uint64_t a, uint64_t b);

/*
 * The age of a process, time asleep included. A clock that stops in sleep gives the lower bound;
 * adding all sleep since boot gives the upper bound. The wall clock, which may have been set
 * meanwhile, only chooses a value between the two.
 */
typedef struct bp_darwin_age {
    bool has_awake; /* else only the wall clock is known */
    uint64_t awake_ns, asleep_since_boot_ns;
    uint64_t started_wall_ns, now_wall_ns;
} bp_darwin_age;
uint64_t bp_darwin_age_ns(const bp_darwin_age *age);

/* Copies a text of at most `capacity` bytes, which need not be ended by NUL; cut to fit. */
void bp_darwin_copy_name(char out[64], const char *text, size_t capacity);

/*
 * Finds the arguments in the memory that KERN_PROCARGS2 shows of a process: how many arguments it
 * has, the path that was executed, the arguments, the environment. Each is ended by NUL, except for
 * a last one that was cut. The environment, which may hold secrets, is not part of the result
 * unless the process has overwritten the ends of its arguments. False when the memory is too short
 * or the count makes no sense.
 */
bool bp_darwin_parse_procargs(const char *memory, size_t memory_bytes, const char **ret_arguments,
                              size_t *ret_bytes);

#endif
