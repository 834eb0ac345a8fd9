/*
 * What the threads of a job queue share with the calls that feed it.
 */
#ifndef BP_REPORT_QUEUE_PRIVATE_H
#define BP_REPORT_QUEUE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "platform/fd_reserve.h"
#include "report/queue.h"

struct bp_job_queue {
    const bp_report_context *context;
    bp_runner *runner;
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
};

/* A job without this function is a report, or another task of the worker. */
static inline bool bp_job_is_for_worker(const bp_job *job) {
    return job->type->snapshotted == NULL;
}

static inline void bp_job_append(bp_job **list, bp_job *job) {
    while (*list != NULL) {
        list = &(*list)->next;
    }
    job->next = NULL;
    *list = job;
}

/* The lock is held. */
static inline void bp_job_unlink(bp_job_queue *queue, const bp_job *job) {
    bp_job **link = &queue->first;
    while (*link != job) {
        link = &(*link)->next;
    }
    *link = job->next;
}

static inline void bp_job_queue_wake_all(bp_job_queue *queue) {
    (void)pthread_cond_broadcast(&queue->changed);
    (void)pthread_cond_signal(&queue->copying);
}

/* What bp_job_queue_is_own_thread asks for; each of the two threads calls it once. */
void bp_job_queue_own_thread(const bp_job_queue *queue);

/* The two threads; the argument is the queue. */
void *bp_job_queue_work(void *queue);
void *bp_job_queue_copy_rings(void *queue);

/* Ends the jobs that were cancelled while they wait. Worker; the argument is the queue. */
void bp_job_queue_end_cancelled(void *queue);

#endif
