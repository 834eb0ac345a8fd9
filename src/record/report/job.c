#include "report/job.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"

bp_job *bp_job_new(const bp_report_context *context, const bp_job_type *type,
                   size_t payload_bytes) {
    bp_job *job = calloc(1, sizeof *job + payload_bytes);
    if (job == NULL) {
        return NULL;
    }
    job->type = type;
    job->payload = payload_bytes > 0 ? job + 1 : NULL;
    job->dir = &context->config->report_dir;
    job->triggered = bp_clock_now();
    job->destination = (bp_destination)BP_DESTINATION_INIT;
    job->tags = bp_tags_hold(context->tags);
    context->note_triggers(context->triggers, job->notes);
    if (context->recorder->history != NULL && type->run == NULL) {
        job->window =
            bp_windows_ask(&context->recorder->windows, job->triggered.monotonic_ns, false, 0);
    }
    return job;
}

static void free_snapshot(bp_job *job) {
    if (job->snapshot != NULL && !job->type->borrows_snapshot) {
        bp_snapshot_release(job->snapshot);
        free(job->snapshot);
    }
    job->snapshot = NULL;
    bp_hosted_free(job->hosted);
    job->hosted = NULL;
}

void bp_job_drop_notes(bp_job *job) {
    for (size_t i = 0; i < BP_TRIGGER_NOTE_MAX; i++) {
        free(job->notes[i]);
        job->notes[i] = NULL;
    }
}

void bp_job_release(bp_job *job) {
    if (job->type->free != NULL) {
        job->type->free(job);
    }
    if (!job->type->borrows_snapshot) {
        bp_job_drop_notes(job);
    }
    free_snapshot(job);
    bp_window_release(job->window);
    bp_destination_release(&job->destination);
    bp_tag_set_drop(job->tags);
}

void bp_job_free(bp_job *job) {
    if (job != NULL) {
        bp_job_release(job);
        free(job);
    }
}

/* Once there is a snapshot, only the zip is still to be written. */
static bugpack_status check_room_for_zip(const bp_report_context *context, const bp_job *job,
                                         bugpack_error *error) {
    uint64_t snapshot_bytes = bp_snapshot_bytes(job->snapshot);
    return bp_destination_check_room(&job->destination, context->config->min_free_bytes,
                                     bp_bundle_needed_bytes(snapshot_bytes) - snapshot_bytes,
                                     error);
}

/* A session that records nothing itself reports what the process records that it is about. One that
 * has ended meanwhile may have left its id to the next process. */
static bugpack_status copy_target_rings(const bp_report_context *context, bp_job *job,
                                        bugpack_error *error) {
    pid_t pid = context->subject->target.pid;
    const bp_snapshot_part *ours = job->snapshot->parts;
    /* Notifications alone cannot be turned off. */
    bool is_unused = !ours[BP_RING_KIND_LOG].is_on && !ours[BP_RING_KIND_HISTORY].is_on &&
                     !ours[BP_RING_KIND_TRAFFIC].is_on &&
                     ours[BP_RING_KIND_NOTIFICATIONS].view.record_count == 0;
    bp_snapshot *theirs = pid != 0 && is_unused ? calloc(1, sizeof *theirs) : NULL;
    if (theirs == NULL) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_hosted_take(pid, context->redaction, job->destination.dir_fd,
                                           &job->token, theirs, &job->hosted, error);
    bool has_news = job->hosted != NULL || theirs->parts[BP_RING_KIND_LOG].is_on;
    if (status != BUGPACK_OK || !has_news ||
        bp_subject_check(context->subject, NULL) != BUGPACK_OK) {
        bp_hosted_free(job->hosted);
        job->hosted = NULL;
    } else {
        bp_snapshot *own = job->snapshot;
        job->snapshot = theirs;
        theirs = own;
        status = check_room_for_zip(context, job, error);
    }
    bp_snapshot_release(theirs);
    free(theirs);
    return status;
}

static bugpack_status take(const bp_report_context *context, bp_job *job, uint64_t spare_bytes,
                           bugpack_error *error) {
    bugpack_status status = bp_cancel_check(&job->token, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    const bp_destination_request request = {.app_name = context->config->app_name,
                                            .kind = job->type->kind,
                                            .detail = job->name_detail,
                                            .wall_ns = job->triggered.wall_ns,
                                            .output_path = job->output_path,
                                            .dir = job->dir};
    status = bp_destination_open(&request, &job->destination, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (job->type->take_snapshot != NULL) {
        status = job->type->take_snapshot(job, error);
        return status == BUGPACK_OK ? check_room_for_zip(context, job, error) : status;
    }
    uint64_t ring_bytes = bp_recorder_used_bytes(context->recorder);
    status = bp_destination_check_room(&job->destination, context->config->min_free_bytes,
                                       bp_bundle_needed_bytes(ring_bytes) + spare_bytes, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    job->snapshot = calloc(1, sizeof *job->snapshot);
    if (job->snapshot == NULL) {
        return bp_fail_memory(error, "copy the rings");
    }
    bp_recorder_take_snapshot(
        context->recorder, job->type->take_latecomers == NULL ? job->traffic.only : NULL,
        job->triggered.monotonic_ns, job->destination.dir_fd, &job->token, job->snapshot);
    return copy_target_rings(context, job, error);
}

void bp_job_take_snapshot(const bp_report_context *context, bp_job *job, uint64_t spare_bytes) {
    job->snapshot_error.status = take(context, job, spare_bytes, &job->snapshot_error);
}

void bp_job_drop_snapshot(bp_job *job) {
    free_snapshot(job);
    bp_destination_release(&job->destination);
    job->destination = (bp_destination)BP_DESTINATION_INIT;
    job->snapshot_error = (bugpack_error)BUGPACK_ERROR_INIT;
}
