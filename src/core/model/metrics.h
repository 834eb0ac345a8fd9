/*
 * runtime-metrics.json: what the process and each of its threads cost over a window. Pure
 * arithmetic on two snapshots, for the samplers of all systems.
 */
#ifndef BP_MODEL_METRICS_H
#define BP_MODEL_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "platform/child_watch.h"
#include "platform/task.h"

/*
 * The share of one CPU, in percent, used between two readings of a counter. Any unit, the same for
 * all three. A counter that runs backwards counts as 0, a window of 0 as one unit.
 */
double bp_metrics_cpu_percent(uint64_t before, uint64_t after, uint64_t elapsed);

typedef struct bp_thread_metrics {
    uint64_t tid;
    char name[64];
    /* Over the window, also of a thread that was born in it. */
    bool has_cpu; /* false: the first snapshot lacks it, and it was born before; all below is 0 */
    double cpu_percent;
    uint64_t cpu_ns;
    bool is_born; /* in the window */
    bool has_age; /* of those that were, where the time of birth is known */
    uint64_t age_ns;
    /* As far as both snapshots have them. */
    bool has_times, has_switches;
    uint64_t user_ns, system_ns, page_faults, voluntary_switches, involuntary_switches;
    bool has_faults;            /* of those that were awake at both ends, or had some */
    bool has_run_delay, has_io; /* of those that were awake at both ends */
    uint64_t run_delay_ns;      /* how long it was ready to run, and did not */
    uint64_t read_chars, written_chars, write_calls;
} bp_thread_metrics;

/* The memory, threads and open files of a process within a window. */
typedef struct bp_memory_sample {
    uint64_t taken_ns; /* monotonic */
    uint64_t rss_kb, vm_size_kb, thread_count;
    uint64_t file_count; /* of the first process; 0: not known */
    bool has_children;
    uint64_t child_count; /* the same */
} bp_memory_sample;
#define BP_METRICS_MEMORY_MAX 16

typedef struct bp_metrics {
    uint64_t sample_window_ms; /* the time that really passed */
    double cpu_percent;
    /* CPU time of the process that no thread has which was there at the end. 0 where rounding could
     * explain it: a unit of the counters for each thread that ran, and one for the process. */
    bool has_ended_threads; /* the CPU time of every thread that is there is known */
    uint64_t ended_threads_ns;
    bool has_memory;
    uint64_t rss_kb, vm_size_kb;
    bp_memory_sample memory[BP_METRICS_MEMORY_MAX]; /* as far as they were taken; oldest first */
    size_t memory_count;
    bp_children children; /* as far as anybody looked at them */
    bool has_uptime;
    double uptime_secs;
    bp_thread_metrics *threads; /* those alive at the second snapshot, ascending by tid */
    size_t thread_count;
    /* Gone between the snapshots, or while one was read. The least that ended: of a thread that was
     * born and ended in between the system keeps no trace. */
    size_t vanished_count;
    uint64_t began_ns, ended_ns; /* when the snapshots were taken, monotonic */
    size_t unread_count;         /* descendants whose cost is not in these numbers, at least */
} bp_metrics;

/*
 * Computes the metrics of a window from two snapshots of a process with the same unit; `after` has
 * the names. A thread that `before` lacks (by tid and birth) was born in the window. Thread arrays
 * are sorted in place; those that are sorted already are only read, so threads may share them.
 */
bugpack_status bp_metrics_compute(bp_task_snapshot *before, bp_task_snapshot *after,
                                  bp_metrics *ret_metrics, bugpack_error *error);
/* Sorts the threads of a snapshot as bp_metrics_compute does: before it is shared. */
void bp_metrics_sort_threads(bp_task_snapshot *snapshot);
void bp_metrics_release(bp_metrics *metrics);

/* How far an end of a window may be from its trigger and still be said to be at it. */
#define BP_METRICS_AT_TRIGGER_NS (50 * BP_NS_PER_MS)

/* Says for the manifest where the window is relative to its trigger (monotonic), and at least how
 * many threads ended in it. */
void bp_metrics_describe(const bp_metrics *metrics, uint64_t triggered_ns, char *out,
                         size_t out_bytes);

/* Appends runtime-metrics.json. `platform` is bp_machine_platform(). */
bugpack_status bp_metrics_print(const bp_metrics *metrics, const char *platform, bp_buffer *out,
                                bugpack_error *error);

/* Appends the form for metrics that are not available, with the reason. */
bugpack_status bp_metrics_print_unavailable(const char *platform, const char *reason,
                                            bp_buffer *out, bugpack_error *error);

#endif
