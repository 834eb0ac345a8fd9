#include "report/process_windows.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "model/metrics.h"
#include "platform/host.h"

static const size_t json_limit_bytes = (size_t)256 << 20;

/* A process that ends inside a window of our own costs the metrics at most this share of it. */
static const uint64_t kept_share = 8;

/* How often a wait looks at its progress. */
static const uint64_t look_interval_ns = 50 * BP_NS_PER_MS;

typedef struct process_window {
    bp_subject *subject;
    bp_window *of_trigger; /* NULL: our own, which begins with the first sample */
    bugpack_status status;
    bugpack_error error;
    bool has_ended;
} process_window;

struct bp_process_windows {
    const bp_report_context *context;
    const bp_job *job;
    uint64_t began_ns;
    size_t count;
    process_window items[];
};

bp_process_windows *bp_process_windows_begin(const bp_report_context *context, const bp_job *job) {
    size_t count = 0;
    for (bp_subject *one = context->subject; one != NULL; one = bp_subject_next(one)) {
        count++;
    }
    bp_process_windows *windows = calloc(1, sizeof *windows + count * sizeof windows->items[0]);
    if (windows == NULL) {
        return NULL;
    }
    *windows = (bp_process_windows){
        .context = context, .job = job, .began_ns = bp_clock_monotonic_ns(), .count = count};
    bp_subject *subject = context->subject;
    for (size_t i = 0; i < count; i++, subject = bp_subject_next(subject)) {
        process_window *window = &windows->items[i];
        window->subject = subject;
        window->of_trigger = i == 0 ? job->window : NULL;
        if (window->of_trigger == NULL) {
            bp_sampler *sampler = bp_subject_sampler(subject, &window->error);
            window->status =
                sampler == NULL ? window->error.status : bp_sampler_begin(sampler, &window->error);
        }
    }
    return windows;
}

void bp_process_windows_free(bp_process_windows *windows) {
    free(windows);
}

bp_subject *bp_process_windows_subject(const bp_process_windows *windows, size_t index) {
    return index < windows->count ? windows->items[index].subject : NULL;
}

/* Samples what may end before its window does. False when no process is left to wait for. */
static bool keep(bp_process_windows *windows, bool may_sample) {
    bool may_wait = false;
    for (size_t i = 0; i < windows->count; i++) {
        process_window *window = &windows->items[i];
        bool is_open = window->of_trigger == NULL && window->status == BUGPACK_OK;
        if (is_open && may_sample && bp_subject_target(window->subject)->pid != 0) {
            window->has_ended = bp_sampler_keep(bp_subject_sampler(window->subject, NULL), NULL) ==
                                BUGPACK_ERR_NO_PROCESS;
        }
        may_wait = may_wait || (is_open && !window->has_ended);
    }
    return may_wait;
}

/* Waits until a window of our own has passed, unless each first sample failed. */
static void wait_own_window(bp_process_windows *windows, const bp_progress *progress,
                            void (*show)(const bp_progress *progress, uint64_t done,
                                         uint64_t total)) {
    uint64_t began_ns = windows->began_ns;
    uint64_t window_ns = windows->context->settings->sample_window_ms * BP_NS_PER_MS;
    uint64_t end_ns = began_ns + window_ns;
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t keep_ns = began_ns;
    bool may_wait = keep(windows, false);
    while (may_wait && now_ns < end_ns && !bp_cancel_is_due(&windows->job->token)) {
        show(progress, now_ns - began_ns, window_ns);
        uint64_t until_ns = now_ns + look_interval_ns < end_ns ? now_ns + look_interval_ns : end_ns;
        may_wait = progress->wait(progress->context, until_ns);
        now_ns = bp_clock_monotonic_ns();
        if (may_wait && now_ns >= keep_ns && now_ns < end_ns) {
            may_wait = keep(windows, true);
            keep_ns = now_ns + window_ns / kept_share;
        }
    }
}

/* The monitor has taken the sample long ago, unless the trigger came right after the first one. */
static void wait_trigger_window(const bp_job *job, const bp_progress *progress,
                                void (*show)(const bp_progress *progress, uint64_t done,
                                             uint64_t total)) {
    bp_window *window = job->window;
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t deadline_ns = bp_window_deadline_ns(window);
    if (deadline_ns < now_ns + look_interval_ns) {
        deadline_ns = now_ns + look_interval_ns;
    }
    while (now_ns < deadline_ns && bp_window_wait(window, now_ns + look_interval_ns) == NULL &&
           !bp_cancel_is_due(&job->token)) {
        show(progress, 0, 1);
        now_ns = bp_clock_monotonic_ns();
    }
}

bugpack_status bp_process_windows_wait(bp_process_windows *windows, const bp_progress *progress,
                                       void (*show)(const bp_progress *progress, uint64_t done,
                                                    uint64_t total),
                                       bugpack_error *error) {
    if (windows->job->window != NULL) {
        wait_trigger_window(windows->job, progress, show);
    }
    wait_own_window(windows, progress, show);
    return bp_cancel_check(&windows->job->token, error);
}

/* The metrics are there. `reference` is the instant that relates the two clocks. */
static bugpack_status print(const bp_job *job, const bp_window_result *window, bp_instant reference,
                            bugpack_writer *writer, bugpack_error *error) {
    bp_manifest_line *line = &writer->line;
    const bp_metrics *metrics = &window->metrics;
    line->covers_from_wall_ns = reference.wall_ns + (metrics->began_ns - reference.monotonic_ns);
    line->covers_to_wall_ns = reference.wall_ns + (metrics->ended_ns - reference.monotonic_ns);
    bp_metrics_describe(metrics, job->triggered.monotonic_ns, line->note, sizeof line->note);
    if (window->error.status != BUGPACK_OK) {
        bp_writer_truncate(writer, true, "%s", window->error.message);
    }
    if (metrics->unread_count > 0 && writer->line.status == BP_ARTEFACT_OK) {
        bp_writer_truncate(writer, true,
                           "at least %zu descendants run and could not be read; their cost is not "
                           "in these numbers",
                           metrics->unread_count);
    }
    return bp_metrics_print(metrics, bp_host_platform(), &writer->content, error);
}

/* The entry exists and says why it has no metrics: it still counts as missing. */
static bugpack_status print_unavailable(const char *reason, bugpack_writer *writer,
                                        bugpack_error *error) {
    writer->line.status = BP_ARTEFACT_FAILED;
    writer->line.is_missing = true;
    (void)snprintf(writer->line.reason, sizeof writer->line.reason, "%s", reason);
    return bp_metrics_print_unavailable(bp_host_platform(), reason, &writer->content, error);
}

/* The second sample and the arithmetic. */
static void end_own_window(const process_window *own, bp_window_result *window) {
    window->error = own->error;
    window->status = own->status;
    if (window->status == BUGPACK_OK) {
        window->status = bp_sampler_end_or_last(bp_subject_sampler(own->subject, NULL),
                                                &window->metrics, &window->error);
    }
}

static bugpack_status add_one(const bp_job *job, const process_window *given, bp_bundle *bundle,
                              bugpack_error *error) {
    bugpack_writer writer;
    bp_window_result own = {.status = BUGPACK_OK};
    const bp_window_result *window = &own;
    bp_instant now = bp_clock_now();
    char name[BP_SUBJECT_NAME_BYTES];
    bp_writer_init(&writer, json_limit_bytes);
    if (given->of_trigger != NULL) {
        window = bp_window_give_up(given->of_trigger); /* a result that is there, or the best */
    } else {
        end_own_window(given, &own);
    }
    bugpack_status status =
        window->status == BUGPACK_OK
            ? print(job, window, given->of_trigger != NULL ? job->triggered : now, &writer, error)
            : print_unavailable(window->error.message, &writer, error);
    bp_metrics_release(&own.metrics);
    bp_writer_stamp(&writer, now);
    return bp_bundle_put(bundle, bp_subject_entry(given->subject, "runtime-metrics.json", name),
                         status, &writer, error);
}

bugpack_status bp_process_windows_add(const bp_process_windows *windows, bp_bundle *bundle,
                                      bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    if (windows->context->settings->without_process) {
        return BUGPACK_OK;
    }
    for (size_t i = 0; status == BUGPACK_OK && i < windows->count; i++) {
        status = add_one(windows->job, &windows->items[i], bundle, error);
    }
    return status;
}
