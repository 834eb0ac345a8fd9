#include "recorder/ring_base.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/ring_dirs.h"

/* DENIED, with an errno for the caller that is no part of the sentence. */
static bugpack_status deny(bugpack_error *error, const char *path, int reason_errno,
                           const char *reason) {
    bugpack_status status =
        bp_fail(error, BUGPACK_ERR_DENIED, "cannot use the directory \"%s\": %s", path, reason);
    if (error != NULL) {
        error->system_errno = reason_errno;
    }
    return status;
}

/* Another user who can replace the directory could plant sessions, or have them written over. */
static bugpack_status check_above(const bp_ring_base *base, bugpack_error *error) {
    const char *path = base->path;
    char above[PATH_MAX];
    struct stat info;
    const char *slash = strrchr(path, '/');
    (void)snprintf(above, sizeof above, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    if (stat(above, &info) != 0) {
        return bp_fail_errno(error, errno, "cannot use the directory \"%s\"", path);
    }
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        return deny(error, path, EPERM, "what is above it is another user's");
    }
    if ((info.st_mode & 022) != 0 && (info.st_mode & S_ISVTX) == 0) {
        return deny(error, path, EPERM, "others can write to what is above it");
    }
    /* On a disk a store to a mapped file may wait. */
    if (base->is_common && !bp_ring_dirs_is_in_memory(above)) {
        return deny(error, path, EPERM, "it is not in memory");
    }
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        return deny(error, path, EPERM, "it is a symbolic link");
    }
    return BUGPACK_OK;
}

/* Another user could plant a session there. */
static bugpack_status check(const char *path, int fd, bugpack_error *error) {
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_uid != geteuid()
               ? deny(error, path, EPERM, "it is not this user's alone")
               : bp_file_check_private(fd, path, error);
}

bugpack_status bp_ring_base_open(const bp_ring_base *base, bool create, int *ret_fd,
                                 bugpack_error *error) {
    int fd = -1;
    bugpack_status status = base->is_chosen ? check_above(base, error) : BUGPACK_OK;
    if (status == BUGPACK_OK) {
        status = bp_file_open_directory(base->path, create, &fd, error);
    }
    if (status == BUGPACK_OK) {
        status = check(base->path, fd, error);
    }
    if (status != BUGPACK_OK) {
        bp_file_close(fd);
        return status;
    }
    *ret_fd = fd;
    return BUGPACK_OK;
}
