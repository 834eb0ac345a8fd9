#include "report/destination.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/staged_file.h"
#include "report/name.h"

void bp_destination_release(bp_destination *destination) {
    bp_fd_close_ours(destination->dir_fd, destination->mark);
    free(destination->dir_path);
    free(destination->stem);
}

/* Splits "/a/b/report.zip" into "/a/b", "report" and ".zip". */
static void split_output_path(const char *path, bp_destination *destination) {
    const char *name = strrchr(path, '/') + 1; /* the path is absolute */
    const char *dot = strrchr(name, '.');
    size_t dir_bytes = (size_t)(name - 1 - path);
    destination->extension = dot == NULL || dot == name ? name + strlen(name) : dot;
    destination->stem = strndup(name, (size_t)(destination->extension - name));
    destination->dir_path = strndup(path, dir_bytes == 0 ? 1 : dir_bytes);
    if (destination->dir_path != NULL) {
        bp_file_trim_directory(destination->dir_path);
    }
}

bugpack_status bp_destination_open(const bp_destination_request *request,
                                   bp_destination *destination, bugpack_error *error) {
    const bp_report_dir *dir = request->dir;
    const bool is_named = request->output_path != NULL;
    char standard_stem[BP_NAME_STEM_BYTES];
    destination->request = *request;
    if (is_named) {
        split_output_path(request->output_path, destination);
    } else {
        bp_name_report_stem(request->app_name, request->kind, request->detail, request->wall_ns,
                            standard_stem);
        destination->dir_path = strdup(dir->path);
        destination->extension = ".zip";
    }
    const char *stem = is_named ? destination->stem : standard_stem;
    if (destination->dir_path == NULL || stem == NULL) {
        return bp_fail_memory(error, "name the report");
    }
    if (stem[0] == '\0' || strcmp(stem, ".") == 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot write \"%s\": it names no file",
                       request->output_path);
    }
    /* The result has to hold the whole path, also when the name gets a number. */
    if (strlen(destination->dir_path) + strlen("/") + strlen(stem) + strlen("-9999") +
            strlen(destination->extension) >=
        BUGPACK_REPORT_PATH_BYTES) {
        return bp_fail_errno(error, ENAMETOOLONG, "cannot write to \"%s\"", destination->dir_path);
    }
    if (!is_named && dir->parent != NULL) { /* why it cannot be made is said by what follows */
        int parent_fd = -1;
        (void)bp_file_open_directory(dir->parent, true, &parent_fd, NULL);
        bp_file_close(parent_fd);
    }
    bugpack_status status = bp_file_open_directory(
        destination->dir_path, !is_named && dir->may_create, &destination->dir_fd, error);
    destination->mark = bp_fd_mark_of(destination->dir_fd);
    if (status == BUGPACK_OK && !is_named && dir->is_private) {
        status = bp_file_check_private(destination->dir_fd, destination->dir_path, error);
    }
    return status;
}

bugpack_status bp_destination_check_room(const bp_destination *destination, uint64_t min_free_bytes,
                                         uint64_t needed_bytes, bugpack_error *error) {
    struct statvfs info;
    /* A file system without blocks (network, FUSE) reports no free space. */
    if (min_free_bytes == 0 || fstatvfs(destination->dir_fd, &info) != 0 || info.f_blocks == 0) {
        return BUGPACK_OK;
    }
    uint64_t blocks = info.f_bavail; /* for this user, without what is root's alone */
    uint64_t block_bytes = info.f_frsize != 0 ? info.f_frsize : info.f_bsize;
    bool is_over = block_bytes != 0 && blocks > UINT64_MAX / block_bytes;
    uint64_t there_bytes = is_over ? UINT64_MAX : blocks * block_bytes;
    if (there_bytes >= min_free_bytes && there_bytes - min_free_bytes >= needed_bytes) {
        return BUGPACK_OK;
    }
    return bp_fail_errno(error, ENOSPC,
                         "no report is begun in \"%s\": of %" PRIu64
                         " bytes free there, min_free_bytes keeps %" PRIu64
                         ", and the report may take %" PRIu64,
                         destination->dir_path, there_bytes, min_free_bytes, needed_bytes);
}

bugpack_status bp_destination_hold(bp_destination *destination, bugpack_error *error) {
    int fd = -1;
    if (bp_fd_is_ours(destination->dir_fd, destination->mark)) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_file_open_directory(destination->dir_path, false, &fd, error);
    if (status == BUGPACK_OK && !bp_fd_is_ours(fd, destination->mark)) {
        (void)close(fd);
        status = bp_fail(error, BUGPACK_ERR_IO, "cannot write to \"%s\": it was replaced",
                         destination->dir_path);
    }
    if (status == BUGPACK_OK) {
        destination->dir_fd = fd;
    }
    return status;
}

/* The standard name without secrets, with the tags of the entries. */
static bugpack_status redact_stem(const bp_destination_request *request, bp_bundle *bundle,
                                  char ret_stem[BP_NAME_STEM_BYTES], bugpack_error *error) {
    bp_buffer app, detail;
    bp_buffer_init(&app, 64 * 1024);
    bp_buffer_init(&detail, 64 * 1024);
    bugpack_status status = bp_bundle_redact(bundle, request->app_name, &app);
    if (status == BUGPACK_OK && request->detail != NULL) {
        status = bp_bundle_redact(bundle, request->detail, &detail);
    }
    if (status == BUGPACK_OK) {
        bp_name_report_stem(bp_buffer_text(&app), request->kind,
                            request->detail == NULL ? NULL : bp_buffer_text(&detail),
                            request->wall_ns, ret_stem);
    }
    bp_buffer_release(&app);
    bp_buffer_release(&detail);
    return status == BUGPACK_OK ? BUGPACK_OK : bp_fail_memory(error, "name the report");
}

bugpack_status bp_destination_publish(const bp_destination *destination, bp_bundle *bundle,
                                      const bp_trigger_list *triggers,
                                      bugpack_report_result *result, bugpack_error *error) {
    char name[256], standard_stem[BP_NAME_STEM_BYTES];
    const char *stem = destination->stem != NULL ? destination->stem : standard_stem;
    bugpack_status status = BUGPACK_OK;
    (void)bp_staged_file_sweep(destination->dir_fd);
    if (destination->stem == NULL) {
        status = redact_stem(&destination->request, bundle, standard_stem, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_bundle_publish(bundle, triggers, stem, destination->extension, name,
                                   sizeof name, &result->zip_bytes, error);
    }
    if (status == BUGPACK_OK) {
        bool is_root = strcmp(destination->dir_path, "/") == 0;
        (void)snprintf(result->path, sizeof result->path, "%s/%s",
                       is_root ? "" : destination->dir_path, name);
        result->missing_count = bp_bundle_missing(bundle, result->missing, sizeof result->missing);
        bp_bundle_unsearched(bundle, result->not_searched, sizeof result->not_searched);
    }
    return status;
}
