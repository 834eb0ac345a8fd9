#include "report/window.h"

#include <stdio.h>

#include "model/metrics.h"
#include "platform/host.h"

static const size_t json_limit_bytes = (size_t)256 << 20;

void bp_window_begin(const bp_report_context *context, const bp_job *job, bp_window *ret_window) {
    *ret_window = (bp_window){.began_ns = bp_clock_monotonic_ns()};
    if (!job->has_window) {
        bp_sampler *sampler = bp_subject_sampler(context->subject, &ret_window->error);
        ret_window->status = sampler == NULL ? ret_window->error.status
                                             : bp_sampler_begin(sampler, &ret_window->error);
    }
}

void bp_window_wait(const bp_report_context *context, const bp_job *job, const bp_window *window,
                    const bp_progress *progress) {
    if (window->status == BUGPACK_OK && !job->has_window) {
        bp_progress_wait(progress, &job->token, window->began_ns,
                         window->began_ns + context->settings->sample_window_ms * BP_NS_PER_MS);
    }
}

/* A thread that ended inside the window has no row in the metrics. */
static void note_vanished(bugpack_writer *writer, size_t vanished_count) {
    if (vanished_count > 0) {
        (void)snprintf(writer->line.note, sizeof writer->line.note,
                       "threads that ended inside the window: %zu", vanished_count);
    }
}

/* The second sample and the maths, or the window of the history that ended at the trigger. */
static bugpack_status compute(const bp_report_context *context, const bp_job *job,
                              bp_metrics *ret_metrics, uint64_t *ret_ended_ns,
                              bugpack_error *error) {
    uint64_t began_ns = 0;
    if (job->has_window) {
        return bp_history_held_compute(&job->window, ret_metrics, &began_ns, ret_ended_ns, error);
    }
    bugpack_status status =
        bp_sampler_end(bp_subject_sampler(context->subject, NULL), ret_metrics, error);
    *ret_ended_ns = bp_clock_monotonic_ns();
    return status;
}

/* The metrics are there: prints and releases them. */
static bugpack_status print(bp_metrics *metrics, bp_instant began, uint64_t ended_ns,
                            bugpack_writer *writer, bugpack_error *error) {
    bugpack_status status = bp_metrics_print(metrics, bp_host_platform(), &writer->content, error);
    bp_manifest_line *line = &writer->line;
    line->covers_to_wall_ns = began.wall_ns - (began.monotonic_ns - ended_ns);
    line->covers_from_wall_ns = line->covers_to_wall_ns - metrics->sample_window_ms * BP_NS_PER_MS;
    note_vanished(writer, metrics->vanished_count);
    bp_metrics_release(metrics);
    return status;
}

/* The entry exists and says why it has no metrics: it still counts as missing. */
static bugpack_status print_unavailable(const char *reason, bugpack_writer *writer,
                                        bugpack_error *error) {
    writer->line.status = BP_ARTEFACT_FAILED;
    writer->line.is_missing = true;
    (void)snprintf(writer->line.reason, sizeof writer->line.reason, "%s", reason);
    return bp_metrics_print_unavailable(bp_host_platform(), reason, &writer->content, error);
}

bugpack_status bp_window_add(const bp_report_context *context, const bp_job *job,
                             const bp_window *window, bp_bundle *bundle, bugpack_error *error) {
    bugpack_writer writer;
    bp_metrics metrics;
    bugpack_error detail = window->error;
    bugpack_status status = window->status;
    bp_writer_init(&writer, json_limit_bytes);
    bp_instant began = bp_clock_now();
    uint64_t ended_ns = 0;
    if (status == BUGPACK_OK) {
        status = compute(context, job, &metrics, &ended_ns, &detail);
    }
    status = status == BUGPACK_OK ? print(&metrics, began, ended_ns, &writer, error)
                                  : print_unavailable(detail.message, &writer, error);
    bp_writer_stamp(&writer, began);
    return bp_bundle_put(bundle, "runtime-metrics.json", status, &writer, error);
}
