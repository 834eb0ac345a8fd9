#include "recorder/session_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "recorder/session_lock.h"

/*
 * Opens the directory once more; -1 with errno. By its descriptor, which works in a chroot too, or
 * by its path, if the host has closed that. The copy is checked, because nobody else knows it.
 */
static int open_dir(const bp_session_dir *dir) {
    int fd = fcntl(dir->dir_fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && !bp_fd_is_ours(fd, dir->mark)) {
        (void)close(fd);
        fd = -1;
    }
    if (fd < 0) {
        fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd >= 0 && !bp_fd_is_ours(fd, dir->mark)) {
        (void)close(fd);
        fd = -1;
        errno = ENOENT;
    }
    return fd;
}

bugpack_status bp_session_dir_make_file(const bp_session_dir *dir, const char *name, int *ret_fd,
                                        bugpack_error *error) {
    int dir_fd = open_dir(dir);
    int fd = dir_fd < 0
                 ? -1
                 : openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int make_errno = errno;
    bp_file_close(dir_fd);
    if (fd < 0) {
        return bp_fail_errno(error, make_errno, "cannot make \"%s/%s\"", dir->path, name);
    }
    (void)fchmod(fd, 0600);
    *ret_fd = fd;
    return BUGPACK_OK;
}

void bp_session_dir_unlink(const bp_session_dir *dir, const char *name) {
    int dir_fd = open_dir(dir);
    if (dir_fd >= 0) {
        (void)unlinkat(dir_fd, name, 0);
    }
    bp_file_close(dir_fd);
}

bool bp_session_dir_write_file(const bp_session_dir *dir, const char *name, const void *bytes,
                               size_t byte_count) {
    int fd = -1;
    if (bp_session_dir_make_file(dir, name, &fd, NULL) != BUGPACK_OK) {
        return false;
    }
    int write_errno = bp_file_write_all(fd, bytes, byte_count);
    bp_file_close(fd);
    if (write_errno != 0) {
        bp_session_dir_unlink(dir, name);
    }
    errno = write_errno;
    return write_errno == 0;
}

void bp_session_dir_replace_file(const bp_session_dir *dir, const char *name, const void *bytes,
                                 size_t byte_count) {
    char new_name[64];
    (void)snprintf(new_name, sizeof new_name, "%s.new", name);
    bp_session_dir_unlink(dir, new_name); /* of an attempt that failed */
    int dir_fd = bp_session_dir_write_file(dir, new_name, bytes, byte_count) ? open_dir(dir) : -1;
    if (dir_fd >= 0) {
        (void)renameat(dir_fd, new_name, dir_fd, name);
    }
    bp_file_close(dir_fd);
}

bugpack_status bp_session_dir_map_file(const bp_session_dir *dir, const char *name,
                                       size_t byte_count, void **ret_map, bugpack_error *error) {
    int fd = -1;
    bugpack_status status = bp_session_dir_make_file(dir, name, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_ring_map_file(fd, byte_count, ret_map, error);
    bp_file_close(fd);
    if (status != BUGPACK_OK) {
        bp_session_dir_unlink(dir, name);
    }
    return status;
}

/* Makes it with its lock and its identity, and then gives it its name. No recovery, which may be in
 * another pid namespace and not see that the process lives, finds it before it is locked. */
static bugpack_status make_dir(bp_session_dir *dir, const bp_ring_base *base,
                               const bp_session_identity *identity, bugpack_error *error) {
    int base_fd = -1, lock_fd = -1;
    size_t byte_count = 0;
    void *sealed = NULL;
    char name[BP_SESSION_NAME_BYTES];
    const char *path = dir->path;
    bp_session_name(identity, name);
    if (!bp_session_lock_is_supported) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "this system has no lock that ends with a mapping");
    }
    bugpack_status status = bp_ring_base_open(base, true, &base_fd, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    if (mkdirat(base_fd, dir->name, 0700) != 0) {
        status = bp_fail_errno(error, errno, "cannot make the directory \"%s\"", path);
        goto out;
    }
    (void)fchmodat(base_fd, dir->name, 0700, AT_SYMLINK_NOFOLLOW);
    dir->dir_fd = openat(base_fd, dir->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    dir->mark = bp_fd_mark_of(dir->dir_fd);
    if (dir->dir_fd < 0) {
        status = bp_fail_errno(error, errno, "cannot use the directory \"%s\"", path);
        (void)unlinkat(base_fd, dir->name, AT_REMOVEDIR);
        goto out;
    }
    status = bp_session_dir_make_file(dir, BP_SESSION_LOCK_NAME, &lock_fd, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    dir->lock = bp_session_lock_hold(lock_fd);
    if (dir->lock == NULL) {
        status = bp_fail_errno(error, errno, "cannot lock \"%s/%s\"", path, BP_SESSION_LOCK_NAME);
        goto out;
    }
    sealed = bp_session_identity_seal(identity, &byte_count);
    if (sealed == NULL) {
        status = bp_fail_memory(error, "make a session's directory");
    } else if (!bp_session_dir_write_file(dir, BP_SESSION_IDENTITY_NAME, sealed, byte_count)) {
        status =
            bp_fail_errno(error, errno, "cannot write \"%s/%s\"", path, BP_SESSION_IDENTITY_NAME);
    } else if (renameat(base_fd, dir->name, base_fd, name) != 0) { /* its name is random */
        status = bp_fail_errno(error, errno, "cannot rename the directory \"%s\"", path);
    } else {
        memcpy(dir->name, name, sizeof dir->name);
        dir->path[strlen(path) - strlen(BP_SESSION_NEW)] = '\0';
    }
out:
    free(sealed);
    bp_file_close(lock_fd);
    bp_file_close(base_fd);
    return status;
}

bugpack_status bp_session_dir_new(const bp_ring_base *base, const bp_session_identity *identity,
                                  bp_session_dir **ret_dir, bugpack_error *error) {
    bp_session_dir *dir = calloc(1, sizeof *dir);
    if (dir == NULL) {
        return bp_fail_memory(error, "make a session's directory");
    }
    dir->dir_fd = -1;
    bp_session_name(identity, dir->name);
    size_t name_bytes = strlen(dir->name);
    (void)snprintf(dir->name + name_bytes, sizeof dir->name - name_bytes, BP_SESSION_NEW);
    if (asprintf(&dir->path, "%s/%s", base->path, dir->name) < 0) {
        free(dir);
        return bp_fail_memory(error, "make a session's directory");
    }
    bugpack_status status = make_dir(dir, base, identity, error);
    if (status != BUGPACK_OK) {
        bp_session_dir_remove(dir);
        return status;
    }
    *ret_dir = dir;
    return BUGPACK_OK;
}

void bp_session_dir_remove(bp_session_dir *dir) {
    if (dir == NULL) {
        return;
    }
    int dir_fd = dir->mark.inode != 0 ? open_dir(dir) : -1;
    int base_fd = dir_fd < 0 ? -1 : openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base_fd >= 0) {
        (void)bp_session_files_remove(base_fd, dir_fd, dir->name);
    }
    bp_file_close(base_fd);
    bp_file_close(dir_fd);
    bp_session_dir_leave(dir);
}

void bp_session_dir_leave(bp_session_dir *dir) {
    if (dir == NULL) {
        return;
    }
    bp_fd_close_ours(dir->dir_fd, dir->mark);
    bp_session_lock_let_go(dir->lock);
    free(dir->path);
    free(dir);
}
