/*
 * The host's options become the session's bp_config. Nothing else reads the public struct.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "model/fit.h"
#include "session/session.h"

enum { app_name_max_bytes = 64 };

/* crash_refresh_interval_ms for never, as 0 is its default. */
#define CRASH_REFRESH_OFF UINT32_MAX

static const size_t log_ring_min_bytes = 4096;
static const size_t log_ring_max_bytes = (size_t)1 << 30;

/* clang-format off */
#define FIELD(field, default_value, off_value, max_value) \
    BP_FIELD(bugpack_options, field, default_value, off_value, max_value)
static const bp_field fields[] = {
    FIELD(sample_window_ms,                   BUGPACK_SAMPLE_WINDOW_DEFAULT_MS, 0, BUGPACK_SAMPLE_WINDOW_MAX_MS),
    FIELD(recorder.log_ring_bytes,            (size_t)4 << 20,     0,                  UINT64_MAX),
    FIELD(recorder.traffic_budget_bytes,      (uint64_t)50 << 20,  0,                  UINT64_MAX),
    FIELD(recorder.history_interval_ms,       1000,                0,                  BP_FIELD_MAX32),
    FIELD(recorder.profile_hz,                0,                   0,                  BP_PROFILE_HZ_MAX),
    FIELD(recorder.crash_refresh_interval_ms, 0,                   CRASH_REFRESH_OFF,  BP_FIELD_MAX32),
    FIELD(pedantic.cap,                       50,                  UINT32_MAX,         BP_FIELD_MAX32),
    FIELD(pedantic.channel_cap,               0,                   0,                  BP_FIELD_MAX32),
    FIELD(auto_snapshot.interval_ms,          0,                   0,                  BP_FIELD_MAX32),
    FIELD(auto_snapshot.max_count,            20,                  0,                  BP_FIELD_MAX32),
    FIELD(auto_snapshot.max_bytes,            (uint64_t)512 << 20, 0,                  UINT64_MAX),
    FIELD(limits.provider_timeout_ms,         2000,                BP_FIELD_NEVER_OFF, BP_FIELD_MAX32),
    FIELD(limits.artefact_bytes,              (size_t)64 << 20,    BP_FIELD_NEVER_OFF, BP_BUFFER_LIMIT_MAX),
    FIELD(limits.max_zip_bytes,               0,                   0,                  UINT64_MAX),
    FIELD(limits.report_dir_max_count,        1000,                0,                  BP_FIELD_MAX32),
    FIELD(limits.report_dir_max_bytes,        (uint64_t)4 << 30,   0,                  UINT64_MAX),
    FIELD(limits.min_free_bytes,              (uint64_t)16 << 20,  0,                  UINT64_MAX),
    FIELD(limits.disconnect_cooldown_ms,      60000,               0,                  BP_FIELD_MAX32),
    FIELD(limits.disconnect_cap,              20,                  0,                  BP_FIELD_MAX32),
    FIELD(limits.hang_cooldown_ms,            60000,               0,                  BP_FIELD_MAX32),
    FIELD(limits.hang_cap,                    20,                  0,                  BP_FIELD_MAX32),
    FIELD(limits.condition_cooldown_ms,       60000,               0,                  BP_FIELD_MAX32),
    FIELD(limits.condition_cap,               20,                  0,                  BP_FIELD_MAX32),
    FIELD(limits.per_signature,               5,                   0,                  BP_FIELD_MAX32)};
#undef FIELD
/* clang-format on */

/* The struct inside that has something in `reserved`: a field of a later version. NULL if none. */
static const char *find_reserved(const bugpack_options *options) {
#define GROUP(group)                                                                               \
    { #group, options->group.reserved, sizeof options->group.reserved / sizeof(uint64_t) }
    const struct {
        const char *name;
        const uint64_t *reserved;
        size_t count;
    } groups[] = {GROUP(recorder), GROUP(pedantic), GROUP(auto_snapshot), GROUP(redaction),
                  GROUP(limits)};
#undef GROUP
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (size_t at = 0; at < groups[i].count; at++) {
            if (groups[i].reserved[at] != 0) {
                return groups[i].name;
            }
        }
    }
    return NULL;
}

static bugpack_status check_fields(const bugpack_options *options, bugpack_error *error) {
    const char *app = options->app_name;
    const bool has_target = options->target_pid != 0;
    const uint64_t log_bytes = options->recorder.log_ring_bytes;
    const uint64_t refresh_ms = options->recorder.crash_refresh_interval_ms;
    const struct {
        bool is_wrong;
        const char *sentence;
    } rules[] = {
        {app == NULL && !has_target, "app_name is NULL, and there is no target_pid"},
        {app != NULL && (app[0] == '\0' || strlen(app) > app_name_max_bytes),
         "app_name must have 1 to 64 bytes"},
        {log_bytes != 0 && (log_bytes < log_ring_min_bytes || log_bytes > log_ring_max_bytes),
         "recorder.log_ring_bytes must be BUGPACK_OFF or between 4 KiB and 1 GiB"},
        {!bp_fit_is_limit(options->limits.max_zip_bytes),
         "limits.max_zip_bytes must be BUGPACK_OFF or at least 64 KiB"},
        {(unsigned)options->recorder.log_level > BUGPACK_LEVEL_OFF,
         "recorder.log_level has an unknown value"},
        {(unsigned)options->stacks > BUGPACK_STACKS_ALL_PTRACER, "stacks has an unknown value"},
        {options->stacks >= BUGPACK_STACKS_ALL && !has_target && options->calibrator_path == NULL,
         "stacks of all threads need a target_pid, or a calibrator_path"},
        {refresh_ms != 0 && refresh_ms < 1000,
         "recorder.crash_refresh_interval_ms must be BUGPACK_OFF or at least 1000"},
        {(unsigned)options->when_busy > BUGPACK_WHEN_BUSY_COALESCE,
         "when_busy has an unknown value"},
        {(unsigned)options->redaction.mode > BUGPACK_REDACT_NEVER,
         "redaction.mode has an unknown value"},
        {options->without_process && has_target, "without_process excludes a target_pid"},
    };
    const char *unknown_in = find_reserved(options);
    if (unknown_in != NULL) {
        return bp_fail(
            error, BUGPACK_ERR_INVALID,
            "%s.reserved of bugpack_options belongs to a field that bugpack " BUGPACK_VERSION
            " does not have",
            unknown_in);
    }
    if (options->target_pid < 0) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process has the id %ld",
                       (long)options->target_pid);
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].is_wrong) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "%s", rules[i].sentence);
        }
    }
    char text[BP_ENTRY_MISTAKE_BYTES];
    const char *without = options->without_entries;
    const char *mistake = without != NULL ? bp_entry_refuse_list(without, text) : NULL;
    return mistake == NULL ? BUGPACK_OK
                           : bp_fail(error, BUGPACK_ERR_INVALID, "without_entries: %s", mistake);
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

/* The host's directories, and defaults for those that it did not name. */
static bugpack_status copy_dirs(const bugpack_options *given, bp_config *config,
                                bugpack_error *error) {
    char *recorder_dir = NULL, *snapshot_dir = NULL;
    bugpack_status status = given->report_dir != NULL
                                ? copy_dir(given->report_dir, &config->report_dir.path, error)
                                : copy_default_dir(&config->report_dir.path, error);
    if (status == BUGPACK_OK && given->recorder.dir != NULL) {
        status = bp_file_absolute_path(given->recorder.dir, &recorder_dir, error);
        config->recorder_dir = recorder_dir;
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    const char *report_dir = config->report_dir.path;
    status = copy_dir(given->pedantic.dir != NULL ? given->pedantic.dir : report_dir,
                      &config->pedantic.dir.path, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (asprintf(&snapshot_dir, "%s/auto-snapshots", report_dir) < 0) {
        return bp_fail_memory(error, "open a session");
    }
    bp_report_dir *dir = &config->auto_snapshot.dir;
    status = copy_dir(given->auto_snapshot.dir != NULL ? given->auto_snapshot.dir : snapshot_dir,
                      &dir->path, error);
    /* In a shared directory another user may have made the default one first. */
    dir->is_private = status == BUGPACK_OK && strcmp(dir->path, snapshot_dir) == 0;
    dir->parent = given->create_report_dir ? report_dir : NULL;
    dir->may_create = true;
    dir->bounds = (bp_report_bounds){(uint32_t)given->auto_snapshot.max_count,
                                     given->auto_snapshot.max_bytes};
    config->report_dir.may_create = config->pedantic.dir.may_create = given->create_report_dir;
    free(snapshot_dir);
    return status;
}

static bugpack_status copy_strings(const bugpack_options *given, bp_config *config,
                                   bugpack_error *error) {
    const struct {
        const char *from;
        const char **to;
    } texts[] = {{given->app_name, &config->app_name},
                 {given->app_version, &config->app_version},
                 {given->app_build_id, &config->app_build_id},
                 {given->calibrator_path, &config->calibrator_path},
                 {given->without_entries, &config->without_entries}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i].to = texts[i].from == NULL ? NULL : strdup(texts[i].from);
        if (texts[i].from != NULL && *texts[i].to == NULL) {
            return bp_fail_memory(error, "open a session");
        }
    }
    return copy_dirs(given, config, error);
}

void bp_config_release(bp_config *config) {
    const char **owned[] = {
        &config->app_name,        &config->app_version,       &config->app_build_id,
        &config->calibrator_path, &config->without_entries,   &config->recorder_dir,
        &config->report_dir.path, &config->pedantic.dir.path, &config->auto_snapshot.dir.path};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        free((char *)(uintptr_t)*owned[i]);
        *owned[i] = NULL;
    }
}

/* Of the providers only that of session.json is stored for a crash by default. */
static void translate_crash(uint64_t interval_ms, bp_config *config) {
    static const uint64_t default_ms = 5000;
    bool is_off = interval_ms == CRASH_REFRESH_OFF;
    config->crash.interval_ns = (interval_ms == 0 ? default_ms : interval_ms) * BP_NS_PER_MS;
    config->crash.scope =
        (bp_stored_scope){.has_session = !is_off, .has_hosts = !is_off && interval_ms != 0};
    if (is_off) {
        config->crash.interval_ns = UINT64_MAX;
    }
}

/* All but the strings; the options are checked. */
static bp_config translate(const bugpack_options *given) {
    bp_config config = {
        .target_pid = given->target_pid,
        .with_descendants = given->target_with_descendants,
        .without_process = given->without_process,
        .is_in_memory = given->recorder.is_in_memory,
        .log_ring_bytes = (size_t)given->recorder.log_ring_bytes,
        .log_level = given->recorder.log_level == BUGPACK_LEVEL_DEFAULT ? BUGPACK_LEVEL_DEBUG
                                                                        : given->recorder.log_level,
        .traffic_budget_bytes = given->recorder.traffic_budget_bytes,
        .history_interval_ms = (uint32_t)given->recorder.history_interval_ms,
        .profile_hz = (uint32_t)given->recorder.profile_hz,
        .sample_window_ms = (uint32_t)given->sample_window_ms,
        .provider_timeout_ms = (uint32_t)given->limits.provider_timeout_ms,
        .artefact_limit_bytes = (size_t)given->limits.artefact_bytes,
        .stacks = given->stacks,
        .with_hostname = given->with_hostname,
        .all_reports = {(uint32_t)given->limits.report_dir_max_count,
                        given->limits.report_dir_max_bytes},
        .min_free_bytes = given->limits.min_free_bytes,
        .max_zip_bytes = given->limits.max_zip_bytes,
        .when_busy = given->when_busy,
        .answers_trigger = given->answers_trigger,
        .disconnect = {(uint32_t)given->limits.disconnect_cooldown_ms,
                       (uint32_t)given->limits.disconnect_cap},
        .hang = {(uint32_t)given->limits.hang_cooldown_ms, (uint32_t)given->limits.hang_cap},
        .condition = {(uint32_t)given->limits.condition_cooldown_ms,
                      (uint32_t)given->limits.condition_cap},
        .max_per_signature = (uint32_t)given->limits.per_signature,
        .pedantic = {.is_enabled = given->pedantic.is_enabled,
                     .cap = (uint32_t)given->pedantic.cap,
                     .channel_cap = (uint32_t)given->pedantic.channel_cap},
        .auto_snapshot = {.interval_ns = given->auto_snapshot.interval_ms * BP_NS_PER_MS},
        .without_redaction = given->redaction.mode == BUGPACK_REDACT_NEVER,
        .redacts_at_call = given->redaction.mode == BUGPACK_REDACT_AT_CALL,
        .redaction_rules = given->redaction.rules,
        .on_event = given->on_event,
        .on_event_context = given->on_event_context,
        .on_diagnostic = {given->on_diagnostic, given->on_diagnostic_context},
        .before_publish = {given->before_publish, given->before_publish_context}};
    translate_crash(given->recorder.crash_refresh_interval_ms, &config);
    return config;
}

bugpack_status bp_config_read(const bugpack_options *given, bp_config *ret_config,
                              bugpack_error *error) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_status status = bp_struct_read(&bp_of_bugpack_options, &options, given, error);
    if (status == BUGPACK_OK) {
        status = bp_struct_fill(&options, fields, sizeof fields / sizeof fields[0], error);
    }
    if (status == BUGPACK_OK) {
        status = check_fields(&options, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_config config = translate(&options);
    status = copy_strings(&options, &config, error);
    if (status != BUGPACK_OK) {
        bp_config_release(&config);
        return status;
    }
    *ret_config = config;
    return BUGPACK_OK;
}
