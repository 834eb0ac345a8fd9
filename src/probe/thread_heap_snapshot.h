/*
 * The counters of all threads of one process at one instant. Linux only.
 */
#ifndef BP_PROBE_THREAD_HEAP_SNAPSHOT_H
#define BP_PROBE_THREAD_HEAP_SNAPSHOT_H

#include <stdbool.h>
#include <sys/types.h>

#include "platform/task.h"
#include "probe/jemalloc_find.h"

/* Starts zeroed, with the first three set. */
typedef struct bp_heap_target {
    pid_t pid;
    bp_task *task; /* borrowed */
    bp_heap_prober_options options;
    bp_jemalloc_found found; /* with its failure, threads are listed and not measured */
    bool has_memory;
    int memory_fd; /* /proc/<pid>/mem, which stays with the program that it was opened on */
} bp_heap_target;

/* Finds the jemalloc of the process, unless `found` has a failure already. Errors as those of
 * bp_jemalloc_find, and NO_PROCESS, DENIED. */
bugpack_status bp_heap_target_find(bp_heap_prober *prober, bp_heap_target *target,
                                   bugpack_error *error);

/* Whether the process still runs the program in which the jemalloc was found: an exec leaves it its
 * pid and start time. True where it cannot be determined. */
bool bp_heap_target_is_same(const bp_heap_target *target);

/* Releases what find has found; the task stays open. */
void bp_heap_target_release(bp_heap_target *target);

/*
 * Lists the threads and reads the counters of each. A reused pid and an exec are noticed, as
 * NO_PROCESS; a thread that was not there before and after is left out. Errors: NO_PROCESS,
 * NO_MEMORY, IO, DENIED.
 */
bugpack_status bp_heap_snapshot_take(const bp_heap_target *target,
                                     bp_thread_heap_snapshot *ret_snapshot, bugpack_error *error);

#endif
