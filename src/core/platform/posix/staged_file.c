#include "platform/staged_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_mark.h"
#include "base/file.h"
#include "base/private_file.h"
#include "base/status.h"

struct bp_staged_file {
    int fd;
    int dir_fd; /* borrowed */
    bp_fd_mark mark, dir_mark;
    char *dir_name; /* for sentences */
    bool is_published;
    char temp_name[BP_PRIVATE_FILE_NAME_BYTES]; /* "" when the file has no name */
    char unnamed_path[BP_STAGED_PATH_BYTES];    /* by which it is linked then */
};

static const unsigned max_suffix = 9999;

/*
 * Without a name where it can get one later; else under a temporary name and locked, so that
 * another process's sweep sees that its writer is alive. A file system without locks gets no sweep
 * either, which needs one.
 */
static int open_file(bp_staged_file *file) {
    int fd = bp_private_file_open_unnamed(file->dir_fd, true);
    if (fd >= 0 && bp_staged_unnamed_path(fd, file->unnamed_path)) {
        return fd;
    }
    bp_file_close(fd);
    /* Why there is no unnamed file does not matter: what stops this one as well is reported. */
    fd = bp_private_file_open_named(file->dir_fd, file->temp_name);
    if (fd >= 0) {
        (void)flock(fd, LOCK_EX | LOCK_NB);
    }
    return fd;
}

bugpack_status bp_staged_file_new(int dir_fd, const char *dir_name, bp_staged_file **ret_file,
                                  bugpack_error *error) {
    bp_staged_file *file = calloc(1, sizeof *file);
    char *name = strdup(dir_name);
    if (file == NULL || name == NULL) {
        free(file);
        free(name);
        return bp_fail_memory(error, "start a file");
    }
    *file = (bp_staged_file){.dir_fd = dir_fd, .dir_name = name};
    file->fd = open_file(file);
    if (file->fd < 0) {
        bugpack_status status =
            bp_fail_errno(error, errno, "cannot make a private file in \"%s\"", dir_name);
        bp_staged_file_free(file);
        return status;
    }
    file->mark = bp_fd_mark_of(file->fd);
    file->dir_mark = bp_fd_mark_of(dir_fd);
    *ret_file = file;
    return BUGPACK_OK;
}

int bp_staged_file_fd(const bp_staged_file *file) {
    return file->fd;
}

/* True if the host has closed a descriptor: its number may stand for another file. */
static bool is_lost(const bp_staged_file *file) {
    return !bp_fd_is_ours(file->fd, file->mark) || !bp_fd_is_ours(file->dir_fd, file->dir_mark);
}

static bugpack_status fail_lost(const bp_staged_file *file, bugpack_error *error) {
    return bp_fail_errno(error, EBADF, "cannot make a file in \"%s\"", file->dir_name);
}

bugpack_status bp_staged_file_ask(const bp_staged_file *file, const bp_publish_hook *hook,
                                  uint64_t byte_count, bugpack_error *error) {
    bugpack_error refusal = BUGPACK_ERROR_INIT;
    if (hook->call == NULL) {
        return BUGPACK_OK;
    }
    if (is_lost(file)) {
        return fail_lost(file, error);
    }
    const bugpack_unpublished report = {
        .struct_size = sizeof report, .zip_bytes = byte_count, .zip_fd = file->fd};
    bugpack_status status = hook->call(&report, hook->context, &refusal);
    if (status == BUGPACK_OK) {
        return BUGPACK_OK;
    }
    return bp_fail(error, status, "%s",
                   refusal.message[0] != '\0' ? refusal.message
                                              : "the report was refused before it was published");
}

bugpack_status bp_staged_file_sync(bp_staged_file *file, bugpack_error *error) {
    if (is_lost(file)) {
        return fail_lost(file, error);
    }
    if (bp_staged_sync(file->fd) != 0) {
        return bp_fail_errno(error, errno, "cannot bring a file in \"%s\" to the disk",
                             file->dir_name);
    }
    return BUGPACK_OK;
}

/* The errors of link(2) where the file system has no hard links, or no more of them. */
static bool is_link_refused(int link_errno) {
    return link_errno == EPERM || link_errno == EOPNOTSUPP || link_errno == ENOTSUP ||
           link_errno == EMLINK || link_errno == ENOSYS;
}

/* Errors of a rename that must not replace, where the system or the file system has none. */
static bool is_rename_unknown(int rename_errno) {
    return rename_errno == EINVAL || rename_errno == ENOSYS || rename_errno == EOPNOTSUPP ||
           rename_errno == ENOTSUP;
}

/*
 * The file gets a name that is free, or errno says EEXIST; ENOTSUP where nothing can give one. A
 * link comes first, since it can never replace anything on any system; whoever dies between link
 * and unlink leaves a whole file and a second name of it for the sweep.
 */
static int attach(bp_staged_file *file, const char *name) {
    if (file->temp_name[0] == '\0') {
        return linkat(AT_FDCWD, file->unnamed_path, file->dir_fd, name, AT_SYMLINK_FOLLOW);
    }
    if (linkat(file->dir_fd, file->temp_name, file->dir_fd, name, 0) == 0) {
        (void)unlinkat(file->dir_fd, file->temp_name, 0);
        return 0;
    }
    if (!is_link_refused(errno)) {
        return -1;
    }
    int result = bp_staged_rename_new(file->dir_fd, file->temp_name, name);
    if (result != 0 && is_rename_unknown(errno)) {
        errno = ENOTSUP;
    }
    return result;
}

/* "stem.zip", then "stem-2.zip", …; false when it does not fit. */
static bool compose_name(char *name, size_t name_bytes, const char *stem, const char *extension,
                         unsigned number) {
    int length = number == 1 ? snprintf(name, name_bytes, "%s%s", stem, extension)
                             : snprintf(name, name_bytes, "%s-%u%s", stem, number, extension);
    return length >= 0 && (size_t)length < name_bytes;
}

bool bp_staged_sync_directory(int dir_fd) {
    return bp_staged_sync(dir_fd) == 0 || (errno != EIO && errno != ENOSPC && errno != EDQUOT);
}

/* The file stays where this fails: it is whole. */
static bugpack_status sync_directory(const bp_staged_file *file, const char *name,
                                     bugpack_error *error) {
    if (bp_staged_sync_directory(file->dir_fd)) {
        return BUGPACK_OK;
    }
    return bp_fail_errno(error, errno,
                         "\"%s/%s\" is written, but its name may be lost when the system stops",
                         file->dir_name, name);
}

bugpack_status bp_staged_file_publish(bp_staged_file *file, const char *stem, const char *extension,
                                      char *ret_name, size_t name_bytes, bugpack_error *error) {
    if (file->is_published) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "\"%s%s\" is published already", stem,
                       extension);
    }
    if (stem[0] == '\0' || strchr(stem, '/') != NULL || strchr(extension, '/') != NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "\"%s%s\" is not a file name", stem, extension);
    }
    if (is_lost(file)) {
        return fail_lost(file, error);
    }
    char name[1024]; /* over every system's NAME_MAX, so that the system judges the length */
    for (unsigned number = 1; number <= max_suffix; number++) {
        if (!compose_name(name, sizeof name, stem, extension, number) ||
            strlen(name) >= name_bytes) {
            return bp_fail_errno(error, ENAMETOOLONG, "cannot make a file in \"%s\"",
                                 file->dir_name);
        }
        if (attach(file, name) == 0) {
            file->is_published = true;
            bugpack_status status = sync_directory(file, name, error);
            if (status == BUGPACK_OK) {
                memcpy(ret_name, name, strlen(name) + 1);
            }
            return status;
        }
        if (errno == ENOTSUP) {
            return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                           "cannot make \"%s/%s\": the file system has neither hard links nor a "
                           "rename that never replaces",
                           file->dir_name, name);
        }
        if (errno != EEXIST) {
            return bp_fail_errno(error, errno, "cannot make \"%s/%s\"", file->dir_name, name);
        }
    }
    return bp_fail_errno(error, EEXIST, "cannot make \"%s/%s\", nor %u more of that name",
                         file->dir_name, name, max_suffix);
}

void bp_staged_file_free(bp_staged_file *file) {
    if (file == NULL) {
        return;
    }
    if (file->temp_name[0] != '\0' && !file->is_published &&
        bp_fd_is_ours(file->dir_fd, file->dir_mark)) {
        (void)unlinkat(file->dir_fd, file->temp_name, 0);
    }
    bp_fd_close_ours(file->fd, file->mark);
    free(file->dir_name);
    free(file);
}

/*
 * A writer makes its file and locks it a moment later, so a young file is left alone even when
 * nobody holds a lock on it.
 */
static const uint64_t stale_secs = 60;

static bool is_staged_name(const char *name) {
    static const char prefix[] = BP_PRIVATE_FILE_PREFIX;
    static const char suffix[] = BP_PRIVATE_FILE_SUFFIX;
    const size_t prefix_length = sizeof prefix - 1;
    const size_t digit_count = BP_ID_BYTES - 1;
    return strlen(name) == BP_PRIVATE_FILE_NAME_BYTES - 1 &&
           strncmp(name, prefix, prefix_length) == 0 &&
           strspn(name + prefix_length, "0123456789abcdef") == digit_count &&
           strcmp(name + prefix_length + digit_count, suffix) == 0;
}

static bool is_stale(const struct stat *info) {
    uint64_t now_secs = bp_clock_wall_ns() / BP_NS_PER_SEC;
    return S_ISREG(info->st_mode) && info->st_uid == geteuid() && info->st_mtime >= 0 &&
           (uint64_t)info->st_mtime <= now_secs &&
           now_secs - (uint64_t)info->st_mtime >= stale_secs;
}

/* True if `name` still is the very file that was looked at before. */
static bool is_same_file(int dir_fd, const char *name, const struct stat *before) {
    struct stat now;
    return fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == before->st_dev &&
           now.st_ino == before->st_ino;
}

/*
 * The checks leave no gap: what the name is (so that no device or FIFO is opened), what was opened,
 * that nobody writes it, and that the name still means it. A name in our pattern has 128 random
 * bits, so nobody makes it anew before the removal.
 */
static bool sweep_one(int dir_fd, const char *name) {
    struct stat info;
    if (!is_staged_name(name) || fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_stale(&info)) {
        return false;
    }
    int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool is_removed = fstat(fd, &info) == 0 && is_stale(&info) &&
                      flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(dir_fd, name, &info) &&
                      unlinkat(dir_fd, name, 0) == 0;
    (void)close(fd);
    return is_removed;
}

size_t bp_staged_file_sweep(int dir_fd) {
    DIR *stream = bp_file_list_directory(dir_fd);
    if (stream == NULL) {
        return 0;
    }
    size_t removed_count = 0;
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        removed_count += sweep_one(dir_fd, entry->d_name);
    }
    (void)closedir(stream);
    return removed_count;
}
