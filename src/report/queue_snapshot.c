/*
 * The thread that copies the rings: apart from the worker, because a copy blocks on the disk, and
 * because a report that waits behind another one is about its own past.
 */
#include "platform/thread.h"
#include "report/queue_private.h"

/*
 * Bounds for the snapshots of jobs that yield, while they wait: of a host's descriptors, of which
 * it may have 1024 in all, and of the disk, on which twice as much must stay free besides. What is
 * over them is copied when it is the job's turn.
 */
static const unsigned early_max_fds = 64;
static const uint64_t early_max_bytes = (uint64_t)256 << 20;

/* Whether the early snapshots are within their bounds. The lock is held. */
static bool has_early_room(const bp_job_queue *queue) {
    uint64_t bytes = 0;
    unsigned fds = 0;
    for (const bp_job *job = queue->first; job != NULL; job = job->next) {
        if (job->yields && job != queue->current && job->snapshot != NULL &&
            job->snapshot_state == BP_JOB_SNAPSHOT_DONE) {
            bytes += bp_snapshot_bytes(job->snapshot);
            fds += bp_snapshot_fds(job->snapshot) + 1; /* and the directory's */
        }
    }
    return bytes < early_max_bytes && fds < early_max_fds;
}

/* The job whose rings are to be copied next; NULL for none. The lock is held. */
static bp_job *next_snapshot(const bp_job_queue *queue) {
    bp_job *early = NULL;
    for (bp_job *job = queue->first; job != NULL; job = job->next) {
        if (job->snapshot_state != BP_JOB_SNAPSHOT_DUE) {
            continue;
        }
        if (!job->yields || job == queue->current) {
            return job;
        }
        if (early == NULL && !job->is_snapshot_late) {
            early = job;
        }
    }
    return early != NULL && has_early_room(queue) ? early : NULL;
}

/* Copies the rings of one job. The lock is held before and after, not during. */
static void take_snapshot(bp_job_queue *queue, bp_job *job) {
    bool is_early = job->yields && job != queue->current;
    job->snapshot_state = BP_JOB_SNAPSHOT_RUNNING;
    bp_lock_release(&queue->lock);
    bp_fd_reserve_release(&queue->reserve);
    bp_job_take_snapshot(queue->context, job, is_early ? 2 * early_max_bytes : 0);
    bool is_whole = job->snapshot_status == BUGPACK_OK && bp_snapshot_is_whole(job->snapshot);
    bp_lock_acquire(&queue->lock);
    job->snapshot_state = BP_JOB_SNAPSHOT_DONE;
    if (is_early && !is_whole) {
        /* There may be more room when it is the job's turn. */
        bp_job_drop_snapshot(job);
        job->is_snapshot_late = true;
        job->snapshot_state = BP_JOB_SNAPSHOT_DUE;
    }
    if (!bp_job_is_for_worker(job)) {
        bp_job_unlink(queue, job);
        bp_lock_release(&queue->lock);
        job->type->snapshotted(job);
        bp_lock_acquire(&queue->lock);
    }
    (void)pthread_cond_broadcast(&queue->changed);
}

/* Whether no report needs a descriptor. The lock is held. */
static bool is_idle(const bp_job_queue *queue) {
    return queue->first == NULL && queue->current == NULL && queue->ending_count == 0;
}

void *bp_job_queue_copy_rings(void *argument) {
    bp_job_queue *queue = argument;
    bp_thread_set_name("bugpack-snap");
    bp_job_queue_own_thread(queue);
    bp_lock_acquire(&queue->lock);
    for (;;) {
        bp_job *job = next_snapshot(queue);
        if (job != NULL) {
            take_snapshot(queue, job);
        } else if (queue->is_worker_done) {
            break;
        } else if (is_idle(queue) && !queue->reserve.is_held) {
            bp_lock_release(&queue->lock);
            bp_fd_reserve_take(&queue->reserve);
            bp_lock_acquire(&queue->lock);
        } else {
            bp_lock_wait(&queue->lock, &queue->copying);
        }
    }
    bp_lock_release(&queue->lock);
    return NULL;
}
