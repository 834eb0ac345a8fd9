#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "base/utf8.h"

static const size_t read_step_bytes = 64 * 1024;

/*
 * Makes the directory and gives it exactly 0700: mkdir's mode is subject to the umask. By its name,
 * because under a umask that takes the read bit a descriptor cannot be had before; a link that took
 * its place meanwhile is not followed.
 */
static bool make_directory(const char *path, int *ret_errno) {
    if (mkdir(path, 0700) == 0) {
        (void)fchmodat(AT_FDCWD, path, 0700, AT_SYMLINK_NOFOLLOW);
        return true;
    }
    *ret_errno = errno;
    return errno == EEXIST;
}

void bp_file_trim_directory(char *path) {
    size_t length = strlen(path);
    while (length > 1 &&
           (path[length - 1] == '/' || (path[length - 1] == '.' && path[length - 2] == '/'))) {
        length--;
    }
    path[length] = '\0';
}

bugpack_status bp_file_absolute_path(const char *path, char **ret_path, bugpack_error *error) {
    char directory[PATH_MAX] = "";
    char *absolute;
    if (path[0] == '\0') {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a path is empty");
    }
    if (path[0] != '/' && getcwd(directory, sizeof directory) == NULL) {
        return bp_fail_errno(error, errno, "cannot find the working directory for \"%s\"", path);
    }
    const char *slash = path[0] == '/' || strcmp(directory, "/") == 0 ? "" : "/";
    /* No bound: a path that is too long fails by name where it is used. */
    if (asprintf(&absolute, "%s%s%s", directory, slash, path) < 0) {
        return bp_fail_memory(error, "keep a path");
    }
    *ret_path = absolute;
    return BUGPACK_OK;
}

bugpack_status bp_file_open_directory(const char *path, bool create, int *ret_fd,
                                      bugpack_error *error) {
    int make_errno = 0;
    if (create && !make_directory(path, &make_errno)) {
        return bp_fail_errno(error, make_errno, "cannot make the directory \"%s\"", path);
    }
    struct stat info;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int open_errno = errno;
        /* O_NOFOLLOW with O_DIRECTORY gives ENOTDIR for a link (open(2)): say what it is. */
        if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
            return bp_fail(error, BUGPACK_ERR_IO,
                           "cannot use the directory \"%s\": it is a symbolic link", path);
        }
        return bp_fail_errno(error, open_errno, "cannot use the directory \"%s\"", path);
    }
    bugpack_status status = BUGPACK_OK;
    if (fstat(fd, &info) != 0) {
        status = bp_fail_errno(error, errno, "cannot use the directory \"%s\"", path);
    } else if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
        status =
            bp_fail(error, BUGPACK_ERR_DENIED,
                    "cannot use the directory \"%s\": everybody can replace files in it", path);
    }
    if (status != BUGPACK_OK) {
        (void)close(fd);
        return status;
    }
    *ret_fd = fd;
    return BUGPACK_OK;
}

bugpack_status bp_file_check_private(int fd, const char *path, bugpack_error *error) {
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return bp_fail_errno(error, errno, "cannot use the directory \"%s\"", path);
    }
    if (info.st_uid != geteuid() || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return bp_fail(error, BUGPACK_ERR_DENIED,
                       "cannot use the directory \"%s\": it is not this user's alone", path);
    }
    return BUGPACK_OK;
}

bugpack_status bp_file_make_path(const char *path, bugpack_error *error) {
    char *prefix = strdup(path);
    if (prefix == NULL) {
        return bp_fail_memory(error, "make a directory");
    }
    int make_errno = 0;
    bool is_made = true;
    for (char *slash = strchr(prefix + 1, '/'); is_made && slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        is_made = make_directory(prefix, &make_errno);
        *slash = '/';
    }
    is_made = is_made && make_directory(prefix, &make_errno);
    free(prefix);
    if (!is_made) {
        return bp_fail_errno(error, make_errno, "cannot make the directory \"%s\"", path);
    }
    return BUGPACK_OK;
}

static const char *file_type_name(mode_t mode) {
    if (S_ISDIR(mode)) {
        return "a directory";
    }
    if (S_ISFIFO(mode)) {
        return "a FIFO";
    }
    if (S_ISSOCK(mode)) {
        return "a socket";
    }
    return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "of an unknown type";
}

bugpack_status bp_file_open_regular(int dir_fd, const char *path, int *ret_fd,
                                    bugpack_error *error) {
    int fd = openat(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", path);
    }
    struct stat info;
    bugpack_status status = BUGPACK_OK;
    if (fstat(fd, &info) != 0) {
        status = bp_fail_errno(error, errno, "cannot read \"%s\"", path);
    } else if (!S_ISREG(info.st_mode)) {
        status = bp_fail(error, BUGPACK_ERR_IO, "cannot read \"%s\": it is %s", path,
                         file_type_name(info.st_mode));
    }
    if (status != BUGPACK_OK) {
        (void)close(fd);
        return status;
    }
    *ret_fd = fd;
    return BUGPACK_OK;
}

int64_t bp_file_read_range(int fd, void *bytes, size_t byte_count, uint64_t offset) {
    size_t done = 0;
    while (done < byte_count) {
        ssize_t count = pread(fd, (char *)bytes + done, byte_count - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return -1;
        }
        if (count == 0) {
            break;
        }
        done += (size_t)count;
    }
    return (int64_t)done;
}

/* One read(2) that signals cannot break; the count, or -1 with errno. */
static ssize_t read_some(int fd, void *bytes, size_t byte_count) {
    ssize_t count;
    do {
        count = read(fd, bytes, byte_count);
    } while (count < 0 && errno == EINTR);
    return count;
}

bugpack_status bp_file_read_fd(int fd, const char *name, bp_buffer *out, bugpack_error *error) {
    for (;;) {
        size_t room = out->max_size - out->size;
        size_t step = room < read_step_bytes ? room : read_step_bytes;
        char probe;
        /* At the maximum one more byte tells a file that just fits from one that is too large. */
        char *end = step > 0 ? bp_buffer_reserve(out, step) : &probe;
        if (end == NULL) {
            return bp_fail_memory(error, "read a file");
        }
        ssize_t count = read_some(fd, end, step > 0 ? step : 1);
        if (count < 0) {
            return bp_fail_process_errno(error, errno, "cannot read \"%s\"", name);
        }
        if (count == 0) {
            return BUGPACK_OK;
        }
        if (step == 0) {
            return bp_fail(error, BUGPACK_ERR_LIMIT,
                           "cannot read \"%s\": it is over the limit of %zu bytes", name,
                           out->max_size);
        }
        bp_buffer_commit(out, (size_t)count);
    }
}

int bp_file_write_all(int fd, const void *bytes, size_t byte_count) {
    const char *next = bytes;
    while (byte_count > 0) {
        ssize_t count = write(fd, next, byte_count);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return count == 0 ? ENOSPC : errno;
        }
        next += count;
        byte_count -= (size_t)count;
    }
    return 0;
}

void bp_file_close(int fd) {
    int caller_errno = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = caller_errno;
}

bugpack_status bp_file_read_at(int dir_fd, const char *path, bp_buffer *out, bugpack_error *error) {
    int fd = openat(dir_fd, path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return bp_fail_process_errno(error, errno, "cannot read \"%s\"", path);
    }
    bugpack_status status = bp_file_read_fd(fd, path, out, error);
    (void)close(fd);
    return status;
}
