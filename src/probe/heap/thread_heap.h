/*
 * The allocation counters of every thread of another process, which does not cooperate and, with
 * glibc, is not stopped either. docs/ARCHITECTURE.md explains how they are found.
 */
#ifndef BP_HEAP_THREAD_HEAP_H
#define BP_HEAP_THREAD_HEAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "model/thread_heap.h"

typedef struct bp_heap_prober_options {
    /* The bugpack command, which calibrates a stripped library (heap/calibration.h); copied. NULL:
     * none is calibrated. */
    const char *calibrator_path;
    uint32_t calibration_timeout_ms;
    /* Stop a thread for an instant where its C library does not give its thread pointer. */
    bool allow_stop;
    /* No further file of a process is examined after so long: it can have thousands of them, each
     * made to take as long as it can. */
    uint32_t search_timeout_ms;
} bp_heap_prober_options;

#define BP_HEAP_PROBER_OPTIONS_INIT                                                                \
    { NULL, 3000u, true, 5000u }

/* One serves any number of processes, so that each file is examined, and each library calibrated,
 * once. One thread at a time. */
typedef struct bp_heap_prober bp_heap_prober;

bugpack_status bp_heap_prober_new(const bp_heap_prober_options *options,
                                  bp_heap_prober **ret_prober, bugpack_error *error);
void bp_heap_prober_free(bp_heap_prober *prober);

/* The number of readings, and when to end early. */
typedef struct bp_heap_plan {
    uint32_t snapshot_count; /* at least 1 */
    uint32_t interval_ms;    /* from one to the next */
    int stop_fd;             /* when it becomes readable, no further snapshot is begun; -1: none */
} bp_heap_plan;

#define BP_HEAP_PLAN_INIT                                                                          \
    { 1, 0, -1 }

/*
 * Reads the counters of process `pid`. Counters that cannot be read are a result and no error: the
 * reading then has a failure with a reason and, where the process exists, one snapshot with its
 * threads, unmeasured, at zero. A thread that ends meanwhile is skipped.
 *
 * Errors: NO_MEMORY, IO. The caller releases `ret_reading`. It blocks for the intervals.
 */
bugpack_status bp_heap_probe(bp_heap_prober *prober, pid_t pid, const bp_heap_plan *plan,
                             bp_thread_heap_reading *ret_reading, bugpack_error *error);

/*
 * A sentence for a failure without one of its own: what failed, why, and, where the system refused,
 * what to do. `yama_scope` is the value of /proc/sys/kernel/yama/ptrace_scope, -1 without Yama.
 * Pure.
 */
void bp_heap_advice(bp_heap_failure failure, int system_errno, int yama_scope, char *out,
                    size_t out_bytes);

/* Advice where the system refuses to show another process, and Yama is not why. */
#define BP_ADVICE_DENIED                                                                           \
    "the process is another user's, or protects itself, or a container forbids it: run as its "    \
    "user or as root; in a container allow it CAP_SYS_PTRACE"

#endif
