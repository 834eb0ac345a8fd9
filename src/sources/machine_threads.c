/*
 * host-threads.json: all threads of the machine as an artefact.
 */
#include <bugpack/capture_host.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "probe/machine_capture.h"
#include "sources/source.h"

/* What the provider needs; it outlives the session when it hangs. */
struct host_source {
    bugpack_host_options options; /* its string is ours */
    char *calibrator_path;
    char *temp_dir;
};

static bugpack_status capture(const struct host_source *source, bugpack_writer *writer,
                              bp_machine_summary *ret_summary, bugpack_error *error) {
    const bp_machine_root root = BP_MACHINE_ROOT_INIT;
    bp_heap_prober_options prober_options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_machine_plan plan = {.on_progress = source->options.on_progress,
                            .context = source->options.context,
                            .window_ms = source->options.window_ms,
                            .stop = &writer->is_abandoned};
    bp_heap_prober *prober = NULL;
    int dir_fd = -1;
    prober_options.calibrator_path = source->calibrator_path;
    prober_options.allow_stop = false; /* one capture would stop threads all over the machine */
    bugpack_status status = bp_file_open_directory(source->temp_dir, false, &dir_fd, error);
    if (status == BUGPACK_OK && !source->options.without_heap) {
        status = bp_heap_prober_new(&prober_options, &prober, error);
    }
    if (status == BUGPACK_OK) {
        plan.prober = prober;
        status =
            bp_machine_capture(&root, &plan, dir_fd, bp_writer_sink, writer, ret_summary, error);
    }
    bp_heap_prober_free(prober);
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
    return status;
}

/* The manifest repeats what is most worth knowing of the summary. */
static void note_dominant(const bp_machine_summary *summary, bugpack_writer *writer) {
    bp_machine_dominant dominant;
    bp_machine_find_dominant(summary, &dominant);
    if (dominant.count > 0) {
        (void)snprintf(writer->line.note, sizeof writer->line.note,
                       "%" PRIu64 " threads; most often not read: %s (%s, %" PRIu64 ")%s%.150s",
                       summary->thread_count, dominant.group, dominant.cause, dominant.count,
                       dominant.advice[0] != '\0' ? ": " : "", dominant.advice);
    }
}

static int provide_host(bugpack_writer *writer, void *context) {
    bp_machine_summary *summary = malloc(sizeof *summary);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = summary == NULL ? bp_fail_memory(&error, "read all threads")
                                            : capture(context, writer, summary, &error);
    if (status == BUGPACK_OK) {
        note_dominant(summary, writer);
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
    free(source->temp_dir);
    free(source);
}

static bugpack_status new_source(const bugpack_options *settings,
                                 const bugpack_host_options *options,
                                 struct host_source **ret_source, bugpack_error *error) {
    struct host_source *source = calloc(1, sizeof *source);
    bool has_memory = source != NULL;
    if (has_memory) {
        source->options = *options;
        source->temp_dir = strdup(settings->report_dir);
        has_memory = source->temp_dir != NULL;
    }
    if (has_memory && options->calibrator_path != NULL) {
        source->calibrator_path = strdup(options->calibrator_path);
        has_memory = source->calibrator_path != NULL;
    }
    if (!has_memory) {
        if (source != NULL) {
            free_source(source);
        }
        return bp_fail_memory(error, "prepare a capture of the machine");
    }
    *ret_source = source;
    return BUGPACK_OK;
}

static uint32_t add_ms(uint32_t a, uint32_t b) {
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

bugpack_status bp_source_host_threads(const bp_report_context *context,
                                      const bugpack_host_options *given, bugpack_error *error) {
    static const bp_field fields[] = {
        BP_FIELD(bugpack_host_options, timeout_ms, 300000, BP_FIELD_NEVER_OFF),
        BP_FIELD(bugpack_host_options, window_ms, 1000, 0)};
    static const uint32_t window_max_ms = 600000;
    bugpack_host_options options = BUGPACK_HOST_OPTIONS_INIT;
    struct host_source *source = NULL;
    bugpack_status status =
        given == NULL ? BUGPACK_OK
                      : bp_struct_read(&bp_of_bugpack_host_options, &options, given, error);
    if (status == BUGPACK_OK) {
        status = bp_struct_fill(&options, fields, sizeof fields / sizeof fields[0], error);
    }
    if (status == BUGPACK_OK && options.window_ms > window_max_ms) {
        status = bp_fail(error, BUGPACK_ERR_INVALID, "window_ms must be BUGPACK_OFF or at most %u",
                         (unsigned)window_max_ms);
    }
    if (status == BUGPACK_OK) {
        status = new_source(context->settings, &options, &source, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    const bp_provider_spec spec = {.name = "host-threads.json",
                                   .form = BP_CONTENT_BYTES,
                                   .provide = provide_host,
                                   .context = source,
                                   .release = free_source,
                                   .limit_bytes = SIZE_MAX / 4,
                                   .timeout_ms = add_ms(options.timeout_ms, options.window_ms)};
    return bp_provider_list_add(context->providers, &spec, error);
}
