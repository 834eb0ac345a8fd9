#include "report/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "recorder/recorder.h"
#include "report/retention.h"

static uint64_t free_bytes(const struct statvfs *info) {
    uint64_t blocks = info->f_bavail; /* for this user, without what is root's alone */
    uint64_t block_bytes = info->f_frsize != 0 ? info->f_frsize : info->f_bsize;
    return block_bytes != 0 && blocks > UINT64_MAX / block_bytes ? UINT64_MAX
                                                                 : blocks * block_bytes;
}

bugpack_status bp_limits_check_room(uint64_t min_free_bytes, const bp_destination *destination,
                                    uint64_t needed_bytes, bugpack_error *error) {
    struct statvfs info;
    /* A file system without blocks (network, FUSE) reports no free space. */
    if (min_free_bytes == 0 || fstatvfs(destination->dir_fd, &info) != 0 || info.f_blocks == 0) {
        return BUGPACK_OK;
    }
    uint64_t there_bytes = free_bytes(&info);
    if (there_bytes >= min_free_bytes && there_bytes - min_free_bytes >= needed_bytes) {
        return BUGPACK_OK;
    }
    return bp_fail_errno(error, ENOSPC,
                         "no report is begun in \"%s\": of %" PRIu64
                         " bytes free there, min_free_bytes keeps %" PRIu64
                         ", and the report may take %" PRIu64,
                         destination->dir_path, there_bytes, min_free_bytes, needed_bytes);
}

/* A directory that is brought within its bounds. */
struct pruning {
    bp_recorder *recorder;
    int dir_fd;
    const char *dir_path;
};

static void note_removed(const char *name, uint64_t bytes, void *context) {
    const struct pruning *pruning = context;
    bp_note_log(pruning->recorder, BUGPACK_LEVEL_INFO,
                "removed \"%s/%s\" of %" PRIu64 " bytes to keep the limits", pruning->dir_path,
                name, bytes);
}

static void prune(struct pruning *pruning, const bp_retention_policy *policy) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    if ((policy->max_count != 0 || policy->max_bytes != 0) &&
        bp_retention_prune(pruning->dir_fd, pruning->dir_path, policy, note_removed, pruning, NULL,
                           &error) != BUGPACK_OK) {
        bp_note_log(pruning->recorder, BUGPACK_LEVEL_WARN, "the limits are not kept: %s",
                    error.message);
    }
}

static void prune_directory(const bp_report_context *context, struct pruning *pruning,
                            const char *name, const bp_limits_rolling *rolling) {
    const bugpack_options *settings = context->settings;
    bp_retention_policy policy = {
        .app = settings->app_name, .keep = name, .now_wall_ns = bp_clock_wall_ns()};
    if (rolling != NULL) {
        policy.kinds = BP_RETENTION_KIND(rolling->kind);
        policy.max_count = rolling->max_count;
        policy.max_bytes = rolling->max_bytes;
        prune(pruning, &policy);
    }
    policy.kinds = BP_RETENTION_ALL_KINDS;
    policy.first_kinds = BP_RETENTION_AUTOMATIC_KINDS;
    policy.max_count = settings->report_dir_max_count;
    policy.max_bytes = settings->report_dir_max_bytes;
    prune(pruning, &policy);
}

void bp_limits_apply(const bp_report_context *context, const char *report_path,
                     const bp_limits_rolling *rolling) {
    const char *slash = strrchr(report_path, '/');
    const char *name = slash == NULL ? report_path : slash + 1;
    char *dir_path = strndup(report_path, (size_t)(name - report_path));
    if (dir_path != NULL) {
        struct pruning pruning = {.recorder = context->recorder, .dir_path = dir_path};
        bp_file_trim_directory(dir_path);
        if (bp_file_open_directory(dir_path, false, &pruning.dir_fd, NULL) == BUGPACK_OK) {
            prune_directory(context, &pruning, name, rolling);
            (void)close(pruning.dir_fd);
        }
    }
    free(dir_path);
}
