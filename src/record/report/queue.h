/*
 * The report jobs of a session, from the trigger to the result, and the two threads that work on
 * them: "bugpack-snap" copies the rings of each job as soon as it can, "bugpack-worker" writes one
 * report after the other.
 */
#ifndef BP_REPORT_QUEUE_H
#define BP_REPORT_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "platform/wake.h"
#include "report/job.h"

/* For queue.c and a test. */
typedef struct bp_job_queue {
    const bp_report_context *context;
    bp_runner runner;
    pthread_t worker, snapshotter;
    bool has_worker, has_snapshotter;
    bp_fd_reserve reserve;     /* the snapshot thread's, once it runs */
    atomic_bool has_cancelled; /* a job that waits may be cancelled */

    bp_lock lock;           /* of what follows, and of the queue's fields in each job */
    pthread_cond_t changed; /* for all but the snapshot thread, */
    pthread_cond_t copying; /* which waits for this: a trigger wakes one thread */
    bp_job *first;          /* all that have not ended, in the order of submission */
    bp_job *current;        /* the one whose report is being written */
    unsigned ending_count;  /* out of the list, and in their callbacks */
    uint64_t last_ticket;
    bool is_stopping; /* no job is accepted, and the worker ends when none is left */
    bool is_worker_done;
    bool is_copier_waiting; /* the snapshot thread is at `copying` */
    bool has_worked;        /* a report ended since bp_job_queue_has_worked was asked */
} bp_job_queue;

/* Starts the threads. The context is borrowed and must outlive the queue. */
bugpack_status bp_job_queue_new(const bp_report_context *context, bp_job_queue **ret_queue,
                                bugpack_error *error);

/*
 * Gives the job its ticket and takes it over; on a failure it is freed. `ret_ticket` and `error`
 * are optional. A manual job may join another one instead, and gets that one's ticket, as the
 * option when_busy or its type says. Jobs that yield wait behind the others; all others are at most
 * BUGPACK_REPORT_QUEUE_MAX beside the one that is being written. A job for its snapshot alone gets
 * no ticket, and is ended by its type's `snapshotted`. BUSY, CLOSED. Any thread.
 */
bugpack_status bp_job_queue_submit(bp_job_queue *queue, bp_job *job, uint64_t *ret_ticket,
                                   bugpack_error *error);

/* Cancels the report of this ticket, or with 0 all of them. False when there is none. Any thread.
 */
bool bp_job_queue_cancel(bp_job_queue *queue, uint64_t ticket);

/* Waits until all jobs have ended that were accepted before the call, callbacks included. False if
 * the monotonic `deadline_ns` (UINT64_MAX: none) passes first. Any thread but those of a queue. */
bool bp_job_queue_flush(bp_job_queue *queue, uint64_t deadline_ns);

/* Refuses new jobs, finishes all that were accepted (those that yield without a sample window), and
 * ends the threads. NULL is fine. */
void bp_job_queue_stop(bp_job_queue *queue);
void bp_job_queue_free(bp_job_queue *queue);

/* True if a report waits or is written, or one ended after the last call. The monitor. */
bool bp_job_queue_has_worked(bp_job_queue *queue);

/* True if the calling thread is one of this queue, which is only compared, or of any (NULL): then
 * it must not wait for it. */
bool bp_job_queue_is_own_thread(const bp_job_queue *queue);

#endif
