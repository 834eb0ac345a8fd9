#include "report/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "report/limits.h"

bool bp_job_copy_text(const char *text, char **ret_copy) {
    *ret_copy = text == NULL ? NULL : strdup(text);
    return text == NULL || *ret_copy != NULL;
}

bp_job *bp_job_new(const bp_report_context *context, const bp_job_type *type, bp_report_kind kind,
                   void *payload) {
    bp_job *job = calloc(1, sizeof *job);
    if (job == NULL) {
        return NULL;
    }
    job->type = type;
    job->payload = payload;
    job->kind = kind;
    job->triggered = bp_clock_now();
    job->destination = (bp_destination)BP_DESTINATION_INIT;
    job->tags = bp_tags_hold(context->tags);
    context->note_triggers(context->triggers, job->notes);
    bp_windows *windows = context->recorder->windows;
    if (windows != NULL && type->run == NULL) {
        job->window = bp_windows_ask(windows, job->triggered.monotonic_ns);
    }
    return job;
}

void bp_job_end_window(const bp_report_context *context, bp_job *job, uint64_t cpu_ns) {
    if (job->window != NULL) {
        bp_window_release(job->window);
        job->window =
            bp_windows_ask_last(context->recorder->windows, job->triggered.monotonic_ns, cpu_ns);
    }
}

static void free_snapshot(bp_job *job) {
    if (job->snapshot != NULL && !job->borrows_snapshot) {
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

void bp_job_free(bp_job *job) {
    if (job == NULL) {
        return;
    }
    if (job->type->free != NULL) {
        job->type->free(job);
    }
    if (!job->borrows_snapshot) {
        bp_job_drop_notes(job);
    }
    free_snapshot(job);
    bp_window_release(job->window);
    bp_destination_release(&job->destination);
    bp_tag_set_drop(job->tags);
    char *texts[] = {job->description, job->channel,     job->key,
                     job->gap_key,     job->name_detail, job->output_path};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        free(texts[i]);
    }
    free(job);
}

static bugpack_status open_destination(const bugpack_options *settings, bp_job *job,
                                       bugpack_error *error) {
    const bp_destination_request request = {
        .app_name = settings->app_name,
        .kind = job->kind,
        .detail = job->name_detail,
        .wall_ns = job->triggered.wall_ns,
        .output_path = job->output_path,
        .report_dir = job->report_dir != NULL ? job->report_dir : settings->report_dir,
        .parent_dir =
            job->makes_report_dir && settings->create_report_dir ? settings->report_dir : NULL,
        .may_create = settings->create_report_dir || job->makes_report_dir,
        .is_private = job->has_private_dir};
    return bp_destination_open(&request, &job->destination, error);
}

static bugpack_status copy_rings(const bp_report_context *context, bp_job *job,
                                 bugpack_error *error) {
    job->snapshot = calloc(1, sizeof *job->snapshot);
    if (job->snapshot == NULL) {
        return bp_fail_memory(error, "copy the rings");
    }
    bp_recorder_take_snapshot(context->recorder, job->only_channel ? job->channel : NULL,
                              job->triggered.monotonic_ns, job->destination.dir_fd, &job->token,
                              job->snapshot);
    return BUGPACK_OK;
}

static bugpack_status check_room(const bp_report_context *context, const bp_job *job,
                                 uint64_t needed_bytes, bugpack_error *error) {
    return bp_limits_check_room(context->settings->min_free_bytes, &job->destination, needed_bytes,
                                error);
}

/* Whether the session records nothing itself; notifications alone cannot be turned off. */
static bool is_recorder_unused(const bp_snapshot *own) {
    return !own->log.is_on && !own->history.is_on && !own->has_traffic &&
           own->notifications.view.record_count == 0;
}

/* A session that records nothing itself reports what the process records that it is about. One that
 * has ended meanwhile may have left its id to the next process. */
static bugpack_status copy_target_rings(const bp_report_context *context, bp_job *job,
                                        bugpack_error *error) {
    pid_t pid = bp_subject_target(context->subject)->pid;
    bp_snapshot *theirs =
        pid != 0 && is_recorder_unused(job->snapshot) ? calloc(1, sizeof *theirs) : NULL;
    if (theirs == NULL) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_hosted_take(pid, context->redaction, job->destination.dir_fd,
                                           &job->token, theirs, &job->hosted, error);
    if (job->hosted == NULL || bp_subject_check(context->subject, NULL) != BUGPACK_OK) {
        bp_hosted_free(job->hosted);
        job->hosted = NULL;
    } else {
        bp_snapshot *own = job->snapshot;
        uint64_t copied_bytes = bp_snapshot_bytes(theirs);
        status =
            check_room(context, job, bp_bundle_needed_bytes(copied_bytes) - copied_bytes, error);
        job->snapshot = theirs;
        theirs = own;
    }
    bp_snapshot_release(theirs);
    free(theirs);
    return status;
}

/* Of a borrowed snapshot only the zip is still to be written. */
static bugpack_status borrow_snapshot(const bp_report_context *context, bp_job *job,
                                      bugpack_error *error) {
    bugpack_status status = job->type->take_snapshot(job, error);
    if (status == BUGPACK_OK) {
        uint64_t snapshot_bytes = bp_snapshot_bytes(job->snapshot);
        status = check_room(context, job, bp_bundle_needed_bytes(snapshot_bytes) - snapshot_bytes,
                            error);
    }
    return status;
}

static bugpack_status take(const bp_report_context *context, bp_job *job, uint64_t spare_bytes,
                           bugpack_error *error) {
    bugpack_status status = bp_cancel_check(&job->token, error);
    if (status == BUGPACK_OK) {
        status = open_destination(context->settings, job, error);
    }
    if (status == BUGPACK_OK && job->type->take_snapshot != NULL) {
        return borrow_snapshot(context, job, error);
    }
    if (status == BUGPACK_OK) {
        uint64_t ring_bytes = bp_recorder_used_bytes(context->recorder);
        status = check_room(context, job, bp_bundle_needed_bytes(ring_bytes) + spare_bytes, error);
    }
    if (status == BUGPACK_OK) {
        status = copy_rings(context, job, error);
    }
    return status == BUGPACK_OK ? copy_target_rings(context, job, error) : status;
}

void bp_job_take_snapshot(const bp_report_context *context, bp_job *job, uint64_t spare_bytes) {
    job->snapshot_status = take(context, job, spare_bytes, &job->snapshot_error);
}

void bp_job_drop_snapshot(bp_job *job) {
    free_snapshot(job);
    bp_destination_release(&job->destination);
    job->destination = (bp_destination)BP_DESTINATION_INIT;
    job->snapshot_error = (bugpack_error)BUGPACK_ERROR_INIT;
    job->snapshot_status = BUGPACK_OK;
}
