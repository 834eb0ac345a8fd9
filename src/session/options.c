#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "session/session.h"

enum { app_name_max_bytes = 64, pedantic_ignore_max_count = 1000 };

static const size_t log_ring_min_bytes = 4096;
static const size_t log_ring_max_bytes = (size_t)1 << 30;

bugpack_status bp_absolute_path(const char *path, char **ret_path, bugpack_error *error) {
    char *absolute = NULL;
    if (path[0] == '\0') {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a path is empty");
    }
    if (path[0] == '/') {
        absolute = strdup(path);
    } else {
        char directory[PATH_MAX];
        if (getcwd(directory, sizeof directory) == NULL) {
            return bp_fail_errno(error, errno, "cannot find the working directory for \"%s\"",
                                 path);
        }
        /* As long as it is: that a path is too long is told, by name, where it is used. */
        size_t absolute_bytes = strlen(directory) + strlen(path) + 2;
        absolute = malloc(absolute_bytes);
        if (absolute != NULL) {
            (void)snprintf(absolute, absolute_bytes, "%s/%s",
                           strcmp(directory, "/") == 0 ? "" : directory, path);
        }
    }
    if (absolute == NULL) {
        return bp_fail_memory(error, "keep a path");
    }
    *ret_path = absolute;
    return BUGPACK_OK;
}

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

static bool copy_text(const char **text) {
    if (*text != NULL) {
        *text = strdup(*text);
        return *text != NULL;
    }
    return true;
}

/* The host's place for the recorder, or the system's; NULL when there is neither. */
static bugpack_status copy_recorder_dir(const char *given, bugpack_options *options,
                                        bugpack_error *error) {
    char default_dir[PATH_MAX];
    char *absolute = NULL;
    if (given == NULL && bp_host_runtime_directory(default_dir, sizeof default_dir)) {
        given = default_dir;
    }
    bugpack_status status = given == NULL ? BUGPACK_OK : bp_absolute_path(given, &absolute, error);
    options->recorder_dir = absolute;
    return status;
}

/* The patterns of gap keys; the list and its strings become ours, or NULL. */
static bool copy_patterns(bugpack_options *options) {
    const char *const *given = options->pedantic_ignore;
    options->pedantic_ignore = NULL;
    if (given == NULL || options->pedantic_ignore_count == 0) {
        options->pedantic_ignore_count = 0;
        return true;
    }
    char **patterns = calloc(options->pedantic_ignore_count, sizeof *patterns);
    bool is_copied = patterns != NULL;
    options->pedantic_ignore = (const char *const *)patterns;
    for (size_t i = 0; is_copied && i < options->pedantic_ignore_count; i++) {
        patterns[i] = strdup(given[i] == NULL ? "" : given[i]);
        is_copied = patterns[i] != NULL;
    }
    return is_copied;
}

/* The host's place for reports, or the system's. */
static bugpack_status copy_report_dir(const char *given, bugpack_options *options,
                                      bugpack_error *error) {
    char default_dir[PATH_MAX];
    bugpack_status status = BUGPACK_OK;
    if (given == NULL) {
        status = bp_host_report_directory(default_dir, sizeof default_dir, error);
        if (status == BUGPACK_OK) {
            status = bp_file_make_path(default_dir, error);
        }
        given = default_dir;
    }
    char *absolute = NULL;
    if (status == BUGPACK_OK) {
        status = bp_absolute_path(given, &absolute, error);
    }
    if (status == BUGPACK_OK) {
        bp_file_trim_directory(absolute);
    }
    options->report_dir = absolute;
    return status;
}

/* A directory for one kind of report: the host's, or `fallback` below report_dir. */
static bugpack_status copy_kind_dir(const char **dir, const char *report_dir, const char *fallback,
                                    bugpack_error *error) {
    const char *given = *dir;
    char *absolute = NULL;
    bugpack_status status = BUGPACK_OK;
    *dir = NULL;
    if (given != NULL) {
        status = bp_absolute_path(given, &absolute, error);
    } else {
        size_t absolute_bytes = strlen(report_dir) + strlen(fallback) + 2;
        absolute = malloc(absolute_bytes);
        if (absolute == NULL) {
            return bp_fail_memory(error, "open a session");
        }
        (void)snprintf(absolute, absolute_bytes, "%s/%s", report_dir, fallback);
    }
    if (status == BUGPACK_OK) {
        bp_file_trim_directory(absolute);
    }
    *dir = absolute;
    return status;
}

/*
 * The strings are the host's until copied: each field is ours or NULL, whenever this returns, so
 * that they can be released.
 */
static bugpack_status copy_strings(bugpack_options *options, bugpack_error *error) {
    const bugpack_options given = *options;
    const char **texts[] = {&options->app_name, &options->app_version, &options->app_build_id,
                            &options->calibrator_path};
    bool is_copied = true;
    options->report_dir = options->recorder_dir = NULL;
    options->pedantic_dir = options->auto_snapshot_dir = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!is_copied) {
            *texts[i] = NULL;
        } else {
            is_copied = copy_text(texts[i]);
        }
    }
    if (!is_copied) {
        options->pedantic_ignore = NULL;
    }
    if (!is_copied || !copy_patterns(options)) {
        return bp_fail_memory(error, "open a session");
    }
    bugpack_status status = copy_report_dir(given.report_dir, options, error);
    if (status == BUGPACK_OK) {
        status = copy_recorder_dir(given.recorder_dir, options, error);
    }
    if (status == BUGPACK_OK) {
        options->pedantic_dir = given.pedantic_dir;
        status = copy_kind_dir(&options->pedantic_dir, options->report_dir, "", error);
    }
    if (status == BUGPACK_OK) {
        options->auto_snapshot_dir = given.auto_snapshot_dir;
        status = copy_kind_dir(&options->auto_snapshot_dir, options->report_dir, "auto-snapshots",
                               error);
    }
    return status;
}

bugpack_status bp_options_copy(const bugpack_options *given, bugpack_options *options,
                               bugpack_error *error) {
    bugpack_options copy;
    bugpack_status status = take_fields(given, &copy, error);
    if (status == BUGPACK_OK) {
        status = check_fields(&copy, error);
    }
    if (status == BUGPACK_OK) {
        status = copy_strings(&copy, error);
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

static void free_text(const char *text) {
    free((char *)(uintptr_t)text);
}

void bp_options_release(bugpack_options *options) {
    const char *texts[] = {options->app_name,          options->app_version,
                           options->app_build_id,      options->report_dir,
                           options->recorder_dir,      options->pedantic_dir,
                           options->auto_snapshot_dir, options->calibrator_path};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        free_text(texts[i]);
    }
    *options = (bugpack_options){.pedantic_ignore = options->pedantic_ignore,
                                 .pedantic_ignore_count = options->pedantic_ignore_count};
}

void bp_options_release_patterns(bugpack_options *options) {
    for (size_t i = 0; options->pedantic_ignore != NULL && i < options->pedantic_ignore_count;
         i++) {
        free_text(options->pedantic_ignore[i]);
    }
    free((void *)(uintptr_t)options->pedantic_ignore);
    options->pedantic_ignore = NULL;
    options->pedantic_ignore_count = 0;
}
