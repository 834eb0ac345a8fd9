/*
 * Recovery at the opening: dead sessions of this app become crash reports.
 */
#include <stdbool.h>

#include "base/status.h"
#include "recorder/recorder.h"
#include "report/recover.h"
#include "report/retention.h"
#include "trigger/trigger.h"

/* The context of one recovery's callbacks. */
struct recovery {
    const bp_report_context *report;
    bool is_told; /* something that could not be looked at */
};

static void on_report(const bugpack_report_result *result, void *context) {
    const struct recovery *recovery = context;
    const bp_report_context *report = recovery->report;
    bp_events_post_result(report->events, BP_REPORT_CRASH, 0, 0, result);
    if (result->status == BUGPACK_OK) {
        bp_note_log(report->recorder, BUGPACK_LEVEL_INFO, "a session that died is in %s",
                    result->path);
        bp_retention_apply(report, result->path, BP_REPORT_CRASH, (bp_report_bounds){0});
    } else {
        bp_note_log(report->recorder, BUGPACK_LEVEL_WARN,
                    "a session that died was not recovered: %s", result->error.message);
    }
}

static void on_note(const bp_recover_note *note, void *context) {
    struct recovery *recovery = context;
    if (note->kind != BP_RECOVER_SEARCHED) {
        bp_note_log(recovery->report->recorder, BUGPACK_LEVEL_WARN, "recovery in \"%s\": %s",
                    note->path, note->text);
        recovery->is_told = recovery->is_told || note->kind == BP_RECOVER_UNSEEN;
    }
}

static void run(bp_job *job, bp_runner *runner) {
    (void)runner;
    const bp_report_context *context = job->payload;
    const bp_config *config = context->config;
    struct recovery recovery = {.report = context};
    bugpack_error error = BUGPACK_ERROR_INIT;
    const bugpack_recover_options options = {.recorder_dir = config->recorder_dir,
                                             .app_name = config->app_name,
                                             .min_free_bytes = config->min_free_bytes,
                                             .max_zip_bytes = config->max_zip_bytes,
                                             .with_hostname = config->with_hostname,
                                             .before_publish = config->before_publish.call,
                                             .before_publish_context =
                                                 config->before_publish.context,
                                             .on_report = on_report,
                                             .context = &recovery};
    const bp_recover_calls calls = {.on_note = on_note};
    if (bp_recover(&options, &calls, &error) != BUGPACK_OK && !recovery.is_told) {
        bp_note_log(context->recorder, BUGPACK_LEVEL_WARN,
                    "sessions that died are not recovered: %s", error.message);
    }
}

static const bp_job_type job_type = {.run = run};

static bugpack_status open_trigger(const bp_report_context *context, void **ret_self,
                                   bugpack_error *error) {
    const bp_config *config = context->config;
    (void)ret_self;
    if (config->is_in_memory) {
        return BUGPACK_OK;
    }
    bp_job *job = bp_job_new(context, &job_type, 0);
    if (job == NULL) {
        return bp_fail_memory(error, "look for sessions that died");
    }
    job->payload = (void *)(uintptr_t)context;
    return bp_job_queue_submit(context->jobs, job, NULL, error);
}

const bp_trigger bp_trigger_recovery = {.open = open_trigger};
