#include "report/queue.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/status.h"
#include "platform/thread.h"
#include "process/open_files.h"
#include "recorder/recorder.h"
#include "report/assemble.h"
#include "report/retention.h"

/* A job without this function is a report, or another task of the worker. */
static bool is_for_worker(const bp_job *job) {
    return job->type->snapshotted == NULL;
}

static void job_append(bp_job **list, bp_job *job) {
    while (*list != NULL) {
        list = &(*list)->next;
    }
    job->next = NULL;
    *list = job;
}

/* True of what computes and opens files: all but what is kept for a crash. */
static bool is_work(const bp_job *job) {
    return job->type->run == NULL || !job->type->yields;
}

/* The lock is held. */
static void job_unlink(bp_job_queue *queue, const bp_job *job) {
    bp_job **link = &queue->first;
    while (*link != job) {
        link = &(*link)->next;
    }
    *link = job->next;
    queue->has_worked = queue->has_worked || is_work(job);
}

bool bp_job_queue_has_worked(bp_job_queue *queue) {
    bp_lock_acquire(&queue->lock);
    bool has_worked = queue->has_worked || queue->ending_count > 0;
    for (const bp_job *job = queue->first; job != NULL; job = job->next) {
        has_worked = has_worked || is_work(job);
    }
    queue->has_worked = false;
    bp_lock_release(&queue->lock);
    return has_worked;
}

static void wake_all(bp_job_queue *queue) {
    (void)pthread_cond_broadcast(&queue->changed);
    (void)pthread_cond_signal(&queue->copying);
}

/* The queue that the calling thread works for; NULL for others. */
static _Thread_local const bp_job_queue *own_queue;

bool bp_job_queue_is_own_thread(const bp_job_queue *queue) {
    return own_queue != NULL && (queue == NULL || own_queue == queue);
}

/*
 * The thread that writes the reports, one after the other.
 */

/* The host may have given no callback that says so. */
static void note_result(bp_recorder *recorder, const bp_job *job,
                        const bugpack_report_result *result) {
    const char *kind = bp_report_kind_name(job->type->kind);
    if (result->status != BUGPACK_OK && result->status != BUGPACK_ERR_CANCELLED) {
        bp_note_diagnose(recorder, BUGPACK_LEVEL_ERROR, "a report of the kind %s failed: %s", kind,
                         result->error.message);
    } else if (result->missing_count > 0) {
        bp_note_diagnose(recorder, BUGPACK_LEVEL_WARN,
                         "a report of the kind %s lacks %u entries: %s", kind,
                         (unsigned)result->missing_count, result->missing);
    }
}

/* Ends a job: from here on it can be neither joined nor cancelled. */
static void finish(bp_job_queue *queue, bp_job *job, const bugpack_report_result *result) {
    bp_lock_acquire(&queue->lock);
    /* The snapshot thread lets go of the job before it is freed. */
    while (job->snapshot_state == BP_JOB_SNAPSHOT_RUNNING) {
        bp_lock_wait(&queue->lock, &queue->changed);
    }
    job_unlink(queue, job);
    queue->ending_count++;
    bp_lock_release(&queue->lock);
    if (job->type->settled != NULL) {
        job->type->settled(job, result);
    }
    note_result(queue->context->recorder, job, result);
    bp_events_post_result(queue->context->events, job->type->kind, job->ticket, job->percent,
                          result);
    bp_lock_check_none_held();
    if (job->on_done != NULL) {
        job->on_done(result, job->on_done_context);
    }
    while (job->joined != NULL) {
        bp_job *joined = job->joined;
        job->joined = joined->next;
        if (joined->on_done != NULL) {
            joined->on_done(result, joined->on_done_context);
        }
        bp_job_free(joined);
    }
    bp_job_free(job);
    bp_lock_acquire(&queue->lock);
    queue->ending_count--;
    wake_all(queue);
    bp_lock_release(&queue->lock);
}

/* A job that was given up before its report was begun. */
static void finish_unbegun(bp_job_queue *queue, bp_job *job) {
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    result.status = bp_cancel_check(&job->token, &result.error);
    result.elapsed_ns = bp_clock_monotonic_ns() - job->triggered.monotonic_ns;
    finish(queue, job, &result);
}

/* Ends the jobs that were cancelled while they wait. Worker; the argument is the queue. */
static void end_cancelled(void *context) {
    bp_job_queue *queue = context;
    while (atomic_load(&queue->has_cancelled)) {
        bp_lock_acquire(&queue->lock);
        bp_job *job = queue->first;
        while (job != NULL && (job == queue->current || !is_for_worker(job) ||
                               !atomic_load(&job->token.is_cancelled))) {
            job = job->next;
        }
        if (job == NULL) {
            atomic_store(&queue->has_cancelled, false);
        }
        bp_lock_release(&queue->lock);
        if (job != NULL) {
            finish_unbegun(queue, job);
        }
    }
}

static void on_step(void *context, uint32_t percent) {
    bp_job_queue *queue = context;
    bp_job *job = queue->current;
    end_cancelled(queue);
    if (percent > job->percent) {
        job->percent = percent;
        bp_events_post(queue->context->events, BUGPACK_EVENT_PROGRESS, job->type->kind, job->ticket,
                       percent);
    }
}

/* A host that closes should not wait for the windows of fifty gaps, one after the other. */
static bool wait_until(void *context, uint64_t until_ns) {
    bp_job_queue *queue = context;
    bp_lock_acquire(&queue->lock);
    while (!atomic_load(&queue->has_cancelled) &&
           !(queue->current->type->yields && queue->is_stopping) &&
           bp_clock_monotonic_ns() < until_ns &&
           bp_lock_wait_until(&queue->lock, &queue->changed, until_ns)) {}
    bool may_wait = !(queue->current->type->yields && queue->is_stopping);
    bp_lock_release(&queue->lock);
    return may_wait;
}

static void wait_snapshot(void *context) {
    bp_job_queue *queue = context;
    bp_lock_acquire(&queue->lock);
    while (queue->current->snapshot_state != BP_JOB_SNAPSHOT_DONE) {
        bp_lock_wait(&queue->lock, &queue->changed);
    }
    bp_lock_release(&queue->lock);
}

/* The oldest that does not yield, else the oldest. The lock is held. */
static bp_job *next_job(const bp_job_queue *queue) {
    bp_job *oldest = NULL;
    for (bp_job *job = queue->first; job != NULL; job = job->next) {
        if (is_for_worker(job) && !job->type->yields) {
            return job;
        }
        if (is_for_worker(job) && oldest == NULL) {
            oldest = job;
        }
    }
    return oldest;
}

static void write_report(bp_job_queue *queue, bp_job *job) {
    bp_history *history = queue->context->recorder->history;
    bugpack_report_result result;
    const bp_progress progress = {
        .on_step = on_step, .wait = wait_until, .wait_snapshot = wait_snapshot, .context = queue};
    bp_events_post(queue->context->events, BUGPACK_EVENT_STARTED, job->type->kind, job->ticket, 0);
    if (history != NULL) { /* the memory that the report takes is no growth of the host */
        bp_history_note_report(history, true);
    }
    bp_assemble(queue->context, &queue->runner, job, &progress, &result);
    if (history != NULL) {
        bp_history_note_report(history, false);
    }
    if (result.status == BUGPACK_OK && job->output_path == NULL) { /* bugpack chose the name */
        bp_retention_apply(queue->context, result.path, job->type->kind, job->dir->bounds);
    }
    finish(queue, job, &result);
    bp_lock_acquire(&queue->lock);
    bool is_last = next_job(queue) == NULL;
    bp_lock_release(&queue->lock);
    if (is_last) {
        bp_subject_forget_samples(queue->context->subject);
        bp_open_files_forget_ends();
    }
}

static void *work(void *argument) {
    bp_job_queue *queue = argument;
    bp_thread_set_name("bugpack-worker");
    own_queue = queue;
    bp_lock_acquire(&queue->lock);
    for (;;) {
        bp_job *job = next_job(queue);
        if (job != NULL) {
            queue->current = job;
            wake_all(queue); /* its snapshot is wanted now */
            bp_lock_release(&queue->lock);
            if (job->type->run != NULL) {
                job->type->run(job, &queue->runner);
                bp_lock_acquire(&queue->lock);
                job_unlink(queue, job);
                bp_lock_release(&queue->lock);
                bp_job_free(job);
            } else if (bp_cancel_is_due(&job->token)) {
                finish_unbegun(queue, job);
            } else {
                write_report(queue, job);
            }
            bp_lock_acquire(&queue->lock);
            queue->current = NULL;
            wake_all(queue);
        } else if (queue->is_stopping) {
            break;
        } else {
            bp_lock_wait(&queue->lock, &queue->changed);
        }
    }
    queue->is_worker_done = true;
    wake_all(queue);
    bp_lock_release(&queue->lock);
    return NULL;
}

/*
 * The thread that copies the rings: apart from the worker, because a copy blocks on the disk, and
 * because a report that waits behind another one is about its own past.
 */

/*
 * Bounds for the snapshots of jobs that yield, while they wait: of a host's descriptors, of which
 * it may have 1024 in all, and of the disk, on which twice as much must stay free besides. What is
 * over them is copied when it is the job's turn.
 */
static const unsigned early_max_fds = 64;
static const uint64_t early_max_bytes = (uint64_t)256 << 20;

/* The job whose rings are to be copied next; NULL for none. The lock is held. */
static bp_job *next_snapshot(const bp_job_queue *queue) {
    bp_job *early = NULL;
    uint64_t early_bytes = 0;
    unsigned early_fds = 0;
    for (bp_job *job = queue->first; job != NULL; job = job->next) {
        bool is_due = job->snapshot_state == BP_JOB_SNAPSHOT_DUE;
        bool is_its_turn = !job->type->yields || job == queue->current;
        if (!is_its_turn && job->snapshot != NULL && job->snapshot_state == BP_JOB_SNAPSHOT_DONE) {
            early_bytes += bp_snapshot_bytes(job->snapshot);
            early_fds += bp_snapshot_fds(job->snapshot) + 1; /* and the directory's */
        }
        if (is_its_turn && (is_due || job->snapshot_state == BP_JOB_SNAPSHOT_LATE)) {
            return job;
        }
        if (is_due && early == NULL) {
            early = job;
        }
    }
    return early_bytes < early_max_bytes && early_fds < early_max_fds ? early : NULL;
}

/* Copies the rings of one job. The lock is held before and after, not during. */
static void take_snapshot(bp_job_queue *queue, bp_job *job) {
    bool is_early = job->type->yields && job != queue->current;
    job->snapshot_state = BP_JOB_SNAPSHOT_RUNNING;
    bp_lock_release(&queue->lock);
    bp_fd_reserve_release(&queue->reserve);
    bp_job_take_snapshot(queue->context, job, is_early ? 2 * early_max_bytes : 0);
    bool is_whole = job->snapshot_error.status == BUGPACK_OK && bp_snapshot_is_whole(job->snapshot);
    bp_lock_acquire(&queue->lock);
    job->snapshot_state = BP_JOB_SNAPSHOT_DONE;
    if (is_early && !is_whole) {
        /* There may be more room when it is the job's turn. */
        bp_job_drop_snapshot(job);
        job->snapshot_state = BP_JOB_SNAPSHOT_LATE;
    }
    if (!is_for_worker(job)) {
        job_unlink(queue, job);
        bp_lock_release(&queue->lock);
        job->type->snapshotted(job);
        bp_lock_acquire(&queue->lock);
    }
    (void)pthread_cond_broadcast(&queue->changed);
}

static void *copy_rings(void *argument) {
    bp_job_queue *queue = argument;
    bp_thread_set_name("bugpack-snap");
    own_queue = queue;
    bp_lock_acquire(&queue->lock);
    for (;;) {
        bp_job *job = next_snapshot(queue);
        /* No report needs a descriptor. */
        bool is_idle = queue->first == NULL && queue->current == NULL && queue->ending_count == 0;
        if (job != NULL) {
            take_snapshot(queue, job);
        } else if (queue->is_worker_done) {
            break;
        } else if (is_idle && !queue->reserve.is_held) {
            bp_lock_release(&queue->lock);
            bp_fd_reserve_take(&queue->reserve);
            bp_lock_acquire(&queue->lock);
        } else {
            queue->is_copier_waiting = true;
            bp_lock_wait(&queue->lock, &queue->copying);
            queue->is_copier_waiting = false;
            bp_lock_release(&queue->lock);
            bp_windows_wake(&queue->context->recorder->windows);
            bp_lock_acquire(&queue->lock);
        }
    }
    bp_lock_release(&queue->lock);
    return NULL;
}

/*
 * Submitting jobs.
 */

/* The first manual job; with `may_join` one that others may share. The lock is held. */
static bp_job *find_manual(const bp_job_queue *queue, bool may_join) {
    bp_job *job = queue->first;
    while (job != NULL &&
           (!job->type->is_manual ||
            (may_join && (!job->type->is_shared || atomic_load(&job->token.is_cancelled))))) {
        job = job->next;
    }
    return job;
}

/* The lock is held. */
static bugpack_status accept(bp_job_queue *queue, bp_job *job, uint64_t *ret_ticket,
                             bugpack_error *error) {
    bugpack_when_busy when_busy =
        job->type->is_manual ? queue->context->config->when_busy : BUGPACK_WHEN_BUSY_QUEUE;
    bp_job *other = job->type->is_single ? queue->first : NULL;
    unsigned waiting_count = 0; /* in the line that is bounded */
    while (other != NULL &&
           (other->type != job->type || other->max_zip_bytes != job->max_zip_bytes ||
            atomic_load(&other->token.is_cancelled))) {
        other = other->next;
    }
    if (other == NULL && when_busy == BUGPACK_WHEN_BUSY_REFUSE &&
        find_manual(queue, false) != NULL) {
        return bp_fail(error, BUGPACK_ERR_BUSY, "no report was taken: another one is under way");
    }
    if (other == NULL && when_busy == BUGPACK_WHEN_BUSY_COALESCE && job->type->is_shared) {
        other = find_manual(queue, true);
    }
    if (other != NULL) {
        *ret_ticket = other->ticket;
        job_append(&other->joined, job);
        return BUGPACK_OK;
    }
    if (queue->is_stopping) {
        return bp_fail(error, BUGPACK_ERR_CLOSED, "no report was taken: %s",
                       bugpack_status_name(BUGPACK_ERR_CLOSED));
    }
    /* A job that is no report, as a recovery, does not count against the limit. */
    for (const bp_job *at = queue->first; at != NULL; at = at->next) {
        waiting_count +=
            at != queue->current && !at->type->yields && at->type->run == NULL && is_for_worker(at);
    }
    if (is_for_worker(job) && !job->type->yields && waiting_count >= BUGPACK_REPORT_QUEUE_MAX) {
        return bp_fail(error, BUGPACK_ERR_BUSY, "no report was taken: %u wait already",
                       (unsigned)BUGPACK_REPORT_QUEUE_MAX);
    }
    if (job->type->run != NULL) {
        job->snapshot_state = BP_JOB_SNAPSHOT_DONE;
    } else if (is_for_worker(job)) {
        job->ticket = ++queue->last_ticket;
    }
    *ret_ticket = job->ticket;
    job_append(&queue->first, job);
    return BUGPACK_OK;
}

bugpack_status bp_job_queue_submit(bp_job_queue *queue, bp_job *job, uint64_t *ret_ticket,
                                   bugpack_error *error) {
    uint64_t ticket = 0;
    bp_lock_acquire(&queue->lock);
    bugpack_status status = accept(queue, job, &ticket, error);
    /* The worker has nothing to do before the snapshot, whose thread then wakes it. But a snapshot
     * of one that yields may have to wait until the worker has come to it. */
    bool needs_worker = job->type->yields || job->snapshot_state != BP_JOB_SNAPSHOT_DUE;
    bool is_copier_waiting = queue->is_copier_waiting;
    bp_lock_release(&queue->lock); /* which those who are woken then find free */
    /* The thread of the snapshots also wakes the monitor, for the sample of the trigger, unless it
     * is busy: either way the trigger makes one system call. */
    if (!is_copier_waiting) {
        bp_windows_wake(&queue->context->recorder->windows);
    }
    if (needs_worker) {
        wake_all(queue);
    } else {
        (void)pthread_cond_signal(&queue->copying);
    }
    if (status != BUGPACK_OK) {
        bp_job_free(job);
    } else if (ret_ticket != NULL) {
        *ret_ticket = ticket;
    }
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
        bp_runner_wake(&queue->runner);
    }
    return is_found;
}

/* True if a job is left that had `last_ticket` or an earlier one, or has none. The lock is held.
 */
static bool has_left(const bp_job_queue *queue, uint64_t last_ticket) {
    const bp_job *job = queue->first;
    while (job != NULL && (!is_for_worker(job) || job->ticket > last_ticket)) {
        job = job->next;
    }
    return job != NULL || queue->ending_count > 0;
}

bool bp_job_queue_flush(bp_job_queue *queue, uint64_t deadline_ns) {
    bool is_in_time = true;
    bp_lock_acquire(&queue->lock);
    uint64_t last_ticket = queue->last_ticket;
    while (is_in_time && has_left(queue, last_ticket)) {
        is_in_time = bp_lock_wait_until(&queue->lock, &queue->changed, deadline_ns);
    }
    bool is_flushed = !has_left(queue, last_ticket);
    bp_lock_release(&queue->lock);
    return is_flushed;
}

bugpack_status bp_job_queue_new(const bp_report_context *context, bp_job_queue **ret_queue,
                                bugpack_error *error) {
    bp_job_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return bp_fail_memory(error, "start the threads for reports");
    }
    bp_condition_init(&queue->changed);
    bp_lock_init(&queue->lock, BP_LOCK_JOBS);
    (void)pthread_cond_init(&queue->copying, NULL);
    queue->context = context;
    bp_runner_init(&queue->runner, end_cancelled, queue);
    bp_fd_reserve_take(&queue->reserve);
    bugpack_status status = bp_thread_start(work, queue, &queue->worker, error);
    queue->has_worker = status == BUGPACK_OK;
    if (status == BUGPACK_OK) {
        status = bp_thread_start(copy_rings, queue, &queue->snapshotter, error);
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
    wake_all(queue);
    bp_lock_release(&queue->lock);
    if (queue->has_worker) {
        bp_runner_expect_close(&queue->runner);
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
        bp_runner_release(&queue->runner);
        (void)pthread_cond_destroy(&queue->copying);
        (void)pthread_cond_destroy(&queue->changed);
        bp_lock_destroy(&queue->lock);
        free(queue);
    }
}
