/* A window: two snapshots of one process, and its cost between them. */
#ifndef BP_PROCESS_SAMPLER_H
#define BP_PROCESS_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "model/metrics.h"
#include "platform/task.h"

/* A process and the first snapshot of its open window, if one is open. One thread at a time. */
typedef struct bp_sampler bp_sampler;

/* Opens a process (0: our own). Errors as bp_task_open. */
bugpack_status bp_sampler_open(pid_t pid, bool with_descendants, bp_sampler **ret_sampler,
                               bugpack_error *error);
void bp_sampler_close(bp_sampler *sampler);

/* The process, borrowed: for its facts. */
bp_task *bp_sampler_task(bp_sampler *sampler);

/* Takes the first snapshot, and drops an earlier one that was never ended. */
bugpack_status bp_sampler_begin(bp_sampler *sampler, bugpack_error *error);

/* The same, but where the last window began so and at `since_ns` (monotonic) or later, this one
 * begins with it, too: reports that waited for each other share one first snapshot. It is kept for
 * that until bp_sampler_forget. */
bugpack_status bp_sampler_begin_since(bp_sampler *sampler, uint64_t since_ns, bugpack_error *error);
void bp_sampler_forget(bp_sampler *sampler);

/* When the open window began; monotonic. */
uint64_t bp_sampler_began_ns(const bp_sampler *sampler);

/* Takes a snapshot in between, with which the window ends where the process does not live until its
 * end. NO_PROCESS when it has ended. */
bugpack_status bp_sampler_keep(bp_sampler *sampler, bugpack_error *error);

/* Looks at the children of another process, for its window. True if some have begun or ended in it.
 */
bool bp_sampler_look(bp_sampler *sampler);

/* Takes the second snapshot and computes. The window is as long as the caller let it be. Where the
 * process has ended, with the last counters that are known of it: then the status is OK, and
 * `error` says that it has ended. */
bugpack_status bp_sampler_end(bp_sampler *sampler, bp_metrics *ret_metrics, bugpack_error *error);

#endif
