#include "session/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "report/retention.h"
#include "session/session.h"

static uint64_t free_bytes(const struct statvfs *info) {
    uint64_t blocks = info->f_bavail; /* for this user, without what is root's alone */
    uint64_t block_bytes = info->f_frsize != 0 ? info->f_frsize : info->f_bsize;
    return block_bytes != 0 && blocks > UINT64_MAX / block_bytes ? UINT64_MAX
                                                                 : blocks * block_bytes;
}

bugpack_status bp_limits_check_room(const bugpack_options *options, int dir_fd,
                                    const char *dir_path, uint64_t needed_bytes,
                                    bugpack_error *error) {
    struct statvfs info;
    uint64_t floor_bytes = options->min_free_bytes;
    /* A system without blocks (a network's, a FUSE) tells nothing of its room. */
    if (floor_bytes == 0 || fstatvfs(dir_fd, &info) != 0 || info.f_blocks == 0) {
        return BUGPACK_OK;
    }
    uint64_t there_bytes = free_bytes(&info);
    if (there_bytes >= floor_bytes && there_bytes - floor_bytes >= needed_bytes) {
        return BUGPACK_OK;
    }
    return bp_fail_errno(error, ENOSPC,
                         "no report is begun in \"%s\": of %" PRIu64
                         " bytes free there, min_free_bytes keeps %" PRIu64
                         ", and the report may take %" PRIu64,
                         dir_path, there_bytes, floor_bytes, needed_bytes);
}

struct telling {
    bugpack *session;
    const char *dir_path;
};

static void tell_removed(const char *name, uint64_t bytes, void *context) {
    const struct telling *telling = context;
    bugpack_log(telling->session, BUGPACK_LEVEL_INFO, "bugpack",
                "removed \"%s/%s\" of %" PRIu64 " bytes to keep the limits", telling->dir_path,
                name, bytes);
}

static void prune(bugpack *session, int dir_fd, const char *dir_path,
                  const bp_retention_policy *policy) {
    struct telling telling = {.session = session, .dir_path = dir_path};
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_retention_prune(dir_fd, dir_path, policy, tell_removed, &telling, NULL, &error) !=
        BUGPACK_OK) {
        bugpack_log(session, BUGPACK_LEVEL_WARN, "bugpack", "the limits are not kept: %s",
                    error.message);
    }
}

/* The bounds over all kinds. `name` is the new report, which stays. */
static void keep_directory(bugpack *session, int dir_fd, const char *dir_path, const char *name) {
    const bugpack_options *options = &session->options;
    if (options->report_dir_max_count == 0 && options->report_dir_max_bytes == 0) {
        return;
    }
    const bp_retention_policy policy = {.app = options->app_name,
                                        .kinds = BP_RETENTION_ALL_KINDS,
                                        .first_kinds = BP_RETENTION_AUTOMATIC_KINDS,
                                        .max_count = options->report_dir_max_count,
                                        .max_bytes = options->report_dir_max_bytes,
                                        .keep = name,
                                        .now_wall_ns = bp_clock_wall_ns()};
    prune(session, dir_fd, dir_path, &policy);
}

/* The rolling directory's own bounds. */
static void keep_auto_snapshots(bugpack *session, int dir_fd, const char *dir_path,
                                const char *name) {
    const bugpack_options *options = &session->options;
    const bp_retention_policy policy = {.app = options->app_name,
                                        .kinds = BP_RETENTION_KIND(BP_REPORT_AUTO_SNAPSHOT),
                                        .max_count = options->auto_snapshot_max_count,
                                        .max_bytes = options->auto_snapshot_max_bytes,
                                        .keep = name,
                                        .now_wall_ns = bp_clock_wall_ns()};
    if (policy.max_count != 0 || policy.max_bytes != 0) {
        prune(session, dir_fd, dir_path, &policy);
    }
}

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

void bp_limits_apply(bugpack *session, const bp_order *order, const bugpack_report_result *result) {
    const bp_destination *destination = &order->destination;
    if (result->status != BUGPACK_OK || order->output_path != NULL || destination->dir_fd < 0) {
        return;
    }
    const char *name = name_of(result->path);
    if (order->kind == BP_REPORT_AUTO_SNAPSHOT) {
        keep_auto_snapshots(session, destination->dir_fd, destination->dir_path, name);
    }
    keep_directory(session, destination->dir_fd, destination->dir_path, name);
}

void bp_limits_apply_beside(bugpack *session, const char *report_path) {
    const char *name = name_of(report_path);
    char *dir_path = strndup(report_path, (size_t)(name - report_path));
    int dir_fd = -1;
    if (dir_path != NULL) {
        bp_file_trim_directory(dir_path);
        if (bp_file_open_directory(dir_path, false, &dir_fd, NULL) == BUGPACK_OK) {
            keep_directory(session, dir_fd, dir_path, name);
            (void)close(dir_fd);
        }
    }
    free(dir_path);
}
