/*
 * The sequence of the steps makes a report describe one instant: the first sample is taken at once,
 * while the snapshot thread copies the rings; the providers run while the window passes; only then
 * comes the wait.
 */
#include "report/assemble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/host.h"
#include "report/ring_entries.h"
#include "report/window.h"

static const size_t json_limit_bytes = (size_t)256 << 20;

/* What one report needs while it is assembled. */
struct assembly {
    const bp_report_context *context;
    bp_runner *runner;
    bp_job *job;
    const bp_progress *progress;
    bp_bundle *bundle;
    char report_id[BP_ID_BYTES];
    bp_window window;
};

/*
 * process.json has a provider where there is a sampler. Where there could be one, and only this
 * session has none, the manifest says why.
 */
static bugpack_status note_process(const struct assembly *assembly, bugpack_error *error) {
    bugpack_error reason = BUGPACK_ERROR_INIT;
    if (bp_subject_sampler(assembly->context->subject, &reason) != NULL ||
        reason.status == BUGPACK_ERR_UNSUPPORTED) {
        return BUGPACK_OK;
    }
    bugpack_writer writer;
    bp_writer_init(&writer, 0);
    bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "%s", reason.message);
    bp_writer_stamp(&writer, bp_clock_now());
    return bp_bundle_put(assembly->bundle, "process.json", BUGPACK_OK, &writer, error);
}

/* A step is done. A cancelled report begins no other, and asks no further provider: each would cost
 * a thread, for nothing. */
static bugpack_status step(const struct assembly *assembly, bp_stage stage, uint64_t done,
                           uint64_t total, bugpack_error *error) {
    bp_progress_step(assembly->progress, stage, done, total);
    return bp_cancel_check(&assembly->job->token, error);
}

static bugpack_status ask_provider(const struct assembly *assembly, bp_provider *provider,
                                   bugpack_error *error) {
    const bp_job *job = assembly->job;
    const char *name = bp_provider_name(provider);
    bugpack_writer writer;
    if (job->type->brings_entry != NULL && job->type->brings_entry(job, name)) {
        return BUGPACK_OK;
    }
    bp_writer_init(&writer, SIZE_MAX / 4);
    bp_writer_set_channel(&writer, job->channel);
    bugpack_status status = bp_bundle_begin(assembly->bundle, name, &writer, error);
    if (status == BUGPACK_OK && bp_runner_call(assembly->runner, provider, &job->token, &writer)) {
        status = bp_bundle_add(assembly->bundle, name, &writer, error);
    }
    bp_writer_release(&writer);
    return status;
}

static bugpack_status ask_providers(const struct assembly *assembly, bugpack_error *error) {
    bp_provider **providers = NULL;
    size_t count = 0;
    bugpack_status status =
        bp_provider_list_get(assembly->context->providers, &providers, &count, error);
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        status = step(assembly, BP_STAGE_PROVIDERS, i, count, error);
        if (status == BUGPACK_OK) {
            status = ask_provider(assembly, providers[i], error);
        }
    }
    bp_provider_list_drop(providers, count);
    return status;
}

static bugpack_status add_metadata(const struct assembly *assembly, bugpack_error *error) {
    const bugpack_options *settings = assembly->context->settings;
    const bp_identity *identity = assembly->context->identity;
    const bp_job *job = assembly->job;
    bp_metadata metadata = {.sequence = job->ticket,
                            .app_name = settings->app_name,
                            .app_version = settings->app_version,
                            .app_build_id = settings->app_build_id,
                            .platform = bp_host_platform(),
                            .arch = identity->host.arch,
                            .kernel = identity->host.kernel,
                            .pid = getpid(),
                            .kind = job->kind,
                            .gap_key = job->gap_key,
                            .channel = job->channel,
                            .description = job->description,
                            .region = job->region,
                            .session_opened = identity->opened,
                            .triggered = job->triggered,
                            .written = bp_clock_now(),
                            .target = *bp_subject_target(assembly->context->subject),
                            .tags = job->tags == NULL ? NULL : job->tags->tags,
                            .tag_count = job->tags == NULL ? 0 : job->tags->count};
    memcpy(metadata.report_id, assembly->report_id, sizeof metadata.report_id);
    memcpy(metadata.session_id, identity->id, sizeof metadata.session_id);
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    bugpack_status status = bp_metadata_print(&metadata, &writer.content, error);
    bp_writer_stamp(&writer, metadata.written);
    return bp_bundle_put(assembly->bundle, "metadata.json", status, &writer, error);
}

static bugpack_status publish(struct assembly *assembly, bugpack_report_result *result,
                              bugpack_error *error) {
    const bp_report_context *context = assembly->context;
    const bp_job *job = assembly->job;
    bp_trigger_list triggers = {.entries = NULL};
    bugpack_status status = context->list_triggers(context->triggers, job, &triggers, error);
    if (status == BUGPACK_OK) {
        bp_bundle_set_triggers(assembly->bundle, triggers.entries, triggers.count);
        bp_progress_step(assembly->progress, BP_STAGE_ARCHIVE, 0, 0);
        status = bp_destination_publish(&job->destination, assembly->bundle, result, error);
        bp_bundle_set_triggers(assembly->bundle, NULL, 0);
    }
    bp_trigger_list_release(&triggers);
    return status;
}

static bugpack_status add_ring_entries(const struct assembly *assembly, bugpack_error *error) {
    const bp_job *job = assembly->job;
    return bp_ring_entries_add(job->snapshot, assembly->bundle, error);
}

static bugpack_status add_own_entries(const struct assembly *assembly, bugpack_error *error) {
    bp_job *job = assembly->job;
    return job->type->add_entries != NULL ? job->type->add_entries(job, assembly->bundle, error)
                                          : BUGPACK_OK;
}

static bugpack_status add_metrics(const struct assembly *assembly, bugpack_error *error) {
    const bp_report_context *context = assembly->context;
    return context->settings->without_process
               ? BUGPACK_OK
               : bp_window_add(context, assembly->job, &assembly->window, assembly->bundle, error);
}

static bugpack_status wait_window(const struct assembly *assembly, bugpack_error *error) {
    bp_window_wait(assembly->context, assembly->job, &assembly->window, assembly->progress);
    return bp_cancel_check(&assembly->job->token, error);
}

/* The steps after the snapshot, in their order, and the stage that each one completes. */
static const struct {
    bugpack_status (*run)(const struct assembly *assembly, bugpack_error *error);
    bp_stage stage;
} steps[] = {
    {note_process, BP_STAGE_SNAPSHOT},  {ask_providers, BP_STAGE_PROVIDERS},
    {add_ring_entries, BP_STAGE_RINGS}, {add_own_entries, BP_STAGE_RINGS},
    {wait_window, BP_STAGE_WINDOW},     {add_metrics, BP_STAGE_METRICS},
    {add_metadata, BP_STAGE_METRICS},
};

static bugpack_status assemble(struct assembly *assembly, bugpack_report_result *result,
                               bugpack_error *error) {
    const bp_job *job = assembly->job;
    const bp_bundle_target target = {.dir_fd = job->destination.dir_fd,
                                     .dir_name = job->destination.dir_path,
                                     .report_id = assembly->report_id,
                                     .wall_ns = job->triggered.wall_ns,
                                     .token = &job->token};
    bugpack_status status = bp_bundle_new(&target, &assembly->bundle, error);
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = steps[i].run(assembly, error);
        if (status == BUGPACK_OK) {
            status = step(assembly, steps[i].stage, 0, 0, error);
        }
    }
    return status == BUGPACK_OK ? publish(assembly, result, error) : status;
}

void bp_assemble(const bp_report_context *context, bp_runner *runner, bp_job *job,
                 const bp_progress *progress, bugpack_report_result *result) {
    *result = (bugpack_report_result){.struct_size = sizeof *result};
    struct assembly assembly = {
        .context = context, .runner = runner, .job = job, .progress = progress};
    bp_id_new(assembly.report_id);
    bp_window_begin(context, job, &assembly.window);
    progress->wait_snapshot(progress->context);
    /* What the snapshot met comes first, so that a bad destination costs no window. */
    if (job->snapshot_status != BUGPACK_OK) {
        result->error = job->snapshot_error;
        result->status = job->snapshot_status;
    } else {
        result->status = assemble(&assembly, result, &result->error);
    }
    bp_bundle_free(assembly.bundle);
    result->elapsed_ns = bp_clock_monotonic_ns() - job->triggered.monotonic_ns;
}
