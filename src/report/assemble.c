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
#include "model/entry.h"
#include "platform/host.h"
#include "report/process_windows.h"
#include "report/ring_entries.h"

static const size_t json_limit_bytes = (size_t)256 << 20;

typedef enum stage {
    STAGE_SNAPSHOT,
    STAGE_PROVIDERS,
    STAGE_RINGS,
    STAGE_WINDOW,
    STAGE_METRICS,
    STAGE_ARCHIVE
} stage;

/* Where each stage begins, in percent. A sample window takes most of the time where there is one;
 * the last percents are the disk's. */
static const unsigned char begins_with_window[] = {0, 2, 10, 15, 75, 78, 97};
static const unsigned char begins_without[] = {0, 5, 35, 45, 45, 48, 97};

/* The report is a step further: `done` of `total` steps of a stage (0 of 0 is all of it). */
static void show_progress(const bp_progress *progress, stage at, uint64_t done, uint64_t total) {
    const unsigned char *begins = progress->has_window ? begins_without : begins_with_window;
    /* No overflow: a report has fewer than 2^57 bytes, and a window fewer nanoseconds. */
    uint64_t part = done >= total ? 100 : 100 * done / total;
    progress->on_step(progress->context,
                      (uint32_t)(begins[at] + (begins[at + 1] - begins[at]) * part / 100));
}

/* What one report needs while it is assembled. */
struct assembly {
    const bp_report_context *context;
    bp_runner *runner;
    bp_job *job;
    const bp_progress *progress;
    bp_bundle *bundle;
    bp_rule_set *rules; /* NULL: redaction is off */
    char report_id[BP_ID_BYTES];
    bp_process_windows *windows;
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
static bugpack_status step(const struct assembly *assembly, stage at, uint64_t done, uint64_t total,
                           bugpack_error *error) {
    show_progress(assembly->progress, at, done, total);
    return bp_cancel_check(&assembly->job->token, error);
}

/* Whether the host has said so; then the manifest does, too. */
static bool is_left_out(const struct assembly *assembly, const char *name) {
    const char *list = assembly->context->settings->without_entries;
    return list != NULL && bp_entry_is_in_list(list, bp_entry_in_process(name));
}

static bugpack_status leave_out(const struct assembly *assembly, const char *name,
                                bugpack_error *error) {
    bugpack_writer writer;
    bp_writer_init(&writer, 0);
    bp_writer_leave_out(&writer);
    bp_writer_stamp(&writer, bp_clock_now());
    return bp_bundle_put(assembly->bundle, name, BUGPACK_OK, &writer, error);
}

static bugpack_status ask_provider(const struct assembly *assembly, bp_provider *provider,
                                   bugpack_error *error) {
    const bp_job *job = assembly->job;
    const char *name = bp_provider_name(provider);
    bugpack_writer writer;
    if (job->type->brings_entry != NULL && job->type->brings_entry(job, name)) {
        return BUGPACK_OK;
    }
    if (is_left_out(assembly, name)) {
        return leave_out(assembly, name, error);
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
        status = step(assembly, STAGE_PROVIDERS, i, count, error);
        if (status == BUGPACK_OK) {
            status = ask_provider(assembly, providers[i], error);
        }
    }
    bp_provider_list_drop(providers, count);
    return status;
}

static bugpack_status add_metadata_of(const struct assembly *assembly, bp_subject *subject,
                                      const bp_metadata_target *others, size_t other_count,
                                      bugpack_error *error) {
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
                            .machine = identity->host.name,
                            .pid = getpid(),
                            .kind = job->kind,
                            .gap_key = job->gap_key,
                            .channel = job->channel,
                            .description = job->description,
                            .region = job->region,
                            .exit = job->has_exit ? &job->exit : NULL,
                            .session_opened = identity->opened,
                            .triggered = job->triggered,
                            .written = bp_clock_now(),
                            .target = *bp_subject_target(subject),
                            .tags = job->tags == NULL ? NULL : job->tags->tags,
                            .is_about_none = settings->without_process,
                            .others = others,
                            .other_count = other_count,
                            .tag_count = job->tags == NULL ? 0 : job->tags->count};
    metadata.target_uptime_ns = bp_subject_uptime(subject);
    if (metadata.target_uptime_ns != 0) {
        metadata.started_wall_ns = metadata.written.wall_ns - metadata.target_uptime_ns;
    }
    if (job->hosted != NULL) {
        bp_hosted_describe(job->hosted, &metadata);
    }
    memcpy(metadata.report_id, assembly->report_id, sizeof metadata.report_id);
    memcpy(metadata.session_id, identity->id, sizeof metadata.session_id);
    bugpack_writer writer;
    char name[BP_SUBJECT_NAME_BYTES];
    bp_writer_init(&writer, json_limit_bytes);
    bugpack_status status = bp_metadata_print(&metadata, &writer.content, error);
    bp_writer_stamp(&writer, metadata.written);
    return bp_bundle_put(assembly->bundle, bp_subject_entry(subject, "metadata.json", name), status,
                         &writer, error);
}

/* Of each process; the first names the others. */
static bugpack_status add_metadata(const struct assembly *assembly, bugpack_error *error) {
    size_t count = 0;
    bp_subject *subject;
    while (bp_process_windows_subject(assembly->windows, count) != NULL) {
        count++;
    }
    bp_metadata_target *targets = calloc(count, sizeof *targets);
    bugpack_status status =
        targets != NULL ? BUGPACK_OK : bp_fail_memory(error, "describe a report");
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        targets[i] = *bp_subject_target(bp_process_windows_subject(assembly->windows, i));
    }
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        subject = bp_process_windows_subject(assembly->windows, i);
        status = add_metadata_of(assembly, subject, targets + 1, i == 0 ? count - 1 : 0, error);
    }
    free(targets);
    return status;
}

static bugpack_status publish(struct assembly *assembly, bugpack_report_result *result,
                              bugpack_error *error) {
    const bp_report_context *context = assembly->context;
    const bp_job *job = assembly->job;
    bp_trigger_list triggers = {.entries = NULL};
    bugpack_status status = context->list_triggers(context->triggers, job, &triggers, error);
    if (status == BUGPACK_OK) {
        bp_bundle_set_triggers(assembly->bundle, triggers.entries, triggers.count);
        show_progress(assembly->progress, STAGE_ARCHIVE, 0, 0);
        status = bp_destination_publish(&job->destination, assembly->bundle, result, error);
        bp_bundle_set_triggers(assembly->bundle, NULL, 0);
    }
    bp_trigger_list_release(&triggers);
    return status;
}

static bugpack_status add_ring_entries(const struct assembly *assembly, bugpack_error *error) {
    const bp_job *job = assembly->job;
    return bp_ring_entries_add(job->snapshot, job->only_channel ? job->channel : NULL,
                               assembly->context->settings->without_entries, assembly->bundle,
                               error);
}

static bugpack_status add_own_entries(const struct assembly *assembly, bugpack_error *error) {
    bp_job *job = assembly->job;
    return job->type->add_entries != NULL ? job->type->add_entries(job, assembly->bundle, error)
                                          : BUGPACK_OK;
}

static void show_window(const bp_progress *progress, uint64_t done, uint64_t total) {
    show_progress(progress, STAGE_WINDOW, done, total);
}

static bugpack_status wait_window(const struct assembly *assembly, bugpack_error *error) {
    return bp_process_windows_wait(assembly->windows, assembly->progress, show_window, error);
}

static bugpack_status add_metrics(const struct assembly *assembly, bugpack_error *error) {
    return bp_process_windows_add(assembly->windows, assembly->bundle, error);
}

/* The steps after the snapshot, in their order, and the stage that each one completes. */
static const struct {
    bugpack_status (*run)(const struct assembly *assembly, bugpack_error *error);
    stage stage;
} steps[] = {
    {note_process, STAGE_SNAPSHOT},  {ask_providers, STAGE_PROVIDERS},
    {add_ring_entries, STAGE_RINGS}, {add_own_entries, STAGE_RINGS},
    {wait_window, STAGE_WINDOW},     {add_metrics, STAGE_METRICS},
    {add_metadata, STAGE_METRICS},
};

static bugpack_status assemble(struct assembly *assembly, bugpack_report_result *result,
                               bugpack_error *error) {
    bp_job *job = assembly->job;
    const bugpack_options *settings = assembly->context->settings;
    bugpack_status status = bp_destination_hold(&job->destination, error);
    if (status == BUGPACK_OK) {
        status = bp_redaction_hold(job->hosted != NULL ? job->hosted->redaction
                                                       : assembly->context->redaction,
                                   &assembly->rules, error);
    }
    const bp_bundle_target target = {
        .dir_fd = job->destination.dir_fd,
        .dir_name = job->destination.dir_path,
        .report_id = assembly->report_id,
        .wall_ns = job->triggered.wall_ns,
        .token = &job->token,
        .rules = assembly->rules,
        .key = bp_redaction_key(assembly->context->redaction),
        .hook = {settings->before_publish, settings->before_publish_context,
                 settings->publish_suffix},
        .before_write = assembly->context->before_write,
        .lacks_before_write = job->hosted != NULL && job->hosted->had_before_write};
    if (status == BUGPACK_OK) {
        status = bp_bundle_new(&target, &assembly->bundle, error);
    }
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
    assembly.windows = bp_process_windows_begin(context, job);
    progress->wait_snapshot(progress->context);
    /* What the snapshot met comes first, so that a bad destination costs no window. */
    if (job->snapshot_status != BUGPACK_OK) {
        result->error = job->snapshot_error;
        result->status = job->snapshot_status;
    } else if (assembly.windows == NULL) {
        result->status = bp_fail_memory(&result->error, "take a report");
    } else {
        result->status = assemble(&assembly, result, &result->error);
    }
    bp_process_windows_free(assembly.windows);
    bp_bundle_free(assembly.bundle);
    bp_rule_set_drop(assembly.rules);
    result->elapsed_ns = bp_clock_monotonic_ns() - job->triggered.monotonic_ns;
}
