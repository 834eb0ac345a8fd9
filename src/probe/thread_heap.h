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
#include "probe/heap_prober.h"

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
