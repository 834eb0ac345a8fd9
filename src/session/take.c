/*
 * One report, from the first sample to the published zip. Runs on the worker's thread.
 *
 * The order of the steps is what makes a report speak of one instant: the first sample is taken at
 * once, while the freezer copies the rings, the providers run while the window passes, and only
 * then comes the wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "report/bundle.h"
#include "session/disconnect.h"
#include "session/progress.h"
#include "session/recorded.h"
#include "session/session.h"
#include "session/triggers.h"
#include "session/window.h"

static const size_t json_limit_bytes = (size_t)256 << 20;

/* What one report needs while it is taken. */
struct taking {
    bugpack *session;
    bp_order *order; /* snapshot */
    bp_bundle *bundle;
    char report_id[BP_ID_BYTES];
    bp_window window;
};

/*
 * process.json has a provider where there is a sampler. Where there could be one, and only this
 * session has none, the ledger tells of it.
 */
static bugpack_status note_process(struct taking *taking, bugpack_error *error) {
    const bugpack *session = taking->session;
    if (session->sampler != NULL || session->sampler_error.status == BUGPACK_ERR_UNSUPPORTED) {
        return BUGPACK_OK;
    }
    bugpack_writer writer;
    bp_writer_init(&writer, 0);
    bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "%s", session->sampler_error.message);
    bp_writer_stamp(&writer, bp_clock_now());
    return bp_bundle_put(taking->bundle, "process.json", BUGPACK_OK, &writer, error);
}

/* A step is done. A report that is given up begins no other, and asks no further provider: each
 * would cost a thread, for nothing. */
static bugpack_status step(const struct taking *taking, bp_stage stage, uint64_t done,
                           uint64_t total, bugpack_error *error) {
    bp_progress_step(taking->session, taking->order, stage, done, total);
    return bp_cancel_check(&taking->order->token, error);
}

static bugpack_status collect_providers(struct taking *taking, bugpack_error *error) {
    bugpack *session = taking->session;
    bp_provider **providers = NULL;
    size_t count = 0;
    bugpack_status status = bp_session_list_providers(session, &providers, &count, error);
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        bugpack_writer writer;
        if (bp_pedantic_state_replaces(taking->order, bp_provider_name(providers[i]))) {
            continue;
        }
        bp_writer_init(&writer, SIZE_MAX / 4);
        bp_writer_set_channel(&writer, taking->order->channel);
        status = step(taking, BP_STAGE_PROVIDERS, i, count, error);
        if (status == BUGPACK_OK &&
            bp_runner_call(session->runner, providers[i], &taking->order->token, &writer)) {
            status = bp_bundle_put(taking->bundle, bp_provider_name(providers[i]), BUGPACK_OK,
                                   &writer, error);
        }
    }
    bp_session_drop_providers(providers, count);
    return status == BUGPACK_OK ? bp_pedantic_state_add(taking->order, taking->bundle, error)
                                : status;
}

static bugpack_status add_metadata(struct taking *taking, bugpack_error *error) {
    const bugpack *session = taking->session;
    const bp_order *order = taking->order;
    bp_metadata metadata = {.sequence = order->ticket,
                            .app_name = session->options.app_name,
                            .app_version = session->options.app_version,
                            .app_build_id = session->options.app_build_id,
                            .platform = bp_host_platform(),
                            .arch = session->host.arch,
                            .kernel = session->host.kernel,
                            .pid = getpid(),
                            .kind = order->kind,
                            .gap_key = order->gap_key,
                            .channel = order->channel,
                            .description = order->description,
                            .region = bp_screenshot_region(order->screenshot),
                            .session_opened = session->opened,
                            .triggered = order->triggered,
                            .written = bp_clock_now(),
                            .target = session->target};
    memcpy(metadata.report_id, taking->report_id, sizeof metadata.report_id);
    memcpy(metadata.session_id, session->id, sizeof metadata.session_id);
    bugpack_writer writer;
    bp_writer_init(&writer, json_limit_bytes);
    bugpack_status status = bp_metadata_print(&metadata, &writer.content, error);
    bp_writer_stamp(&writer, metadata.written);
    return bp_bundle_put(taking->bundle, "metadata.json", status, &writer, error);
}

static void on_bytes(void *context, uint64_t done_bytes, uint64_t total_bytes) {
    const struct taking *taking = context;
    bp_progress_step(taking->session, taking->order, BP_STAGE_ARCHIVE, done_bytes, total_bytes);
}

static bugpack_status publish(struct taking *taking, bugpack_report_result *result,
                              bugpack_error *error) {
    const bp_order *order = taking->order;
    const bp_watch watch = {.token = &order->token, .on_bytes = on_bytes, .context = taking};
    bp_trigger_list triggers = {.entries = NULL};
    bugpack_status status = bp_session_list_triggers(taking->session, order, &triggers, error);
    if (status == BUGPACK_OK) {
        bp_bundle_set_triggers(taking->bundle, triggers.entries, triggers.count);
        status = bp_destination_publish(&order->destination, taking->bundle, taking->report_id,
                                        order->triggered.wall_ns, &watch, result, error);
        bp_bundle_set_triggers(taking->bundle, NULL, 0);
    }
    bp_trigger_list_release(&triggers);
    return status;
}

/* The steps in their order; what the freezer met comes first, so that a bad destination costs no
 * window. */
static bugpack_status take(struct taking *taking, bugpack_report_result *result,
                           bugpack_error *error) {
    bp_order *order = taking->order;
    bp_window_begin(taking->session, order, &taking->window);
    bp_job_wait_snapshotted(taking->session, order);
    bugpack_status status = order->snapshot_status;
    if (status != BUGPACK_OK) {
        *error = order->snapshot_error;
        return status;
    }
    status = step(taking, BP_STAGE_SNAPSHOT, 0, 0, error);
    if (status == BUGPACK_OK) {
        status = note_process(taking, error);
    }
    if (status == BUGPACK_OK) {
        status = collect_providers(taking, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_recorded_add(order->snapshot, order->destination.dir_fd, taking->bundle, error);
    }
    if (status == BUGPACK_OK && order->screenshot != NULL) {
        status = bp_screenshot_add(order->screenshot, order->destination.dir_fd, &order->token,
                                   taking->bundle, error);
    }
    if (status == BUGPACK_OK) {
        status = step(taking, BP_STAGE_RECORDED, 0, 0, error);
    }
    if (status == BUGPACK_OK) {
        bp_window_wait(taking->session, order, &taking->window);
        status = step(taking, BP_STAGE_WINDOW, 0, 0, error);
    }
    if (status == BUGPACK_OK && !taking->session->options.without_process) {
        status = bp_window_add(taking->session, order, &taking->window, taking->bundle, error);
    }
    if (status == BUGPACK_OK) {
        status = add_metadata(taking, error);
    }
    if (status == BUGPACK_OK && order->cause != NULL) {
        status = bp_cause_add(order->cause, taking->bundle, error);
    }
    if (status == BUGPACK_OK) {
        status = step(taking, BP_STAGE_METRICS, 0, 0, error);
    }
    if (status == BUGPACK_OK) {
        status = publish(taking, result, error);
    }
    return status;
}

void bp_session_take_report(bugpack *session, bp_order *order, bugpack_report_result *result) {
    *result = (bugpack_report_result){.struct_size = sizeof *result};
    struct taking taking = {.session = session, .order = order, .bundle = bp_bundle_new()};
    bp_id_new(taking.report_id);
    bugpack_status status = taking.bundle == NULL ? bp_fail_memory(&result->error, "take a report")
                                                  : take(&taking, result, &result->error);
    bp_job_wait_snapshotted(session, order); /* it goes now, also where the steps failed early */
    bp_bundle_free(taking.bundle);
    result->status = status;
    result->elapsed_ns = bp_clock_monotonic_ns() - order->triggered.monotonic_ns;
}
