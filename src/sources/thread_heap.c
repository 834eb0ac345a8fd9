#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "probe/thread_heap.h"
#include "sources/source.h"

/* A report waits for a calibration no longer than this, and for a stopped thread even less. */
static const uint32_t calibration_timeout_ms = 1000;

/* What the provider needs, as it outlives the session when it hangs. */
struct heap_source {
    pid_t pid;
    char *calibrator_path;
};

/*
 * A process without a jemalloc has no such artefact and lacks nothing: the manifest says why it is
 * absent, and the report is complete. A refusal is worth a line too, and is no failure of the
 * report, because nobody asked for these counters in particular.
 */
static int provide(bugpack_writer *writer, void *context) {
    const struct heap_source *source = context;
    bp_heap_prober_options options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_heap_prober *prober = NULL;
    bp_thread_heap_reading reading = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    options.calibrator_path = source->calibrator_path;
    options.calibration_timeout_ms = calibration_timeout_ms;
    bugpack_status status = bp_heap_prober_new(&options, &prober, &error);
    if (status == BUGPACK_OK) {
        status = bp_heap_probe(prober, source->pid, &plan, &reading, &error);
        bp_heap_prober_free(prober);
    }
    if (status == BUGPACK_OK && reading.failure != BP_HEAP_FAILURE_NONE) {
        bp_writer_refuse(writer, BP_ARTEFACT_OMITTED, "%s: %s",
                         bp_heap_failure_name(reading.failure), reading.reason);
        writer->line.is_missing = false;
    } else if (status == BUGPACK_OK) {
        status = bp_thread_heap_print(&reading, &writer->content, &error);
    }
    bp_thread_heap_reading_release(&reading);
    if (status != BUGPACK_OK) {
        return bugpack_fail(writer, "%s", error.message);
    }
    return 0;
}

static void free_source(void *context) {
    struct heap_source *source = context;
    free(source->calibrator_path);
    free(source);
}

static struct heap_source *new_source(const bugpack_options *settings) {
    const char *path = settings->calibrator_path;
    struct heap_source *source = calloc(1, sizeof *source);
    if (source != NULL) {
        source->pid = settings->target_pid;
        source->calibrator_path = path != NULL ? strdup(path) : NULL;
        if (path != NULL && source->calibrator_path == NULL) {
            free(source);
            return NULL;
        }
    }
    return source;
}

bugpack_status bp_source_thread_heap(const bp_report_context *context, bugpack_error *error) {
    if (bp_subject_target(context->subject)->pid == 0) {
        return BUGPACK_OK;
    }
    struct heap_source *source = new_source(context->settings);
    if (source == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    const bp_provider_spec spec = {.name = "thread-heap.json",
                                   .form = BP_CONTENT_BYTES,
                                   .provide = provide,
                                   .context = source,
                                   .release = free_source,
                                   .limit_bytes = (size_t)256 << 20,
                                   .timeout_ms = context->settings->provider_timeout_ms};
    return bp_provider_list_add(context->providers, &spec, error);
}
