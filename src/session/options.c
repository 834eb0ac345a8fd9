#include <string.h>

#include "base/status.h"
#include "session/options_strings.h"
#include "session/session.h"

enum { app_name_max_bytes = 64, pedantic_ignore_max_count = 1000 };

static const size_t log_ring_min_bytes = 4096;
static const size_t log_ring_max_bytes = (size_t)1 << 30;

/* Takes the fields that the host's version of the struct has, and defaults for the others. */
static bugpack_status take_fields(const bugpack_options *given, bugpack_options *options,
                                  bugpack_error *error) {
    const bugpack_options defaults = BUGPACK_OPTIONS_INIT;
    const size_t first_version_bytes =
        offsetof(bugpack_options, artefact_limit_bytes) + sizeof defaults.artefact_limit_bytes;
    if (given == NULL || given->struct_size < first_version_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "the options do not come from BUGPACK_OPTIONS_INIT");
    }
    *options = defaults;
    size_t known_bytes =
        given->struct_size < sizeof *options ? given->struct_size : sizeof *options;
    memcpy(options, given, known_bytes);
    options->struct_size = sizeof *options;
    return BUGPACK_OK;
}

static bugpack_status check_fields(const bugpack_options *options, bugpack_error *error) {
    const char *app = options->app_name;
    if (app == NULL && options->target_pid == 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the options name no app_name");
    }
    if (app != NULL && (app[0] == '\0' || strlen(app) > app_name_max_bytes)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "app_name must have 1 to 64 bytes");
    }
    if (options->target_pid < 0) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process has the id %ld",
                       (long)options->target_pid);
    }
    if (options->sample_window_ms > BUGPACK_SAMPLE_WINDOW_MAX_MS) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a sample window of %u ms is over %u ms",
                       (unsigned)options->sample_window_ms, BUGPACK_SAMPLE_WINDOW_MAX_MS);
    }
    if (options->provider_timeout_ms == 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "provider_timeout_ms must be at least 1");
    }
    if (options->log_ring_bytes != 0 && (options->log_ring_bytes < log_ring_min_bytes ||
                                         options->log_ring_bytes > log_ring_max_bytes)) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "log_ring_bytes must be 0 or between 4 KiB and 1 GiB");
    }
    if (options->pedantic_ignore_count > pedantic_ignore_max_count) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "pedantic_ignore has over %u patterns",
                       (unsigned)pedantic_ignore_max_count);
    }
    if ((unsigned)options->when_busy > BUGPACK_WHEN_BUSY_COALESCE) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "when_busy has no value that is known");
    }
    if (options->artefact_limit_bytes == 0 || options->artefact_limit_bytes > (SIZE_MAX >> 8)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "artefact_limit_bytes is out of range");
    }
    if (options->without_process && options->target_pid != 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "a session about a process cannot be without one");
    }
    return BUGPACK_OK;
}

bugpack_status bp_options_copy(const bugpack_options *given, bugpack_options *options,
                               bugpack_error *error) {
    bugpack_options copy;
    bugpack_status status = take_fields(given, &copy, error);
    if (status == BUGPACK_OK) {
        status = check_fields(&copy, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_options_copy_strings(&copy, error);
        if (status != BUGPACK_OK) {
            bp_options_release(&copy);
            bp_options_release_patterns(&copy);
        }
    }
    if (status == BUGPACK_OK) {
        *options = copy;
    }
    return status;
}
