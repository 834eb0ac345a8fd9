/*
 * What the macOS kernel's plain integers mean. Pure, without a system header, tested everywhere.
 *
 * The kernel counts in three units, and which one is not always said: a task's times and a
 * process's start are in ticks of its clock, Mach's times of a thread are seconds and microseconds,
 * and libproc's times of a thread are nanoseconds (fill_taskthreadinfo in
 * xnu/osfmk/kern/bsd_kern.c). On Intel a tick is a nanosecond, on Apple silicon 125/3 of one.
 */
#ifndef BP_PLATFORM_DARWIN_CONVERT_H
#define BP_PLATFORM_DARWIN_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/task.h"

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

/* A process as the kernel counts it, and when that was by bp_clock_monotonic_ns. */
typedef struct bp_darwin_counters {
    uint64_t taken_ns;
    uint64_t user_ticks, system_ticks; /* of all threads, ended ones too */
    uint64_t resident_bytes, virtual_bytes;
} bp_darwin_counters;

/* The snapshot of a process, in nanoseconds, without threads and uptime. */
bp_task_snapshot bp_darwin_snapshot(const bp_darwin_counters *counters, bp_darwin_tick tick);

/*
 * How old a process is, the time asleep included. The clock that stands still while the machine
 * sleeps gives the least that it can be, and all sleep since boot on top of it the most; the wall
 * clock, which somebody may have set meanwhile, only chooses between the two. On a machine that has
 * not slept there is nothing to choose.
 */
typedef struct bp_darwin_age {
    bool has_awake; /* else the wall clock alone must do */
    uint64_t awake_ns, asleep_since_boot_ns;
    uint64_t started_wall_ns, now_wall_ns;
} bp_darwin_age;
uint64_t bp_darwin_age_ns(const bp_darwin_age *age);

/* Copies a text of at most `capacity` bytes, which need not be ended by NUL; cut to fit. */
void bp_darwin_copy_name(char out[64], const char *text, size_t capacity);

/*
 * The letter of a process's state, from p_stat (sys/proc.h: SIDL 1 to SZOMB 5) and the number of
 * its threads that run: the kernel calls every process that is not stopped a running one. 0 when
 * the status is none that we know.
 */
char bp_darwin_state(uint32_t status, int32_t running_threads);

#endif
