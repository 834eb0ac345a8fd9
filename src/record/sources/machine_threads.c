/*
 * host-threads.json: all threads of the machine as an artefact.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "machine/machine_capture.h"
#include "sources/source.h"

/* The report then continues without the entry. */
static const uint32_t timeout_ms = 300000;

/* The provider's context; it outlives the session when it hangs. */
struct host_source {
    bp_machine_plan plan;
    char *calibrator_path;
};

static bugpack_status capture(const struct host_source *source, bugpack_writer *writer,
                              bp_machine_summary *ret_summary, bugpack_error *error) {
    const bp_machine_root root = BP_MACHINE_ROOT_INIT;
    bp_heap_prober_options prober_options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_machine_plan plan = source->plan;
    prober_options.calibrator_path = source->calibrator_path;
    prober_options.allow_stop = plan.may_stop;
    plan.stop = &writer->is_abandoned;
    bugpack_status status = bp_heap_prober_new(&prober_options, &plan.prober, error);
    if (status == BUGPACK_OK) {
        status = bp_machine_capture(&root, &plan, bp_writer_sink, writer, ret_summary, error);
    }
    bp_heap_prober_free(plan.prober);
    return status;
}

static int provide_host(bugpack_writer *writer, void *context) {
    bp_machine_summary *summary = malloc(sizeof *summary);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = summary == NULL ? bp_fail_memory(&error, "read all threads")
                                            : capture(context, writer, summary, &error);
    if (status == BUGPACK_OK) {
        (void)snprintf(writer->line.note, sizeof writer->line.note, "%" PRIu64 " threads",
                       summary->thread_count);
        char reason[BP_REASON_BYTES];
        bp_machine_summary_explain(summary, reason, sizeof reason);
        if (bp_machine_summary_has_loss(summary)) {
            bp_writer_truncate(writer, true, "%s", reason);
        } else if (!bp_machine_summary_is_complete(summary)) {
            (void)snprintf(writer->line.note, sizeof writer->line.note,
                           "this user may not read: %s", reason);
        }
    } else {
        (void)bugpack_fail(writer, "%s", error.message);
    }
    free(summary);
    return status == BUGPACK_OK ? 0 : -1;
}

static void free_source(void *context) {
    struct host_source *source = context;
    free(source->calibrator_path);
    free(source);
}

bugpack_status bp_source_host_threads(const bp_report_context *context, const bp_machine_plan *plan,
                                      bugpack_error *error) {
    const char *calibrator_path = context->config->calibrator_path;
    struct host_source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        return bp_fail_memory(error, "prepare a capture of the machine");
    }
    source->plan = *plan;
    source->plan.prober = NULL;
    source->calibrator_path = calibrator_path == NULL ? NULL : strdup(calibrator_path);
    if (calibrator_path != NULL && source->calibrator_path == NULL) {
        free_source(source);
        return bp_fail_memory(error, "prepare a capture of the machine");
    }
    const bp_provider_spec spec = {.name = "host-threads.json",
                                   .form = BUGPACK_PROVIDE_BYTES,
                                   .provide = provide_host,
                                   .context = source,
                                   .release = free_source,
                                   .limit_bytes = SIZE_MAX / 4,
                                   .timeout_ms = plan->window_ms < UINT32_MAX - timeout_ms
                                                     ? timeout_ms + plan->window_ms
                                                     : UINT32_MAX};
    return bp_provider_list_add(context->providers, &spec, error);
}
