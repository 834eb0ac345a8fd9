#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "model/entry.h"
#include "platform/staged_file.h"
#include "report/stored_entries.h"
#include "session/session.h"

/* The strings of the options: texts as the host gave them, and directories, which become absolute.
 */
#define STRING(field) offsetof(bugpack_options, field)
static const size_t texts[] = {STRING(app_name), STRING(app_version), STRING(app_build_id),
                               STRING(calibrator_path), STRING(without_entries)};
static const size_t directories[] = {STRING(report_dir), STRING(recorder_dir), STRING(pedantic_dir),
                                     STRING(auto_snapshot_dir)};
#undef STRING

static const char **string_at(bugpack_options *options, size_t offset) {
    return (const char **)(void *)((char *)options + offset);
}

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

/* The system's directory for reports. */
static bugpack_status copy_default_dir(const char **ret_dir, bugpack_error *error) {
    char path[PATH_MAX];
    int fd = -1;
    bugpack_status status = bp_machine_report_directory(path, sizeof path, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_file_make_path(path, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_file_open_directory(path, false, &fd, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_file_check_private(fd, path, error);
    if (status == BUGPACK_OK) {
        status = copy_dir(path, ret_dir, error);
    }
out:
    bp_file_close(fd);
    return status;
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

/*
 * Replaces the host's strings by copies, and fills in the directories that it did not name. Each
 * field is ours or NULL also on failure, so that both releases can be called. Errors: NO_MEMORY,
 * INVALID (an empty path), IO, UNSUPPORTED (no directory is known).
 */
static bugpack_status options_copy_strings(bugpack_options *options, bugpack_error *error) {
    const bugpack_options given = *options;
    bool has_memory = true;
    char *recorder_dir = NULL;
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
        *string_at(options, directories[i]) = NULL;
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char **text = string_at(options, texts[i]);
        has_memory = copy_text(*text, text) && has_memory;
    }
    options->pedantic_ignore = NULL;
    options->pedantic_ignore_count = 0;
    if (!copy_patterns(&given, options) || !has_memory) {
        return bp_fail_memory(error, "open a session");
    }
    bugpack_status status = given.report_dir != NULL
                                ? copy_dir(given.report_dir, &options->report_dir, error)
                                : copy_default_dir(&options->report_dir, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (given.recorder_dir != NULL) {
        status = bp_file_absolute_path(given.recorder_dir, &recorder_dir, error);
        options->recorder_dir = recorder_dir;
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    status =
        copy_kind_dir(given.pedantic_dir, options->report_dir, "", &options->pedantic_dir, error);
    return status != BUGPACK_OK
               ? status
               : copy_kind_dir(given.auto_snapshot_dir, options->report_dir, "auto-snapshots",
                               &options->auto_snapshot_dir, error);
}

static void free_text(const char *text) {
    free((char *)(uintptr_t)text);
}

void bp_options_release(bugpack_options *options) {
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        free_text(*string_at(options, texts[i]));
    }
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
        free_text(*string_at(options, directories[i]));
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

enum { app_name_max_bytes = 64, pedantic_ignore_max_count = 1000 };

static const size_t log_ring_min_bytes = 4096;
static const size_t log_ring_max_bytes = (size_t)1 << 30;

/* clang-format off */
#define FIELD(field, default_value, off_value) \
    BP_FIELD(bugpack_options, field, default_value, off_value)
static const bp_field fields[] = {
    FIELD(sample_window_ms,          BUGPACK_SAMPLE_WINDOW_DEFAULT_MS, 0),
    FIELD(provider_timeout_ms,       2000,                             BP_FIELD_NEVER_OFF),
    FIELD(log_ring_bytes,            (size_t)4 << 20,                  0),
    FIELD(log_level,                 BUGPACK_LEVEL_DEBUG,              BUGPACK_LEVEL_OFF),
    FIELD(artefact_limit_bytes,      (size_t)64 << 20,                 BP_FIELD_NEVER_OFF),
    FIELD(traffic_budget_bytes,      (uint64_t)50 << 20,               0),
    FIELD(history_interval_ms,       1000,                             0),
    FIELD(pedantic_cap,              50,                               UINT32_MAX),
    FIELD(pedantic_channel_cap,      0,                                UINT32_MAX),
    FIELD(auto_snapshot_interval_ms, 0,                                0),
    FIELD(auto_snapshot_max_count,   20,                               0),
    FIELD(auto_snapshot_max_bytes,   (uint64_t)512 << 20,              0),
    FIELD(disconnect_cooldown_ms,    60000,                            0),
    FIELD(hang_cooldown_ms,          60000,                            0),
    FIELD(hang_cap,                  20,                               0),
    FIELD(condition_cooldown_ms,     60000,                            0),
    FIELD(condition_cap,             20,                               0),
    FIELD(profile_hz,                0,                                0),
    FIELD(disconnect_cap,            20,                               0),
    FIELD(report_dir_max_count,      1000,                             0),
    FIELD(report_dir_max_bytes,      (uint64_t)4 << 30,                0),
    FIELD(min_free_bytes,            (uint64_t)16 << 20,               0),
    FIELD(crash_refresh_interval_ms, 0,                                BP_CRASH_REFRESH_OFF)};
#undef FIELD
/* clang-format on */

static bugpack_status check_fields(const bugpack_options *options, bugpack_error *error) {
    const char *app = options->app_name;
    const bool has_target = options->target_pid != 0;
    const uint64_t log_bytes = options->log_ring_bytes;
    const uint64_t redaction = options->redaction_flags;
    const struct {
        bool is_wrong;
        const char *sentence;
    } rules[] = {
        {app == NULL && !has_target, "the options name no app_name"},
        {app != NULL && (app[0] == '\0' || strlen(app) > app_name_max_bytes),
         "app_name must have 1 to 64 bytes"},
        {log_bytes != 0 && (log_bytes < log_ring_min_bytes || log_bytes > log_ring_max_bytes),
         "log_ring_bytes must be BUGPACK_OFF64 or between 4 KiB and 1 GiB"},
        {(unsigned)options->log_level > BUGPACK_LEVEL_OFF, "log_level has an unknown value"},
        {(unsigned)options->stacks > BUGPACK_STACKS_ALL_PTRACER, "stacks has an unknown value"},
        {(options->system_flags & ~(BUGPACK_SYSTEM_HOSTNAME | BUGPACK_SYSTEM_PACKAGE)) != 0,
         "system_flags has an unknown value"},
        {(options->system_flags & BUGPACK_SYSTEM_PACKAGE) != 0 && !has_target,
         "BUGPACK_SYSTEM_PACKAGE needs a target_pid"},
        {(options->answer_flags & ~BUGPACK_ANSWER_TRIGGER) != 0,
         "answer_flags has an unknown value"},
        {options->stacks >= BUGPACK_STACKS_ALL && !has_target && options->calibrator_path == NULL,
         "stacks of all threads need a target_pid, or a calibrator_path"},
        {options->pedantic_ignore_count > pedantic_ignore_max_count,
         "pedantic_ignore has over 1000 patterns"},
        {options->crash_refresh_interval_ms != 0 && options->crash_refresh_interval_ms < 1000,
         "crash_refresh_interval_ms must be BUGPACK_OFF or at least 1000"},
        {(unsigned)options->when_busy > BUGPACK_WHEN_BUSY_COALESCE,
         "when_busy has an unknown value"},
        {(redaction & ~BUGPACK_REDACT_AT_CALL) != 0 ||
             (redaction != 0 && options->without_redaction),
         "redaction_flags has an unknown flag, or there is no redaction"},
        {options->profile_hz > BP_PROFILE_HZ_MAX, "profile_hz is over 1000"},
        {options->artefact_limit_bytes > BP_BUFFER_LIMIT_MAX,
         "artefact_limit_bytes is out of range"},
        {options->without_process && has_target, "a session about a process cannot be without one"},
    };
    if (options->target_pid < 0) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process has the id %ld",
                       (long)options->target_pid);
    }
    if (options->sample_window_ms > BUGPACK_SAMPLE_WINDOW_MAX_MS) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a sample window of %u ms is over %u ms",
                       (unsigned)options->sample_window_ms, BUGPACK_SAMPLE_WINDOW_MAX_MS);
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].is_wrong) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "%s", rules[i].sentence);
        }
    }
    if (options->without_entries != NULL && !bp_entry_is_optional_list(options->without_entries)) {
        char mistake[BP_ENTRY_MISTAKE_BYTES];
        return bp_fail(error, BUGPACK_ERR_INVALID, "without_entries: %s",
                       bp_entry_explain_list(options->without_entries, mistake));
    }
    return BUGPACK_OK;
}

bugpack_status bp_options_copy(const bugpack_options *given, bugpack_options *options,
                               bugpack_error *error) {
    bugpack_options copy = BUGPACK_OPTIONS_INIT;
    bugpack_status status = bp_struct_read(&bp_of_bugpack_options, &copy, given, error);
    if (status == BUGPACK_OK) {
        status = bp_struct_fill(&copy, fields, sizeof fields / sizeof fields[0], error);
    }
    if (status == BUGPACK_OK) {
        status = check_fields(&copy, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    status = options_copy_strings(&copy, error);
    if (status != BUGPACK_OK) {
        bp_options_release(&copy);
        bp_options_release_patterns(&copy);
        return status;
    }
    *options = copy;
    return BUGPACK_OK;
}
