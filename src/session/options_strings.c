/*
 * The strings of a session's options: copies of the host's, and paths made absolute, because a host
 * may free the ones and change its directory under the others.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "session/session.h"

/* One text; NULL stays NULL. False without memory. */
static bool copy_text(const char *given, const char **ret_copy) {
    *ret_copy = given == NULL ? NULL : strdup(given);
    return given == NULL || *ret_copy != NULL;
}

/* The patterns of gap keys. */
static bool copy_patterns(const bugpack_options *given, bugpack_options *options) {
    size_t count = given->pedantic_ignore == NULL ? 0 : given->pedantic_ignore_count;
    if (count == 0) {
        return true;
    }
    const char **patterns = calloc(count, sizeof *patterns);
    bool is_copied = patterns != NULL;
    options->pedantic_ignore = patterns;
    options->pedantic_ignore_count = count;
    for (size_t i = 0; is_copied && i < count; i++) {
        const char *pattern = given->pedantic_ignore[i];
        is_copied = copy_text(pattern == NULL ? "" : pattern, &patterns[i]);
    }
    return is_copied;
}

static bool copy_texts(const bugpack_options *given, bugpack_options *options) {
    return copy_text(given->app_name, &options->app_name) &&
           copy_text(given->app_version, &options->app_version) &&
           copy_text(given->app_build_id, &options->app_build_id) &&
           copy_text(given->calibrator_path, &options->calibrator_path) &&
           copy_text(given->publish_suffix, &options->publish_suffix) &&
           copy_text(given->without_entries, &options->without_entries) &&
           copy_patterns(given, options);
}

/* The host's directory for the recorder; NULL stays NULL. */
static bugpack_status copy_recorder_dir(const char *given, bugpack_options *options,
                                        bugpack_error *error) {
    char *absolute = NULL;
    bugpack_status status =
        given == NULL ? BUGPACK_OK : bp_file_absolute_path(given, &absolute, error);
    options->recorder_dir = absolute;
    return status;
}

/* A directory of reports. */
static bugpack_status copy_dir(const char *given, const char **ret_dir, bugpack_error *error) {
    char *absolute = NULL;
    bugpack_status status = bp_file_absolute_path(given, &absolute, error);
    if (status == BUGPACK_OK) {
        bp_file_trim_directory(absolute);
        *ret_dir = absolute;
    }
    return status;
}

static bugpack_status check_private(const char *path, bugpack_error *error) {
    int fd = -1;
    bugpack_status status = bp_file_open_directory(path, false, &fd, error);
    if (status == BUGPACK_OK) {
        status = bp_file_check_private(fd, path, error);
        (void)close(fd);
    }
    return status;
}

/* The host's directory for reports, or the system's. */
static bugpack_status copy_report_dir(const char *given, bugpack_options *options,
                                      bugpack_error *error) {
    char default_dir[PATH_MAX];
    bugpack_status status = BUGPACK_OK;
    if (given == NULL) {
        status = bp_host_report_directory(default_dir, sizeof default_dir, error);
        if (status == BUGPACK_OK) {
            status = bp_file_make_path(default_dir, error);
        }
        if (status == BUGPACK_OK) {
            status = check_private(default_dir, error);
        }
        given = default_dir;
    }
    return status == BUGPACK_OK ? copy_dir(given, &options->report_dir, error) : status;
}

/* A directory for one kind of report: the host's, or `fallback` below report_dir. */
static bugpack_status copy_kind_dir(const char *given, const char *report_dir, const char *fallback,
                                    const char **ret_dir, bugpack_error *error) {
    char *below = NULL;
    if (given == NULL && asprintf(&below, "%s/%s", report_dir, fallback) < 0) {
        return bp_fail_memory(error, "open a session");
    }
    bugpack_status status = copy_dir(given != NULL ? given : below, ret_dir, error);
    free(below);
    return status;
}

bugpack_status bp_options_copy_strings(bugpack_options *options, bugpack_error *error) {
    const bugpack_options given = *options;
    options->app_name = options->app_version = options->app_build_id = NULL;
    options->report_dir = options->recorder_dir = options->calibrator_path = NULL;
    options->pedantic_dir = options->auto_snapshot_dir = options->publish_suffix = NULL;
    options->pedantic_ignore = NULL;
    options->without_entries = NULL;
    options->pedantic_ignore_count = 0;
    if (!copy_texts(&given, options)) {
        return bp_fail_memory(error, "open a session");
    }
    bugpack_status status = copy_report_dir(given.report_dir, options, error);
    if (status == BUGPACK_OK) {
        status = copy_recorder_dir(given.recorder_dir, options, error);
    }
    if (status == BUGPACK_OK) {
        status = copy_kind_dir(given.pedantic_dir, options->report_dir, "", &options->pedantic_dir,
                               error);
    }
    if (status == BUGPACK_OK) {
        status = copy_kind_dir(given.auto_snapshot_dir, options->report_dir, "auto-snapshots",
                               &options->auto_snapshot_dir, error);
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
                           options->auto_snapshot_dir, options->calibrator_path,
                           options->publish_suffix,    options->without_entries};
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
