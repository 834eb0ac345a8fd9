/*
 * The allocation counters of every thread of another process, which was never asked for them and,
 * with glibc, is not stopped either.
 *
 * jemalloc keeps for each thread how much it has allocated and freed. A counter's address is the
 * thread's pointer, plus where jemalloc's thread-local block lies from there (a constant for an
 * executable, a slot that the loader filled for a library), plus the counter's place in the block
 * (from debug data, or from a calibration). docs/ARCHITECTURE.md has the whole way.
 */
#ifndef BP_PROBE_THREAD_HEAP_H
#define BP_PROBE_THREAD_HEAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "model/thread_heap.h"

/*
 * What is known of the files that processes run: which holds a jemalloc, and where its counters
 * are. One serves any number of processes and threads, so that each file is looked at, and each
 * library calibrated, once.
 */
typedef struct bp_heap_prober bp_heap_prober;

typedef struct bp_heap_prober_options {
    /* The bugpack command, which calibrates a stripped library (probe/calibration.h); copied. NULL:
     * only calibrations that are cached are used. */
    const char *calibrator_path;
    uint32_t calibration_timeout_ms;
    bool use_cache; /* read and write the user's cache of calibrations */
    /* Stop a thread for an instant where its C library does not tell its thread pointer. */
    bool allow_stop;
    uint32_t stop_timeout_ms; /* per thread */
    /* No further file of a process is looked at after so long: it can have thousands of them, each
     * made to take as long as it can. */
    uint32_t search_timeout_ms;
} bp_heap_prober_options;

#define BP_HEAP_PROBER_OPTIONS_INIT                                                                \
    { NULL, 3000u, true, true, 200u, 5000u }

bugpack_status bp_heap_prober_new(const bp_heap_prober_options *options,
                                  bp_heap_prober **ret_prober, bugpack_error *error);
void bp_heap_prober_free(bp_heap_prober *prober);

/* How often to read, and when to end early. */
typedef struct bp_heap_plan {
    uint32_t snapshot_count; /* at least 1 */
    uint32_t interval_ms;    /* from one to the next */
    int stop_fd;             /* when it becomes readable, no further snapshot is begun; -1: none */
} bp_heap_plan;

#define BP_HEAP_PLAN_INIT                                                                          \
    { 1, 0, -1 }

/*
 * Reads the counters of process `pid`. That they cannot be had is a result and no error: the
 * reading then has a failure with a reason, and, where the process is there, one snapshot with its
 * threads, unmeasured, at zero. A thread that ends in the midst costs only itself.
 *
 * Errors: NO_MEMORY, IO. `ret_reading` is the caller's to release. Any thread; it blocks for the
 * intervals, and holds back the caller's other probes while a file is looked at for the first time.
 */
bugpack_status bp_heap_probe(bp_heap_prober *prober, pid_t pid, const bp_heap_plan *plan,
                             bp_thread_heap_reading *ret_reading, bugpack_error *error);

#endif
