/*
 * The worker: one thread that takes reports, one after the other, so that no trigger has to wait.
 */
#ifndef BP_TRIGGER_WORKER_H
#define BP_TRIGGER_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

typedef struct bp_worker bp_worker;

/* One piece of work, run on the worker's thread; it owns `job` and frees it. */
typedef void bp_worker_run(void *job, void *context);

/* Starts the thread, under a name of at most 15 bytes, borrowed for ever. At most `queue_max` jobs
 * wait, besides the one that runs. */
bugpack_status bp_worker_new(const char *name, bp_worker_run *run, void *context, size_t queue_max,
                             bp_worker **ret_worker, bugpack_error *error);

/*
 * Queues a job and returns; ownership passes on success only. Errors: BUSY when the queue is full,
 * CLOSED once a stop has begun. Any thread.
 */
bugpack_status bp_worker_submit(bp_worker *worker, void *job);

/* Takes a job out of the queue again: true, and it is the caller's, if it waits there. Any thread.
 */
bool bp_worker_withdraw(bp_worker *worker, const void *job);

/* Refuses new jobs, runs all that were queued, ends the thread and frees the worker. NULL is fine.
 */
void bp_worker_stop(bp_worker *worker);

/* Whether the calling thread is a worker: then it must not wait for one. */
bool bp_worker_is_current_thread(void);

/* Whether the calling thread is this very worker: then it cannot stop it. It is only compared, so
 * it may be one that is gone. */
bool bp_worker_is_own_thread(const bp_worker *worker);

#endif
