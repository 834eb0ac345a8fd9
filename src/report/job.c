#include "report/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "probe/session_copies.h"
#include "report/retention.h"

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

void bp_hosted_free(bp_hosted *hosted) {
    if (hosted != NULL) {
        bp_redaction_free(hosted->redaction);
        free(hosted);
    }
}

void bp_hosted_describe(const bp_hosted *hosted, bp_metadata *metadata) {
    const bp_session_identity *identity = &hosted->identity;
    memcpy(metadata->target.session_id, identity->session_id, sizeof identity->session_id);
    if (strcmp(metadata->app_name, metadata->target.name) == 0) {
        metadata->app_name = identity->app_name;
        metadata->app_version = identity->app_version;
        metadata->app_build_id = identity->app_build_id;
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

void bp_job_release(bp_job *job) {
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
}

void bp_job_free(bp_job *job) {
    if (job != NULL) {
        bp_job_release(job);
        free(job);
    }
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

/* Once there is a snapshot, only the zip is still to be written. */
static bugpack_status check_room_for_zip(const bp_report_context *context, const bp_job *job,
                                         bugpack_error *error) {
    uint64_t snapshot_bytes = bp_snapshot_bytes(job->snapshot);
    return bp_destination_check_room(&job->destination, context->settings->min_free_bytes,
                                     bp_bundle_needed_bytes(snapshot_bytes) - snapshot_bytes,
                                     error);
}

/* The names that the files have in a session's directory. */
static void name_copies(const bp_session_copies *copies, bp_session_copy *named) {
    for (size_t i = 0; i < copies->count; i++) {
        const bp_copied_file *copied = &copies->items[i];
        named[i].fd = copied->kind == BP_ANCHOR_FILE ? copied->file.fd : copies->rings.fd;
        named[i].base = copied->base;
        if (copied->kind == BP_ANCHOR_FILE) {
            memcpy(named[i].name, copied->name, sizeof copied->name);
        } else {
            bp_session_ring_name((bp_ring_kind)copied->kind, copied->number, named[i].name);
        }
    }
}

/* An instant on both clocks as the process has them: when it was last noted to be alive, or, with
 * rings in memory alone, when its session was opened. */
static bp_instant last_instant(const bp_session_copies *copies, bp_instant opened) {
    bp_instant last = opened, alive;
    for (size_t i = 0; i < copies->count; i++) {
        const bp_ring_place ring = {copies->rings.fd, copies->items[i].base};
        if (copies->items[i].kind != BP_ANCHOR_FILE && bp_ring_read_alive(ring, &alive) &&
            alive.monotonic_ns != BP_RING_CLOSED_NS && alive.monotonic_ns > last.monotonic_ns) {
            last = alive;
        }
    }
    return last;
}

static bugpack_status recover_copies(const bp_session_place *place, const bp_session_copies *copies,
                                     const bp_redaction *ours, int dir_fd, bp_snapshot *snapshot,
                                     bp_hosted *hosted, bugpack_error *error) {
    bugpack_status status = bp_session_identity_read(place, &hosted->identity, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_instant at =
        copies->is_clock_ours ? bp_clock_now() : last_instant(copies, hosted->identity.opened);
    hosted->identity.wall_offset_ns = at.wall_ns - at.monotonic_ns;
    hosted->had_before_write = bp_before_write_was_set(place);
    status = bp_redaction_load(place, ours, &hosted->redaction, error);
    if (status == BUGPACK_OK) {
        status = bp_recover_rings(place, &hosted->identity, dir_fd, snapshot, error);
        snapshot->is_recovered = false; /* it lives, and nothing waits for a next try */
    }
    return status;
}

bugpack_status bp_hosted_take(pid_t pid, const bp_redaction *ours, int dir_fd,
                              const bp_cancel_token *token, bp_snapshot *snapshot,
                              bp_hosted **ret_hosted, bugpack_error *error) {
    bp_session_copies copies = {.count = 0};
    bugpack_status status = bp_session_copies_take(pid, dir_fd, token, &copies, error);
    if (status != BUGPACK_OK || copies.ring_count + copies.unread_count == 0) {
        bp_session_copies_release(&copies);
        return status;
    }
    bp_hosted *hosted = calloc(1, sizeof *hosted);
    bp_session_copy *named = calloc(copies.count, sizeof *named);
    if (hosted == NULL || named == NULL) {
        status = bp_fail_memory(error, "copy the rings of a process");
    } else {
        const bp_session_place place = {.dir_fd = -1, .copies = named, .copy_count = copies.count};
        name_copies(&copies, named);
        status = recover_copies(&place, &copies, ours, dir_fd, snapshot, hosted, error);
        snapshot->token = token;
        /* A child has the table of the host that it was forked from, and no rings. */
        if (status == BUGPACK_OK && copies.ring_count == 0 && hosted->identity.pid != pid) {
            status = BUGPACK_ERR_CORRUPT;
        }
    }
    free(named);
    bp_session_copies_release(&copies);
    if (status == BUGPACK_OK) {
        *ret_hosted = hosted;
        return BUGPACK_OK;
    }
    bp_hosted_free(hosted);
    /* What the process made up is no failure of the report. */
    return status == BUGPACK_ERR_CORRUPT ? BUGPACK_OK : status;
}

/* A session that records nothing itself reports what the process records that it is about. One that
 * has ended meanwhile may have left its id to the next process. */
static bugpack_status copy_target_rings(const bp_report_context *context, bp_job *job,
                                        bugpack_error *error) {
    pid_t pid = bp_subject_target(context->subject)->pid;
    const bp_snapshot *ours = job->snapshot;
    /* Notifications alone cannot be turned off. */
    bool is_unused = !ours->log.is_on && !ours->history.is_on && !ours->has_traffic &&
                     ours->notifications.view.record_count == 0;
    bp_snapshot *theirs = pid != 0 && is_unused ? calloc(1, sizeof *theirs) : NULL;
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
    status = open_destination(context->settings, job, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (job->type->take_snapshot != NULL) {
        status = job->type->take_snapshot(job, error);
        return status == BUGPACK_OK ? check_room_for_zip(context, job, error) : status;
    }
    uint64_t ring_bytes = bp_recorder_used_bytes(context->recorder);
    status = bp_destination_check_room(&job->destination, context->settings->min_free_bytes,
                                       bp_bundle_needed_bytes(ring_bytes) + spare_bytes, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    job->snapshot = calloc(1, sizeof *job->snapshot);
    if (job->snapshot == NULL) {
        return bp_fail_memory(error, "copy the rings");
    }
    bp_recorder_take_snapshot(
        context->recorder,
        job->only_channel && job->type->take_latecomers == NULL ? job->channel : NULL,
        job->triggered.monotonic_ns, job->destination.dir_fd, &job->token, job->snapshot);
    return copy_target_rings(context, job, error);
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
