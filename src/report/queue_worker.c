/*
 * The thread that writes the reports, one after the other.
 */
#include "base/lock.h"
#include "platform/thread.h"
#include "recorder/note.h"
#include "report/assemble.h"
#include "report/limits.h"
#include "report/queue_private.h"

static void finish_joined(bp_job *job, const bugpack_report_result *result) {
    while (job->joined != NULL) {
        bp_job *joined = job->joined;
        job->joined = joined->next;
        if (joined->on_done != NULL) {
            joined->on_done(result, joined->on_done_context);
        }
        bp_job_free(joined);
    }
}

/* The host may have given no callback that says so. */
static void note_result(bp_recorder *recorder, const bp_job *job,
                        const bugpack_report_result *result) {
    const char *kind = bp_report_kind_name(job->kind);
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
    bp_job_unlink(queue, job);
    queue->ending_count++;
    bp_lock_release(&queue->lock);
    if (job->type->settled != NULL) {
        job->type->settled(job, result);
    }
    note_result(queue->context->recorder, job, result);
    bp_events_post_result(queue->context->events, job->kind, job->ticket, job->percent, result);
    bp_lock_check_none_held();
    if (job->on_done != NULL) {
        job->on_done(result, job->on_done_context);
    }
    finish_joined(job, result);
    bp_job_free(job);
    bp_lock_acquire(&queue->lock);
    queue->ending_count--;
    bp_job_queue_wake_all(queue);
    bp_lock_release(&queue->lock);
}

/* A job that was given up before its report was begun. */
static void finish_unbegun(bp_job_queue *queue, bp_job *job) {
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    result.status = bp_cancel_check(&job->token, &result.error);
    result.elapsed_ns = bp_clock_monotonic_ns() - job->triggered.monotonic_ns;
    finish(queue, job, &result);
}

/* A job that is cancelled and waits; NULL for none. */
static bp_job *find_cancelled(bp_job_queue *queue) {
    bp_lock_acquire(&queue->lock);
    bp_job *job = queue->first;
    while (job != NULL && (job == queue->current || !bp_job_is_for_worker(job) ||
                           !atomic_load(&job->token.is_cancelled))) {
        job = job->next;
    }
    if (job == NULL) {
        atomic_store(&queue->has_cancelled, false);
    }
    bp_lock_release(&queue->lock);
    return job;
}

void bp_job_queue_end_cancelled(void *context) {
    bp_job_queue *queue = context;
    bp_job *job;
    while (atomic_load(&queue->has_cancelled) && (job = find_cancelled(queue)) != NULL) {
        finish_unbegun(queue, job);
    }
}

static void on_step(void *context, uint32_t percent) {
    bp_job_queue *queue = context;
    bp_job *job = queue->current;
    bp_job_queue_end_cancelled(queue);
    if (percent > job->percent) {
        job->percent = percent;
        bp_events_post(queue->context->events, BUGPACK_EVENT_PROGRESS, job->kind, job->ticket,
                       percent);
    }
}

/* A host that closes should not wait for the windows of fifty gaps, one after the other. */
static bool wait_until(void *context, uint64_t until_ns) {
    bp_job_queue *queue = context;
    bp_lock_acquire(&queue->lock);
    while (!atomic_load(&queue->has_cancelled) && !(queue->current->yields && queue->is_stopping) &&
           bp_clock_monotonic_ns() < until_ns &&
           bp_lock_wait_until(&queue->lock, &queue->changed, until_ns)) {}
    bool may_wait = !(queue->current->yields && queue->is_stopping);
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

/* Keeps the directory within its bounds, where bugpack chose the name. */
static void apply_limits(const bp_report_context *context, const bp_job *job,
                         const bugpack_report_result *result) {
    if (result->status == BUGPACK_OK && job->output_path == NULL) {
        const bp_limits_rolling rolling = {job->kind, job->rolling_max_count,
                                           job->rolling_max_bytes};
        bp_limits_apply(context, result->path, &rolling);
    }
}

/* The memory that it takes is no growth of the host. */
static void note_report(const bp_job_queue *queue, bool begins) {
    bp_history *history = queue->context->recorder->history;
    if (history != NULL) {
        bp_history_note_report(history, begins);
    }
}

static void write_report(bp_job_queue *queue, bp_job *job) {
    bugpack_report_result result;
    const bp_progress progress = {.on_step = on_step,
                                  .wait = wait_until,
                                  .wait_snapshot = wait_snapshot,
                                  .context = queue,
                                  .has_window = job->window != NULL};
    bp_events_post(queue->context->events, BUGPACK_EVENT_STARTED, job->kind, job->ticket, 0);
    note_report(queue, true);
    bp_assemble(queue->context, queue->runner, job, &progress, &result);
    note_report(queue, false);
    apply_limits(queue->context, job, &result);
    finish(queue, job, &result);
}

static void run_job(bp_job_queue *queue, bp_job *job) {
    if (job->type->run != NULL) {
        job->type->run(job, queue->runner);
        bp_lock_acquire(&queue->lock);
        bp_job_unlink(queue, job);
        bp_job_queue_wake_all(queue);
        bp_lock_release(&queue->lock);
        bp_job_free(job);
    } else if (bp_cancel_is_due(&job->token)) {
        finish_unbegun(queue, job);
    } else {
        write_report(queue, job);
    }
}

/* The oldest that does not yield, else the oldest. The lock is held. */
static bp_job *next_job(const bp_job_queue *queue) {
    bp_job *oldest = NULL;
    for (bp_job *job = queue->first; job != NULL; job = job->next) {
        if (bp_job_is_for_worker(job) && !job->yields) {
            return job;
        }
        if (bp_job_is_for_worker(job) && oldest == NULL) {
            oldest = job;
        }
    }
    return oldest;
}

void *bp_job_queue_work(void *argument) {
    bp_job_queue *queue = argument;
    bp_thread_set_name("bugpack-worker");
    bp_job_queue_own_thread(queue);
    bp_lock_acquire(&queue->lock);
    for (;;) {
        bp_job *job = next_job(queue);
        if (job != NULL) {
            queue->current = job;
            bp_job_queue_wake_all(queue); /* its snapshot is wanted now */
            bp_lock_release(&queue->lock);
            run_job(queue, job);
            bp_lock_acquire(&queue->lock);
            queue->current = NULL;
            bp_job_queue_wake_all(queue);
        } else if (queue->is_stopping) {
            break;
        } else {
            bp_lock_wait(&queue->lock, &queue->changed);
        }
    }
    queue->is_worker_done = true;
    bp_job_queue_wake_all(queue);
    bp_lock_release(&queue->lock);
    return NULL;
}
