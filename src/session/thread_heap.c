/*
 * The allocation counters of another process: alone, and as an artefact of a report about it.
 */
#include <bugpack/heap.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "probe/thread_heap.h"
#include "session/session.h"

static const char artefact_name[] = "thread-heap.json";

static const size_t text_limit_bytes = (size_t)256 << 20;

/* A report waits for a calibration no longer than this, and for a stopped thread even less. */
static const uint32_t calibration_timeout_ms = 1000;

static bugpack_status take_options(const bugpack_thread_heap_options *given,
                                   bugpack_thread_heap_options *options, bugpack_error *error) {
    const bugpack_thread_heap_options defaults = BUGPACK_THREAD_HEAP_OPTIONS_INIT;
    const size_t first_version_bytes =
        offsetof(bugpack_thread_heap_options, as_text) + sizeof defaults.as_text;
    *options = defaults;
    if (given != NULL) {
        if (given->struct_size < first_version_bytes) {
            return bp_fail(error, BUGPACK_ERR_INVALID,
                           "the options do not come from BUGPACK_THREAD_HEAP_OPTIONS_INIT");
        }
        size_t known_bytes =
            given->struct_size < sizeof *options ? given->struct_size : sizeof *options;
        memcpy(options, given, known_bytes);
    }
    if (options->interval_ms > BUGPACK_THREAD_HEAP_INTERVAL_MAX_MS) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "an interval of %u ms is over %u ms",
                       (unsigned)options->interval_ms, BUGPACK_THREAD_HEAP_INTERVAL_MAX_MS);
    }
    return BUGPACK_OK;
}

/* Fields that an older caller does not know are left out. */
static void fill_result(const bp_thread_heap_reading *reading, bugpack_thread_heap_result *result) {
    bugpack_thread_heap_result full = {
        .is_measured = reading->failure == BP_HEAP_FAILURE_NONE,
        .is_absence = bp_heap_failure_is_absence(reading->failure, reading->system_errno),
        .unread_count = (uint32_t)bp_thread_heap_unread_count(reading)};
    if (result == NULL || result->struct_size < sizeof full.struct_size) {
        return;
    }
    for (size_t i = 0; i < reading->snapshot_count; i++) {
        full.stopped_count += (uint32_t)reading->snapshots[i].stopped_count;
    }
    (void)snprintf(full.failure, sizeof full.failure, "%s", bp_heap_failure_name(reading->failure));
    memcpy(full.reason, reading->reason, sizeof full.reason);
    full.struct_size = result->struct_size < sizeof full ? result->struct_size : sizeof full;
    memcpy(result, &full, full.struct_size);
}

static bugpack_status probe(pid_t pid, const bugpack_thread_heap_options *options,
                            bp_thread_heap_reading *ret_reading, bugpack_error *error) {
    bp_heap_prober_options prober_options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_prober *prober = NULL;
    bp_heap_plan plan = {options->snapshot_count, options->interval_ms, options->stop_fd};
    prober_options.allow_stop = options->allow_stop;
    prober_options.calibrator_path = options->calibrator_path;
    prober_options.use_cache = options->use_cache;
    bugpack_status status = bp_heap_prober_new(&prober_options, &prober, error);
    if (status == BUGPACK_OK) {
        status = bp_heap_probe(prober, pid, &plan, ret_reading, error);
        bp_heap_prober_free(prober);
    }
    if (status == BUGPACK_OK && ret_reading->failure == BP_HEAP_FAILURE_PID_MISSING) {
        status = bp_fail(error, BUGPACK_ERR_NO_PROCESS, "%s", ret_reading->reason);
        bp_thread_heap_reading_release(ret_reading);
    }
    return status;
}

static bugpack_status read_counters(pid_t pid, const bugpack_thread_heap_options *given,
                                    char **ret_text, size_t *ret_bytes,
                                    bugpack_thread_heap_result *result, bugpack_error *error) {
    bugpack_thread_heap_options options;
    bp_thread_heap_reading reading = {0};
    bp_buffer text;
    bugpack_status status = take_options(given, &options, error);
    if (status == BUGPACK_OK) {
        status = probe(pid, &options, &reading, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_buffer_init(&text, text_limit_bytes);
    status = options.as_text ? bp_thread_heap_print_text(&reading, &text, error)
                             : bp_thread_heap_print(&reading, &text, error);
    if (status == BUGPACK_OK) {
        fill_result(&reading, result);
        *ret_text = text.data;
        if (ret_bytes != NULL) {
            *ret_bytes = text.size;
        }
    } else {
        bp_buffer_release(&text);
    }
    bp_thread_heap_reading_release(&reading);
    return status;
}

bugpack_status bugpack_thread_heap_read(pid_t pid, const bugpack_thread_heap_options *options,
                                        char **ret_text, size_t *ret_bytes,
                                        bugpack_thread_heap_result *result, bugpack_error *error) {
    int cancel = bp_thread_hold_cancel();
    bugpack_status status = read_counters(pid, options, ret_text, ret_bytes, result, error);
    bp_thread_allow_cancel(cancel);
    return status;
}

/* What the provider needs, as it outlives the session when it hangs. */
struct heap_source {
    pid_t pid;
    char *calibrator_path;
};

/*
 * A process without a jemalloc has no such artefact and lacks nothing: the ledger says why it is
 * not there, and the report is complete. A refusal is worth a line too, and is no failure of the
 * report, because nobody asked for these counters in particular.
 */
static int provide_heap(bugpack_writer *writer, void *context) {
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
        bugpack_fail(writer, "%s", error.message);
        return -1;
    }
    return 0;
}

static void free_source(void *context) {
    struct heap_source *source = context;
    free(source->calibrator_path);
    free(source);
}

static bugpack_status new_source(const bugpack *session, struct heap_source **ret_source,
                                 bugpack_error *error) {
    const char *path = session->options.calibrator_path;
    struct heap_source *source = calloc(1, sizeof *source);
    if (source != NULL) {
        source->pid = session->options.target_pid;
        source->calibrator_path = path != NULL ? strdup(path) : NULL;
    }
    if (source == NULL || (path != NULL && source->calibrator_path == NULL)) {
        free(source);
        return bp_fail_memory(error, "open a session");
    }
    *ret_source = source;
    return BUGPACK_OK;
}

bugpack_status bp_session_provide_thread_heap(bugpack *session, bugpack_error *error) {
    struct heap_source *source = NULL;
    bugpack_status status = new_source(session, &source, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_provider_spec spec = {.name = artefact_name,
                             .form = BP_CONTENT_BYTES,
                             .provide = provide_heap,
                             .context = source,
                             .release = free_source,
                             .limit_bytes = text_limit_bytes,
                             .timeout_ms = session->options.provider_timeout_ms};
    return bp_session_register(session, &spec, error);
}
