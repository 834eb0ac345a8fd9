/*
 * The values of a capture of the whole machine: each thread, each cgroup, and the pressure.
 * model/machine_threads.h turns them into JSON.
 */
#ifndef BP_PLATFORM_MACHINE_THREADS_H
#define BP_PLATFORM_MACHINE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The groups of a thread's counters. A group has one source and is measured as a whole: when part
 * of it could not be read, none of it is measured. X(constant, name in the JSON)
 */
#define BP_MACHINE_GROUPS(X)                                                                       \
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

typedef enum bp_machine_group {
#define BP_MACHINE_GROUP_CONSTANT(constant, name) BP_MACHINE_##constant,
    BP_MACHINE_GROUPS(BP_MACHINE_GROUP_CONSTANT)
#undef BP_MACHINE_GROUP_CONSTANT
        BP_MACHINE_GROUP_COUNT
} bp_machine_group;

/* Every counter, with its unit in its name.
 * X(constant, group, key in the JSON, key in the kernel's file or "") */
#define BP_MACHINE_COUNTERS(X)                                                                     \
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

typedef enum bp_machine_counter {
#define BP_MACHINE_COUNTER_CONSTANT(constant, group, key, kernel_key) BP_MACHINE_##constant,
    BP_MACHINE_COUNTERS(BP_MACHINE_COUNTER_CONSTANT)
#undef BP_MACHINE_COUNTER_CONSTANT
        BP_MACHINE_COUNTER_COUNT
} bp_machine_counter;

/* Why a group of a thread that could have it was not measured. X(constant, name in the JSON) */
#define BP_MACHINE_CAUSES(X)                                                                       \
    X(DENIED, "denied")                                                                            \
    X(VANISHED, "vanished")   /* the thread ended meanwhile */                                     \
    X(MISSING, "missing")     /* this kernel has no such file */                                   \
    X(DISABLED, "disabled")   /* this kernel does not count it, or not now */                      \
    X(MALFORMED, "malformed") /* the file does not read as its format says */                      \
    X(OTHER, "other")         /* another errno, or a failure of the heap probe */

typedef enum bp_machine_cause {
#define BP_MACHINE_CAUSE_CONSTANT(constant, name) BP_MACHINE_CAUSE_##constant,
    BP_MACHINE_CAUSES(BP_MACHINE_CAUSE_CONSTANT)
#undef BP_MACHINE_CAUSE_CONSTANT
        BP_MACHINE_CAUSE_COUNT
} bp_machine_cause;

/* Linux is built for at most 8192 CPUs (NR_CPUS_RANGE_END of arch/x86/Kconfig). */
#define BP_CPU_MAX 8192u

/* A set of CPUs, a bit each. */
typedef struct bp_cpu_list {
    uint64_t bits[BP_CPU_MAX / 64];
} bp_cpu_list;

/* What a thread used over the window of a capture. */
typedef struct bp_machine_window {
    bool is_known;
    bool is_born; /* in the window: then since its birth */
    uint64_t elapsed_ns, cpu_ns;
    /* Of the first thread of a process: of the whole, with threads that have ended; and of children
     * that it waited for in the window. */
    bool has_process;
    uint64_t process_ns, children_ns;
} bp_machine_window;

/* One thread. All zero is one of which nothing is known. */
typedef struct bp_machine_thread {
    uint64_t tgid, tid;
    char process_name[64]; /* any bytes */
    char name[64];
    const char *cgroup; /* borrowed; NULL when unknown */
    bool has_start;
    uint64_t start_ticks; /* since boot */
    bool is_kernel_thread;
    bool is_self; /* of the process that captures */
    /* Of `stat`, and measured with it. */
    char state;
    int64_t priority, nice;
    uint64_t policy, rt_priority, processor;
    bool has_rss; /* of the process, by status: also where its smaps_rollup is denied */
    uint64_t rss_kb;
    bool has_affinity;
    bp_cpu_list affinity;
    const char *heap_failure; /* the name of why the heap is not measured; static, NULL: none */
    bp_machine_window window;
    uint32_t measured; /* a bit for each group */
    uint64_t counters[BP_MACHINE_COUNTER_COUNT];
} bp_machine_thread;

/* A figure of a cgroup: unknown, or without a limit, or a number. */
typedef struct bp_machine_figure {
    bool is_known;
    bool is_unlimited;
    uint64_t value;
} bp_machine_figure;

/* X(constant, group in the JSON, key) */
#define BP_CGROUP_FIGURES(X)                                                                       \
    X(CPU_USAGE, "cpu", "usage_ns")                                                                \
    X(CPU_USER, "cpu", "user_ns")                                                                  \
    X(CPU_SYSTEM, "cpu", "system_ns")                                                              \
    X(CPU_PERIODS, "cpu", "periods")                                                               \
    X(CPU_THROTTLED_PERIODS, "cpu", "throttled_periods")                                           \
    X(CPU_THROTTLED, "cpu", "throttled_ns")                                                        \
    X(CPU_QUOTA, "cpu", "quota_ns")                                                                \
    X(CPU_PERIOD, "cpu", "period_ns")                                                              \
    X(MEMORY_CURRENT, "memory", "current_bytes")                                                   \
    X(MEMORY_PEAK, "memory", "peak_bytes")                                                         \
    X(MEMORY_HIGH, "memory", "high_bytes")                                                         \
    X(MEMORY_MAX, "memory", "max_bytes")                                                           \
    X(MEMORY_SWAP, "memory", "swap_bytes")                                                         \
    X(MEMORY_OOM_KILLS, "memory", "oom_kills")                                                     \
    X(PIDS_CURRENT, "pids", "current")                                                             \
    X(PIDS_PEAK, "pids", "peak")                                                                   \
    X(PIDS_MAX, "pids", "max")

typedef enum bp_cgroup_figure {
#define BP_CGROUP_CONSTANT(constant, group, key) BP_CGROUP_##constant,
    BP_CGROUP_FIGURES(BP_CGROUP_CONSTANT)
#undef BP_CGROUP_CONSTANT
        BP_CGROUP_FIGURE_COUNT
} bp_cgroup_figure;

/* One line of a pressure file: shares in hundredths of a percent, and stalled microseconds. */
typedef struct bp_pressure_line {
    bool is_known;
    uint64_t avg10_centi, avg60_centi, avg300_centi;
    uint64_t total_us;
} bp_pressure_line;

/* cpu, memory, io and irq, in this order. */
#define BP_PRESSURE_COUNT 4

typedef struct bp_pressure {
    bp_pressure_line some, full;
} bp_pressure;

typedef struct bp_machine_cgroup {
    char *path; /* as in /proc/<pid>/cgroup; owned by the maker */
    uint64_t thread_count;
    bp_machine_figure figures[BP_CGROUP_FIGURE_COUNT];
    bp_pressure pressure[BP_PRESSURE_COUNT];
} bp_machine_cgroup;

#endif
