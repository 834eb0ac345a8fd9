#include <stdlib.h>

#include "base/status.h"
#include "platform/thread.h"
#include "report/queue_private.h"

/* The first manual job; with `may_join` one that others may share. The lock is held. */
static bp_job *find_manual(const bp_job_queue *queue, bool may_join) {
    bp_job *job = queue->first;
    while (job != NULL &&
           (!job->is_manual ||
            (may_join && (!job->is_shared || atomic_load(&job->token.is_cancelled))))) {
        job = job->next;
    }
    return job;
}

/* How many wait in the line that is bounded. The lock is held. */
static unsigned count_waiting(const bp_job_queue *queue) {
    unsigned count = 0;
    for (const bp_job *job = queue->first; job != NULL; job = job->next) {
        /* What is no report, as a recovery, takes no place of one. */
        count += job != queue->current && !job->yields && job->type->run == NULL &&
                 bp_job_is_for_worker(job);
    }
    return count;
}

static bugpack_status refuse(bugpack_status status, const char *why, bugpack_error *error) {
    return bp_fail(error, status, "no report was taken: %s", why);
}

/* The lock is held. */
static bugpack_status accept(bp_job_queue *queue, bp_job *job, uint64_t *ret_ticket,
                             bugpack_error *error) {
    bugpack_when_busy when_busy =
        job->is_manual ? queue->context->settings->when_busy : BUGPACK_WHEN_BUSY_QUEUE;
    bp_job *other = NULL;
    if (when_busy == BUGPACK_WHEN_BUSY_REFUSE && find_manual(queue, false) != NULL) {
        return refuse(BUGPACK_ERR_BUSY, "another one is under way", error);
    }
    if (when_busy == BUGPACK_WHEN_BUSY_COALESCE && job->is_shared) {
        other = find_manual(queue, true);
    }
    if (other != NULL) {
        *ret_ticket = other->ticket;
        bp_job_append(&other->joined, job);
        return BUGPACK_OK;
    }
    if (queue->is_stopping) {
        return refuse(BUGPACK_ERR_CLOSED, bugpack_status_name(BUGPACK_ERR_CLOSED), error);
    }
    if (!job->yields && count_waiting(queue) >= BUGPACK_REPORT_QUEUE_MAX) {
        return bp_fail(error, BUGPACK_ERR_BUSY, "no report was taken: %u wait already",
                       (unsigned)BUGPACK_REPORT_QUEUE_MAX);
    }
    if (job->type->run != NULL) {
        job->snapshot_state = BP_JOB_SNAPSHOT_DONE;
    } else {
        job->ticket = ++queue->last_ticket;
    }
    *ret_ticket = job->ticket;
    bp_job_append(&queue->first, job);
    return BUGPACK_OK;
}

/* The worker has nothing to do before the snapshot, whose thread then wakes it. */
static void wake_for(bp_job_queue *queue, bool needs_worker) {
    if (needs_worker) {
        bp_job_queue_wake_all(queue);
    } else {
        (void)pthread_cond_signal(&queue->copying);
    }
}

bugpack_status bp_job_queue_submit(bp_job_queue *queue, bp_job *job, uint64_t *ret_ticket,
                                   bugpack_error *error) {
    uint64_t ticket = 0;
    bp_lock_acquire(&queue->lock);
    bugpack_status status = accept(queue, job, &ticket, error);
    /* A snapshot of one that yields may have to wait until the worker has come to it. */
    bool needs_worker = job->yields || job->snapshot_state != BP_JOB_SNAPSHOT_DUE;
    bp_lock_release(&queue->lock);
    wake_for(queue, needs_worker); /* which then finds the lock free */
    if (status != BUGPACK_OK) {
        bp_job_free(job);
    } else if (ret_ticket != NULL) {
        *ret_ticket = ticket;
    }
    return status;
}

bugpack_status bp_job_queue_submit_snapshot(bp_job_queue *queue, bp_job *job) {
    bugpack_status status = BUGPACK_OK;
    bp_lock_acquire(&queue->lock);
    if (queue->is_stopping) {
        status = BUGPACK_ERR_CLOSED;
    } else {
        bp_job_append(&queue->first, job);
    }
    bp_lock_release(&queue->lock);
    wake_for(queue, false);
    return status;
}

bool bp_job_queue_cancel(bp_job_queue *queue, uint64_t ticket) {
    bool is_found = false;
    bp_lock_acquire(&queue->lock);
    for (bp_job *job = queue->first; job != NULL; job = job->next) {
        if (job->ticket != 0 && (ticket == 0 || job->ticket == ticket)) {
            atomic_store(&job->token.is_cancelled, true);
            is_found = true;
        }
    }
    if (is_found) {
        atomic_store(&queue->has_cancelled, true);
        (void)pthread_cond_broadcast(&queue->changed);
    }
    bp_lock_release(&queue->lock);
    if (is_found) {
        bp_runner_wake(queue->runner);
        bp_before_write_wake(queue->context->before_write);
    }
    return is_found;
}

/* Whether a job is left that had `last_ticket` or an earlier one, or has none. The lock is held.
 */
static bool has_left(const bp_job_queue *queue, uint64_t last_ticket) {
    const bp_job *job = queue->first;
    while (job != NULL && (!bp_job_is_for_worker(job) || job->ticket > last_ticket)) {
        job = job->next;
    }
    return job != NULL || queue->ending_count > 0;
}

bool bp_job_queue_flush(bp_job_queue *queue, uint64_t deadline_ns) {
    bool is_in_time = true;
    bp_lock_acquire(&queue->lock);
    uint64_t last_ticket = queue->last_ticket;
    while (is_in_time && has_left(queue, last_ticket)) {
        if (deadline_ns == UINT64_MAX) {
            bp_lock_wait(&queue->lock, &queue->changed);
        } else {
            is_in_time = bp_lock_wait_until(&queue->lock, &queue->changed, deadline_ns);
        }
    }
    bool is_flushed = !has_left(queue, last_ticket);
    bp_lock_release(&queue->lock);
    return is_flushed;
}

bugpack_status bp_job_queue_new(const bp_report_context *context, bp_job_queue **ret_queue,
                                bugpack_error *error) {
    bp_job_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL || !bp_lock_init(&queue->lock, BP_LOCK_JOBS)) {
        free(queue);
        return bp_fail_memory(error, "start the threads for reports");
    }
    bugpack_status status = bp_condition_init(&queue->changed, error);
    if (status == BUGPACK_OK && pthread_cond_init(&queue->copying, NULL) != 0) {
        (void)pthread_cond_destroy(&queue->changed);
        status = bp_fail_memory(error, "start the threads for reports");
    }
    if (status != BUGPACK_OK) {
        bp_lock_destroy(&queue->lock);
        free(queue);
        return status;
    }
    queue->context = context;
    status = bp_runner_new(&queue->runner, error);
    if (status == BUGPACK_OK) {
        bp_runner_on_wake(queue->runner, bp_job_queue_end_cancelled, queue);
        bp_before_write_on_wake(context->before_write, bp_job_queue_end_cancelled, queue);
        bp_fd_reserve_take(&queue->reserve);
        status = bp_thread_start(bp_job_queue_work, queue, &queue->worker, error);
        queue->has_worker = status == BUGPACK_OK;
    }
    if (status == BUGPACK_OK) {
        status = bp_thread_start(bp_job_queue_copy_rings, queue, &queue->snapshotter, error);
        queue->has_snapshotter = status == BUGPACK_OK;
    }
    if (status != BUGPACK_OK) {
        bp_job_queue_stop(queue);
        bp_job_queue_free(queue);
        return status;
    }
    *ret_queue = queue;
    return BUGPACK_OK;
}

void bp_job_queue_stop(bp_job_queue *queue) {
    if (queue == NULL) {
        return;
    }
    bp_lock_acquire(&queue->lock);
    queue->is_stopping = true;
    bp_job_queue_wake_all(queue);
    bp_lock_release(&queue->lock);
    if (queue->has_worker) {
        bp_runner_expect_close(queue->runner);
        (void)pthread_join(queue->worker, NULL);
    }
    if (queue->has_snapshotter) {
        (void)pthread_join(queue->snapshotter, NULL);
    }
    queue->has_worker = queue->has_snapshotter = false;
}

void bp_job_queue_free(bp_job_queue *queue) {
    if (queue != NULL) {
        bp_fd_reserve_release(&queue->reserve);
        bp_runner_free(queue->runner);
        (void)pthread_cond_destroy(&queue->copying);
        (void)pthread_cond_destroy(&queue->changed);
        bp_lock_destroy(&queue->lock);
        free(queue);
    }
}
