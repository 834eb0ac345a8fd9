/*
 * The counters of all threads of one process at one instant. Linux only.
 */
#ifndef BP_PROBE_THREAD_HEAP_SNAPSHOT_H
#define BP_PROBE_THREAD_HEAP_SNAPSHOT_H

#include "probe/thread_heap_target.h"

/*
 * Lists the threads and reads the counters of each. The task's own identity check stands before and
 * behind the reading, so that nothing of a process that has got the same id since can get in, nor
 * of a program that it has run since (which is NO_PROCESS as well); a thread that was not there
 * both times has no line. Errors: NO_PROCESS, NO_MEMORY, IO, DENIED.
 */
bugpack_status bp_heap_snapshot_take(const bp_heap_target *target,
                                     bp_thread_heap_snapshot *ret_snapshot, bugpack_error *error);

#endif
