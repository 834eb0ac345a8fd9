/*
 * The values of a capture of the whole machine: each thread, each cgroup, and the pressure.
 * model/machine_threads.h turns them into JSON.
 */
#ifndef BP_PLATFORM_MACHINE_THREADS_H
#define BP_PLATFORM_MACHINE_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "platform/thread_reading.h"

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

/* The use of a thread over the window of a capture. */
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
    uint64_t tgid;
    char process_name[64];    /* any bytes */
    const char *cgroup;       /* borrowed; NULL when unknown */
    bool is_self;             /* of the process that captures */
    const char *heap_failure; /* the name of why the heap is not measured; static, NULL: none */
    bp_machine_window window;
    bp_thread_reading read;
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
    X(CPU_SESSION_PERIODS, "cpu", "session_periods")                                               \
    X(CPU_SESSION_THROTTLED, "cpu", "session_throttled_periods")                                   \
    X(CPU_QUOTA, "cpu", "quota_ns")                                                                \
    X(CPU_PERIOD, "cpu", "period_ns")                                                              \
    X(MEMORY_CURRENT, "memory", "current_bytes")                                                   \
    X(MEMORY_PEAK, "memory", "peak_bytes")                                                         \
    X(MEMORY_HIGH, "memory", "high_bytes")                                                         \
    X(MEMORY_MAX, "memory", "max_bytes")                                                           \
    X(MEMORY_FILE, "memory", "file_bytes")                                                         \
    X(MEMORY_SHMEM, "memory", "shmem_bytes")                                                       \
    X(MEMORY_SWAP, "memory", "swap_bytes")                                                         \
    X(MEMORY_SWAP_MAX, "memory", "swap_max_bytes")                                                 \
    X(MEMORY_OOM_KILLS, "memory", "oom_kills")                                                     \
    X(MEMORY_SESSION_OOM_KILLS, "memory", "session_oom_kills")                                     \
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
