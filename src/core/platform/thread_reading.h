/*
 * One thread of any process, as its files show it from outside. platform/linux/thread_reader.h
 * reads it.
 */
#ifndef BP_PLATFORM_THREAD_READING_H
#define BP_PLATFORM_THREAD_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/linux/proc_text.h"
#include "platform/linux/thread_wait.h"

/*
 * The groups of a thread's counters. A group has one source and is measured as a whole: when part
 * of it could not be read, none of it is measured. X(constant, name in the JSON)
 */
#define BP_THREAD_GROUPS(X)                                                                        \
    X(STAT, "stat")                                                                                \
    X(SCHEDSTAT, "schedstat")                                                                      \
    X(STATUS, "status")                                                                            \
    X(IO, "io")                                                                                    \
    X(SCHED, "sched")                                                                              \
    X(WAKEUPS,                                                                                     \
      "wakeups") /* like the next two from `sched`, and only with kernel.sched_schedstats */       \
    X(WAITS, "waits")                                                                              \
    X(BLOCKS, "blocks")       /* since Linux 5.16 */                                               \
    X(MEMORY, "smaps_rollup") /* of first threads only: it is the whole process's */               \
    X(HEAP, "heap")           /* jemalloc's counters */

typedef enum bp_thread_group {
#define BP_GROUP_CONSTANT(constant, name) BP_GROUP_##constant,
    BP_THREAD_GROUPS(BP_GROUP_CONSTANT)
#undef BP_GROUP_CONSTANT
    /* Without counters, and not of a capture of the machine, except for the affinity. */
    BP_GROUP_SYSCALL,
    BP_GROUP_WAIT_CHANNEL,
    BP_GROUP_KERNEL_STACK,
    BP_GROUP_AFFINITY, /* of `status` too */
    BP_GROUP_COUNT,
    BP_MACHINE_GROUP_COUNT = BP_GROUP_SYSCALL
} bp_thread_group;

/* Every counter, with its unit in its name.
 * X(constant, group, key in the JSON, key in the kernel's file or "") */
#define BP_THREAD_COUNTERS(X)                                                                      \
    X(USER_CPU, STAT, "user_cpu_ns", "")                                                           \
    X(SYSTEM_CPU, STAT, "system_cpu_ns", "")                                                       \
    X(MINOR_FAULTS, STAT, "minor_faults", "")                                                      \
    X(MAJOR_FAULTS, STAT, "major_faults", "")                                                      \
    X(BLOCK_IO_DELAY, STAT, "block_io_delay_ns", "")                                               \
    X(RUN, SCHEDSTAT, "run_ns", "")                                                                \
    X(RUN_DELAY, SCHEDSTAT, "run_delay_ns", "")                                                    \
    X(TIMESLICES, SCHEDSTAT, "timeslices", "")                                                     \
    X(VOLUNTARY_SWITCHES, STATUS, "voluntary_switches", "voluntary_ctxt_switches")                 \
    X(INVOLUNTARY_SWITCHES, STATUS, "involuntary_switches", "nonvoluntary_ctxt_switches")          \
    X(READ_CHARS, IO, "read_chars", "rchar")                                                       \
    X(WRITTEN_CHARS, IO, "written_chars", "wchar")                                                 \
    X(READ_CALLS, IO, "read_calls", "syscr")                                                       \
    X(WRITE_CALLS, IO, "write_calls", "syscw")                                                     \
    X(READ_BYTES, IO, "read_bytes", "read_bytes")                                                  \
    X(WRITTEN_BYTES, IO, "written_bytes", "write_bytes")                                           \
    X(CANCELLED_BYTES, IO, "cancelled_bytes", "cancelled_write_bytes")                             \
    X(EXEC_RUNTIME, SCHED, "exec_runtime_ns", "sum_exec_runtime")                                  \
    X(SWITCHES, SCHED, "switches", "nr_switches")                                                  \
    X(MIGRATIONS, SCHED, "migrations", "nr_migrations")                                            \
    X(WAKEUPS_ALL, WAKEUPS, "wakeups", "nr_wakeups")                                               \
    X(WAKEUPS_SYNC, WAKEUPS, "sync", "nr_wakeups_sync")                                            \
    X(WAKEUPS_MIGRATE, WAKEUPS, "migrate", "nr_wakeups_migrate")                                   \
    X(WAKEUPS_LOCAL, WAKEUPS, "local", "nr_wakeups_local")                                         \
    X(WAKEUPS_REMOTE, WAKEUPS, "remote", "nr_wakeups_remote")                                      \
    X(WAKEUPS_AFFINE, WAKEUPS, "affine", "nr_wakeups_affine")                                      \
    X(WAKEUPS_AFFINE_ATTEMPTS, WAKEUPS, "affine_attempts", "nr_wakeups_affine_attempts")           \
    X(WAIT_SUM, WAITS, "wait_sum_ns", "wait_sum")                                                  \
    X(WAIT_MAX, WAITS, "wait_max_ns", "wait_max")                                                  \
    X(WAIT_COUNT, WAITS, "wait_count", "wait_count")                                               \
    X(SLEEP_SUM, WAITS, "sleep_sum_ns", "sum_sleep_runtime")                                       \
    X(SLEEP_MAX, WAITS, "sleep_max_ns", "sleep_max")                                               \
    X(IOWAIT_SUM, WAITS, "iowait_sum_ns", "iowait_sum")                                            \
    X(IOWAIT_COUNT, WAITS, "iowait_count", "iowait_count")                                         \
    X(BLOCK_SUM, BLOCKS, "block_sum_ns", "sum_block_runtime")                                      \
    X(BLOCK_MAX, BLOCKS, "block_max_ns", "block_max")                                              \
    X(RSS, MEMORY, "rss_kb", "Rss")                                                                \
    X(PSS, MEMORY, "pss_kb", "Pss")                                                                \
    X(SHARED_CLEAN, MEMORY, "shared_clean_kb", "Shared_Clean")                                     \
    X(SHARED_DIRTY, MEMORY, "shared_dirty_kb", "Shared_Dirty")                                     \
    X(PRIVATE_CLEAN, MEMORY, "private_clean_kb", "Private_Clean")                                  \
    X(PRIVATE_DIRTY, MEMORY, "private_dirty_kb", "Private_Dirty")                                  \
    X(REFERENCED, MEMORY, "referenced_kb", "Referenced")                                           \
    X(ANONYMOUS, MEMORY, "anonymous_kb", "Anonymous")                                              \
    X(ANON_HUGE, MEMORY, "anonymous_huge_kb", "AnonHugePages")                                     \
    X(SWAP, MEMORY, "swap_kb", "Swap")                                                             \
    X(SWAP_PSS, MEMORY, "swap_pss_kb", "SwapPss")                                                  \
    X(LOCKED, MEMORY, "locked_kb", "Locked")                                                       \
    X(ALLOCATED, HEAP, "allocated_bytes", "")                                                      \
    X(DEALLOCATED, HEAP, "deallocated_bytes", "")

typedef enum bp_thread_counter {
#define BP_COUNTER_CONSTANT(constant, group, key, kernel_key) BP_COUNTER_##constant,
    BP_THREAD_COUNTERS(BP_COUNTER_CONSTANT)
#undef BP_COUNTER_CONSTANT
        BP_COUNTER_COUNT
} bp_thread_counter;

/* Linux is built for at most 8192 CPUs (NR_CPUS_RANGE_END of arch/x86/Kconfig). */
#define BP_CPU_MAX 8192u

/* A set of CPUs, a bit each. */
typedef struct bp_cpu_list {
    uint64_t bits[BP_CPU_MAX / 64];
} bp_cpu_list;

/* Zeroed, nothing is known of it. */
typedef struct bp_thread_reading {
    uint64_t tid;
    uint32_t measured;          /* a bit for each group */
    int errnos[BP_GROUP_COUNT]; /* why other groups that were asked for are not, or 0 */
    bp_proc_stat stat;          /* the rest of the group STAT, start_ticks among it */
    /* Of `status`, whether or not the group is measured; 0: not known. */
    uint64_t own_tid; /* in the innermost pid namespace */
    uint64_t tracer_pid;
    bool has_signals;
    uint64_t caught_signals, blocked_signals; /* a bit for each, of signal 1 the lowest */
    bool has_rss;
    uint64_t rss_kb;       /* of the process: also where its smaps_rollup is denied */
    bp_cpu_list *affinity; /* owned */
    bp_thread_syscall syscall;
    char wait_channel[64]; /* "": it waits nowhere, or we may not know */
    char *kernel_stack;    /* lines, as the kernel writes them; owned */
    uint64_t counters[BP_COUNTER_COUNT];
} bp_thread_reading;

void bp_thread_reading_release(bp_thread_reading *thread);

static inline bool bp_thread_has(const bp_thread_reading *thread, bp_thread_group group) {
    return (thread->measured >> group & 1u) != 0;
}

#endif
