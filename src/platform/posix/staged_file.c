#include "platform/staged_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "base/status.h"
#include "platform/staged_method.h"
#include "platform/staged_system.h"

struct bp_staged_file {
    int fd;
    int dir_fd;     /* borrowed */
    char *dir_name; /* for sentences */
    bool is_published;
    char temp_name[BP_STAGED_NAME_BYTES]; /* "" when the file has no name */
};

static const unsigned max_suffix = 9999;

/*
 * Makes a file under a name that nobody can guess, and locks it, so that another process's sweep
 * sees that its writer lives. A file system without locks gets no sweep either, which asks for one.
 */
static int open_named(int dir_fd, char temp_name[BP_STAGED_NAME_BYTES]) {
    char id[BP_ID_BYTES];
    bp_id_new(id);
    char name[BP_STAGED_NAME_BYTES];
    (void)snprintf(name, sizeof name, BP_STAGED_PREFIX "%s" BP_STAGED_SUFFIX, id);
    int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)flock(fd, LOCK_EX | LOCK_NB);
        memcpy(temp_name, name, sizeof name);
    }
    return fd;
}

/*
 * Exactly 0600, whatever the umask or a default ACL made of it. A file system that cannot say so
 * (vfat) is fine as long as it keeps others out.
 */
static bugpack_status make_private(const bp_staged_file *file, bugpack_error *error) {
    struct stat info;
    if (fchmod(file->fd, 0600) == 0) {
        return BUGPACK_OK;
    }
    int mode_errno = errno;
    if (fstat(file->fd, &info) == 0 && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0) {
        return BUGPACK_OK;
    }
    return bp_fail_errno(error, mode_errno, "cannot keep a file in \"%s\" private", file->dir_name);
}

/*
 * A host that has closed its standard streams would print into the file: it gets a descriptor
 * above theirs. -1 with errno when there is none.
 */
static int above_standard_streams(int fd) {
    enum { standard_stream_count = 3 };
    if (fd < 0 || fd >= standard_stream_count) {
        return fd;
    }
    int above = fcntl(fd, F_DUPFD_CLOEXEC, standard_stream_count);
    int dup_errno = errno;
    (void)close(fd);
    errno = dup_errno;
    return above;
}

static bugpack_status new_file(int dir_fd, const char *dir_name, bool may_be_unnamed,
                               bp_staged_file **ret_file, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    bp_staged_file *file = calloc(1, sizeof *file);
    char *name = strdup(dir_name);
    if (file == NULL || name == NULL) {
        free(file);
        free(name);
        return bp_fail_memory(error, "start a file");
    }
    *file = (bp_staged_file){.fd = -1, .dir_fd = dir_fd, .dir_name = name};
    if (may_be_unnamed) {
        file->fd = above_standard_streams(bp_staged_open_unnamed(dir_fd));
    }
    /* Why there is no unnamed file does not matter: what stops the named one as well is told. */
    if (file->fd < 0) {
        file->fd = above_standard_streams(open_named(dir_fd, file->temp_name));
    }
    if (file->fd < 0) {
        status = bp_fail_errno(error, errno, "cannot make a file in \"%s\"", dir_name);
        goto out;
    }
    status = make_private(file, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    *ret_file = file;
    file = NULL;
out:
    bp_staged_file_free(file);
    return status;
}

bugpack_status bp_staged_file_new(int dir_fd, const char *dir_name, bp_staged_file **ret_file,
                                  bugpack_error *error) {
    return new_file(dir_fd, dir_name, true, ret_file, error);
}

bugpack_status bp_staged_file_new_named(int dir_fd, const char *dir_name, bp_staged_file **ret_file,
                                        bugpack_error *error) {
    return new_file(dir_fd, dir_name, false, ret_file, error);
}

int bp_staged_file_fd(const bp_staged_file *file) {
    return file->fd;
}

bool bp_staged_file_is_named(const bp_staged_file *file) {
    return file->temp_name[0] != '\0';
}

bugpack_status bp_staged_file_sync(bp_staged_file *file, bugpack_error *error) {
    if (bp_staged_sync(file->fd) != 0) {
        return bp_fail_errno(error, errno, "cannot bring a file in \"%s\" to the disk",
                             file->dir_name);
    }
    return BUGPACK_OK;
}

/* What link(2) says where the file system has no hard links, or no more of them. */
static bool is_link_refused(int link_errno) {
    return link_errno == EPERM || link_errno == EOPNOTSUPP || link_errno == ENOTSUP ||
           link_errno == EMLINK || link_errno == ENOSYS;
}

/* What a rename that must not replace says where the system or the file system has no such thing.
 */
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
    if (!bp_staged_file_is_named(file)) {
        return bp_staged_link_unnamed(file->fd, file->dir_fd, name);
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

bugpack_status bp_staged_file_publish(bp_staged_file *file, const char *stem, const char *extension,
                                      char *ret_name, size_t name_bytes, bugpack_error *error) {
    if (file->is_published) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "\"%s%s\" is published already", stem,
                       extension);
    }
    if (stem[0] == '\0' || strchr(stem, '/') != NULL || strchr(extension, '/') != NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "\"%s%s\" is not a file name", stem, extension);
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
            (void)bp_staged_sync(file->dir_fd);
            memcpy(ret_name, name, strlen(name) + 1);
            return BUGPACK_OK;
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
    if (bp_staged_file_is_named(file) && !file->is_published) {
        (void)unlinkat(file->dir_fd, file->temp_name, 0);
    }
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    free(file->dir_name);
    free(file);
}
