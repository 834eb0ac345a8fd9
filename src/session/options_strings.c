/*
 * The strings of a session's options: copies of the host's, and paths made absolute, because a host
 * may free the ones and change its directory under the others.
 */
#include "session/options_strings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "session/session.h"

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
    bugpack_status status =
        given == NULL ? BUGPACK_OK : bp_file_absolute_path(given, &absolute, error);
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
        status = bp_file_absolute_path(given, &absolute, error);
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
        status = bp_file_absolute_path(given, &absolute, error);
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

bugpack_status bp_options_copy_strings(bugpack_options *options, bugpack_error *error) {
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
