#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
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

bugpack_status bp_file_open_directory(const char *path, bool create, int *ret_fd,
                                      bugpack_error *error) {
    int make_errno = 0;
    if (create && !make_directory(path, &make_errno)) {
        return bp_fail_errno(error, make_errno, "cannot make the directory \"%s\"", path);
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int open_errno = errno;
        struct stat info;
        /* O_NOFOLLOW with O_DIRECTORY gives ENOTDIR for a link (open(2)): say what it is. */
        if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
            return bp_fail(error, BUGPACK_ERR_IO,
                           "cannot use the directory \"%s\": it is a symbolic link", path);
        }
        return bp_fail_errno(error, open_errno, "cannot use the directory \"%s\"", path);
    }
    *ret_fd = fd;
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
            return bp_fail(error, BUGPACK_ERR_NO_MEMORY,
                           "cannot read \"%s\": it is over the limit of %zu bytes", name,
                           out->max_size);
        }
        bp_buffer_commit(out, (size_t)count);
    }
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

/* Reads up to `byte_count` bytes at `offset`; fewer only at the end of the file. */
static ssize_t read_range(int fd, char *bytes, size_t byte_count, off_t offset) {
    size_t done = 0;
    while (done < byte_count) {
        ssize_t count = pread(fd, bytes + done, byte_count - done, offset + (off_t)done);
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
    return (ssize_t)done;
}

/*
 * How many bytes at the front of the kept piece belong to a line that began before it. The byte
 * before the limit is kept as well, so that a cut that falls on a line's start loses nothing.
 */
static size_t partial_line_bytes(const char *bytes, size_t byte_count, bool *ret_inside_line) {
    const char *newline = memchr(bytes, '\n', byte_count);
    *ret_inside_line = newline == NULL || newline + 1 == bytes + byte_count;
    if (!*ret_inside_line) {
        return (size_t)(newline + 1 - bytes);
    }
    /* A character has at most three bytes behind its first. */
    size_t skip = 1;
    while (skip < byte_count && skip < 4 && ((unsigned char)bytes[skip] & 0xC0) == 0x80) {
        skip++;
    }
    return skip < byte_count ? skip : 1;
}

bugpack_status bp_file_read_tail(int fd, const char *name, uint64_t limit_bytes, bp_buffer *out,
                                 bp_file_tail *ret_tail, bugpack_error *error) {
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
    }
    uint64_t size = info.st_size < 0 ? 0 : (uint64_t)info.st_size;
    bp_file_tail tail = {.original_bytes = size};
    bool is_cut = size > limit_bytes;
    uint64_t want = is_cut ? limit_bytes + 1 : size;
    if (limit_bytes == 0 || want > out->max_size - out->size) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot read \"%s\": no room for %llu bytes",
                       name, (unsigned long long)want);
    }
    char *end = bp_buffer_reserve(out, (size_t)want);
    if (end == NULL) {
        return bp_fail_memory(error, "read a file");
    }
    ssize_t count = read_range(fd, end, (size_t)want, (off_t)(size - want));
    if (count < 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
    }
    size_t kept = (size_t)count;
    if (is_cut && kept > 0) {
        size_t skip = partial_line_bytes(end, kept, &tail.cut_inside_line);
        memmove(end, end + skip, kept - skip);
        kept -= skip;
    }
    bp_buffer_commit(out, kept);
    tail.skipped_bytes = size - kept;
    *ret_tail = tail;
    return BUGPACK_OK;
}
