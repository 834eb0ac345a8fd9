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

const char *bp_file_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
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

enum { file_flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

/* Takes `fd` over. */
static bugpack_status check_regular(int fd, const char *path, int *ret_fd, bugpack_error *error) {
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

bugpack_status bp_file_open_regular(int dir_fd, const char *path, int *ret_fd,
                                    bugpack_error *error) {
    return check_regular(openat(dir_fd, path, file_flags), path, ret_fd, error);
}

bugpack_status bp_file_open_found(const char *path, size_t found_bytes, int *ret_fd,
                                  bugpack_error *error) {
    char name[PATH_MAX];
    size_t begin = strlen(path) - found_bytes;
    int fd = begin < sizeof name ? AT_FDCWD : -1;
    int flags = file_flags; /* of what was named, which may be a link */
    errno = ENAMETOOLONG;
    (void)snprintf(name, sizeof name, "%.*s", (int)begin, path);
    while (fd >= 0 || fd == AT_FDCWD) {
        int above_fd = fd;
        if (name[0] != '\0') {
            fd = openat(above_fd, name, flags);
            bp_file_close(above_fd);
        }
        if (path[begin] == '\0') {
            break;
        }
        size_t length = strcspn(path + begin, "/");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, path + begin);
        begin += length + strspn(path + begin + length, "/");
        flags = file_flags | O_NOFOLLOW;
    }
    if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW) != 0) {
        bugpack_status status =
            bp_fail(error, BUGPACK_ERR_IO,
                    "cannot read \"%s\": a symbolic link leads there, and is not followed", path);
        if (error != NULL) {
            error->system_errno = ELOOP;
        }
        return status;
    }
    return check_regular(fd, path, ret_fd, error);
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

int bp_file_write_range(int fd, const void *bytes, size_t byte_count, uint64_t offset) {
    size_t done = 0;
    while (done < byte_count) {
        ssize_t count =
            pwrite(fd, (const char *)bytes + done, byte_count - done, (off_t)(offset + done));
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return count == 0 ? ENOSPC : errno;
        }
        done += count > 0 ? (size_t)count : 0;
    }
    return 0;
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

DIR *bp_file_list_directory(int dir_fd) {
    /* Not a duplicate, which would share, and move, the caller's position. */
    int list_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = list_fd >= 0 ? fdopendir(list_fd) : NULL;
    if (listing == NULL) {
        bp_file_close(list_fd);
    }
    return listing;
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

/* --- the newest lines of a file that may be growing, rotated or made up by the kernel --------- */

/* Nothing that the kernel makes up and somebody calls a log is larger. */
static const uint64_t measured_max_bytes = (uint64_t)64 << 20;

enum { piece_bytes = 16 * 1024 };

/*
 * How long a file is that does not tell: under /proc its size is 0, under /sys that of a page, and
 * a log that was truncated a moment ago is shorter than it was. What never ends is not read for
 * ever.
 */
static bugpack_status measure(int fd, const char *name, uint64_t *ret_size, bugpack_error *error) {
    char bytes[piece_bytes];
    uint64_t size = 0;
    while (size <= measured_max_bytes) {
        int64_t count = bp_file_read_range(fd, bytes, sizeof bytes, size);
        if (count < 0) {
            return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
        }
        size += (uint64_t)count;
        if ((size_t)count < sizeof bytes) {
            *ret_size = size;
            return BUGPACK_OK;
        }
    }
    return bp_fail(error, BUGPACK_ERR_IO,
                   "cannot read \"%s\": it states no size, and has over %llu bytes", name,
                   (unsigned long long)measured_max_bytes);
}

/* The size that fstat gives where there is a byte at its end; else what can really be read. */
static bugpack_status find_size(int fd, const char *name, uint64_t *ret_size,
                                bugpack_error *error) {
    struct stat info;
    char last;
    if (fstat(fd, &info) != 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
    }
    int64_t count =
        info.st_size > 0 ? bp_file_read_range(fd, &last, 1, (uint64_t)info.st_size - 1) : 0;
    if (count < 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
    }
    if (count == 0) {
        return measure(fd, name, ret_size, error);
    }
    *ret_size = (uint64_t)info.st_size;
    return BUGPACK_OK;
}

/* Bytes to drop after a cut inside a line, so that no character is cut. -1 with errno. */
static int64_t count_cut_character(int fd, uint64_t at, uint64_t size) {
    char bytes[4]; /* the one before the cut, and at most three of a character that began there */
    int64_t count = bp_file_read_range(fd, bytes, sizeof bytes, at);
    int64_t skip = 1;
    while (skip < count && ((unsigned char)bytes[skip] & 0xC0) == 0x80) {
        skip++;
    }
    if (count < 0) {
        return -1;
    }
    return (uint64_t)skip < size - at ? skip : 1;
}

/* Gives what is from `at` on to the sink; or with `drops_line` from the first line on that begins
 * behind it. */
static bugpack_status give(int fd, const char *name, uint64_t at, bool drops_line, bp_sink *sink,
                           void *context, bp_file_tail *tail, bugpack_error *error) {
    char bytes[piece_bytes];
    tail->skipped_bytes = at;
    while (at < tail->original_bytes) {
        uint64_t left = tail->original_bytes - at;
        int64_t count =
            bp_file_read_range(fd, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes, at);
        if (count < 0) {
            return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
        }
        if (count == 0) {
            tail->original_bytes = at; /* it shrank meanwhile */
            break;
        }
        const char *from = bytes, *end = bytes + count;
        at += (uint64_t)count;
        if (drops_line) {
            const char *newline = memchr(bytes, '\n', (size_t)count);
            from = newline != NULL ? newline + 1 : end;
            drops_line = newline == NULL;
            tail->skipped_bytes = at - (uint64_t)(end - from);
        }
        bugpack_status status = from < end ? sink(context, from, (size_t)(end - from)) : BUGPACK_OK;
        if (status != BUGPACK_OK) {
            return bp_fail(error, status, "cannot keep \"%s\": %s", name,
                           bugpack_status_name(status));
        }
    }
    return BUGPACK_OK;
}

bugpack_status bp_file_read_tail(int fd, const char *name, uint64_t limit_bytes, bp_sink *sink,
                                 void *context, bp_file_tail *ret_tail, bugpack_error *error) {
    bp_file_tail tail = {.original_bytes = 0};
    if (limit_bytes == 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot read \"%s\": a limit of 0 bytes", name);
    }
    bugpack_status status = find_size(fd, name, &tail.original_bytes, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bool is_cut = tail.original_bytes > limit_bytes;
    /* One byte more, so that a cut which falls on a line's start loses nothing. */
    uint64_t at = is_cut ? tail.original_bytes - limit_bytes - 1 : 0;
    status = give(fd, name, at, is_cut, sink, context, &tail, error);
    bool is_one_line = is_cut && tail.skipped_bytes == tail.original_bytes;
    if (status == BUGPACK_OK && is_one_line && tail.original_bytes > at + 1) {
        int64_t skip = count_cut_character(fd, at, tail.original_bytes);
        if (skip < 0) {
            return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
        }
        tail.cut_inside_line = true;
        status = give(fd, name, at + (uint64_t)skip, false, sink, context, &tail, error);
    }
    if (status == BUGPACK_OK) {
        *ret_tail = tail;
    }
    return status;
}
