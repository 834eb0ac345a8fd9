#include "report/retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/staged_file.h"
#include "recorder/recorder.h"
#include "report/name.h"

struct report {
    char *name;
    uint64_t bytes, wall_secs;
    struct timespec written_at;
    ino_t inode;
    unsigned number;
    bool is_first, is_future;
};

struct listing {
    struct report *reports;
    size_t count, capacity;
    uint64_t total_count, total_bytes; /* also of those that found no place here */
};

static bool is_ours(int dir_fd, const char *name, struct stat *ret_info) {
    return fstatat(dir_fd, name, ret_info, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(ret_info->st_mode) && ret_info->st_uid == geteuid();
}

/* Counts a report, and lists it unless it is the one that stays. False without memory. */
static bool take_in(struct listing *listing, const bp_retention_policy *policy, const char *name,
                    const bp_report_name *parsed, const struct stat *info) {
    uint64_t bytes = info->st_size > 0 ? (uint64_t)info->st_size : 0;
    listing->total_count++;
    listing->total_bytes += bytes;
    if ((policy->keep != NULL && strcmp(name, policy->keep) == 0) ||
        listing->count == BP_RETENTION_LOOK_MAX) {
        return true;
    }
    char *own_name = strdup(name);
    if (own_name == NULL ||
        !bp_array_reserve(&listing->reports, listing->count, &listing->capacity)) {
        free(own_name);
        return false;
    }
    listing->reports[listing->count++] =
        (struct report){.name = own_name,
                        .bytes = bytes,
                        .wall_secs = parsed->wall_secs,
                        .written_at = bp_file_written_at(info),
                        .inode = info->st_ino,
                        .number = parsed->number,
                        .is_first = (policy->first_kinds & BP_RETENTION_KIND(parsed->kind)) != 0,
                        .is_future = parsed->wall_secs > policy->now_wall_ns / BP_NS_PER_SEC};
    return true;
}

static bugpack_status list(int dir_fd, const char *dir_name, const bp_retention_policy *policy,
                           struct listing *listing, bugpack_error *error) {
    char app_word[BP_NAME_APP_BYTES] = "";
    if (policy->app != NULL) {
        bp_name_app_word(policy->app, app_word);
    }
    DIR *stream = bp_file_list_directory(dir_fd);
    if (stream == NULL) {
        return bp_fail_errno(error, errno, "cannot list the directory \"%s\"", dir_name);
    }
    bool is_listed = true;
    for (struct dirent *entry = readdir(stream); is_listed && entry != NULL;
         entry = readdir(stream)) {
        bp_report_name parsed;
        struct stat info;
        bool is_wanted =
            bp_name_parse_report(entry->d_name, &parsed) &&
            (policy->kinds & BP_RETENTION_KIND(parsed.kind)) != 0 &&
            (policy->app == NULL || (strlen(app_word) == parsed.app_bytes &&
                                     memcmp(entry->d_name, app_word, parsed.app_bytes) == 0));
        if (is_wanted && is_ours(dir_fd, entry->d_name, &info)) {
            is_listed = take_in(listing, policy, entry->d_name, &parsed, &info);
        }
    }
    (void)closedir(stream);
    return is_listed ? BUGPACK_OK : bp_fail_memory(error, "list reports");
}

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

/*
 * The next to be removed comes first. Within a second the time of the file decides before the
 * number, because a name that was removed is used again.
 */
static int compare_reports(const void *one, const void *other) {
    const struct report *a = one;
    const struct report *b = other;
    const int differences[] = {compare(b->is_first, a->is_first),
                               compare(b->is_future, a->is_future),
                               compare((int64_t)a->wall_secs, (int64_t)b->wall_secs),
                               compare(a->written_at.tv_sec, b->written_at.tv_sec),
                               compare(a->written_at.tv_nsec, b->written_at.tv_nsec),
                               compare(a->number, b->number)};
    for (size_t i = 0; i < sizeof differences / sizeof differences[0]; i++) {
        if (differences[i] != 0) {
            return differences[i];
        }
    }
    return strcmp(a->name, b->name);
}

/* Removes one, if its name still means the file that was looked at. One that is gone is removed. */
static bool remove_one(int dir_fd, const struct report *report, int *ret_errno) {
    struct stat now;
    if (!is_ours(dir_fd, report->name, &now) || now.st_ino != report->inode ||
        unlinkat(dir_fd, report->name, 0) == 0 || errno == ENOENT) {
        return true;
    }
    *ret_errno = errno;
    return false;
}

bugpack_status bp_retention_prune(int dir_fd, const char *dir_name,
                                  const bp_retention_policy *policy,
                                  bp_retention_removed *on_removed, void *context,
                                  bp_retention_outcome *ret_outcome, bugpack_error *error) {
    struct listing listing = {.reports = NULL};
    bp_retention_outcome outcome = {0};
    uint64_t now_secs = policy->now_wall_ns / BP_NS_PER_SEC;
    bugpack_status status = list(dir_fd, dir_name, policy, &listing, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    if (listing.count > 1) {
        qsort(listing.reports, listing.count, sizeof *listing.reports, compare_reports);
    }
    for (size_t i = 0; i < listing.count; i++) {
        const struct report *report = &listing.reports[i];
        int remove_errno = 0;
        bool is_within = (policy->max_count == 0 || listing.total_count <= policy->max_count) &&
                         (policy->max_bytes == 0 || listing.total_bytes <= policy->max_bytes);
        bool is_too_old = policy->max_age_secs > 0 && report->wall_secs < now_secs &&
                          now_secs - report->wall_secs > policy->max_age_secs;
        if (is_within && !is_too_old) {
            continue;
        }
        if (!policy->is_dry_run && !remove_one(dir_fd, report, &remove_errno)) {
            status = bp_fail_errno(error, remove_errno, "cannot remove \"%s/%s\"", dir_name,
                                   report->name);
            continue;
        }
        listing.total_count--;
        listing.total_bytes -= report->bytes;
        outcome.removed_count++;
        outcome.removed_bytes += report->bytes;
        if (on_removed != NULL) {
            on_removed(report->name, report->bytes, context);
        }
    }
    outcome.count = listing.total_count;
    outcome.bytes = listing.total_bytes;
    if (ret_outcome != NULL) {
        *ret_outcome = outcome;
    }
out:
    for (size_t i = 0; i < listing.count; i++) {
        free(listing.reports[i].name);
    }
    free(listing.reports);
    return status;
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

static void prune(struct pruning *pruning, bp_retention_policy *policy, unsigned kinds,
                  bp_report_bounds bounds) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    policy->kinds = kinds;
    policy->max_count = bounds.max_count;
    policy->max_bytes = bounds.max_bytes;
    if ((policy->max_count != 0 || policy->max_bytes != 0) &&
        bp_retention_prune(pruning->dir_fd, pruning->dir_path, policy, note_removed, pruning, NULL,
                           &error) != BUGPACK_OK) {
        bp_note_log(pruning->recorder, BUGPACK_LEVEL_WARN, "the limits are not kept: %s",
                    error.message);
    }
}

void bp_retention_apply(const bp_report_context *context, const char *report_path,
                        bp_report_kind kind, bp_report_bounds bounds) {
    const bp_config *config = context->config;
    const char *slash = strrchr(report_path, '/');
    const char *name = slash == NULL ? report_path : slash + 1;
    char *dir_path = strndup(report_path, (size_t)(name - report_path));
    struct pruning pruning = {.recorder = context->recorder, .dir_path = dir_path};
    if (dir_path == NULL) {
        return;
    }
    bp_file_trim_directory(dir_path);
    if (bp_file_open_directory(dir_path, false, &pruning.dir_fd, NULL) == BUGPACK_OK) {
        bp_retention_policy policy = {.app = config->app_name,
                                      .first_kinds = BP_RETENTION_AUTOMATIC_KINDS,
                                      .keep = name,
                                      .now_wall_ns = bp_clock_wall_ns()};
        prune(&pruning, &policy, BP_RETENTION_KIND(kind), bounds);
        prune(&pruning, &policy, BP_RETENTION_ALL_KINDS, config->all_reports);
        (void)close(pruning.dir_fd);
    }
    free(dir_path);
}
