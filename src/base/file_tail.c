/*
 * The newest lines of a file that may be growing, rotated or made up by the kernel.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

/* Nothing that the kernel makes up and somebody calls a log is larger. */
static const uint64_t measured_max_bytes = (uint64_t)64 << 20;

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

/*
 * How long a file is that does not tell: under /proc its size is 0, under /sys that of a page, and
 * a log that was truncated a moment ago is shorter than it was. What never ends is not read for
 * ever.
 */
static bugpack_status measure(int fd, const char *name, uint64_t *ret_size, bugpack_error *error) {
    char bytes[16 * 1024];
    uint64_t size = 0;
    while (size <= measured_max_bytes) {
        ssize_t count = read_range(fd, bytes, sizeof bytes, (off_t)size);
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
                   "cannot read \"%s\": it tells no size, and has over %llu bytes", name,
                   (unsigned long long)measured_max_bytes);
}

/*
 * Reads what may be kept of a file of `size` bytes, and one byte before it that tells whether the
 * cut is on a line's start, into room that is reserved but not yet committed.
 */
static bugpack_status read_end(int fd, const char *name, uint64_t size, uint64_t limit_bytes,
                               bp_buffer *out, char **ret_end, size_t *ret_count,
                               bugpack_error *error) {
    uint64_t want = size > limit_bytes ? limit_bytes + 1 : size;
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
    *ret_end = end;
    *ret_count = (size_t)count;
    return BUGPACK_OK;
}

bugpack_status bp_file_read_tail(int fd, const char *name, uint64_t limit_bytes, bp_buffer *out,
                                 bp_file_tail *ret_tail, bugpack_error *error) {
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
    }
    uint64_t size = info.st_size < 0 ? 0 : (uint64_t)info.st_size;
    char *end = NULL;
    size_t kept = 0;
    bugpack_status status = read_end(fd, name, size, limit_bytes, out, &end, &kept, error);
    if (status == BUGPACK_OK && (size == 0 || kept < size) && kept <= limit_bytes) {
        /* Less came than it was to have, or it has no size: what it really gives is counted. */
        status = measure(fd, name, &size, error);
        if (status == BUGPACK_OK) {
            status = read_end(fd, name, size, limit_bytes, out, &end, &kept, error);
        }
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_file_tail tail = {.original_bytes = size};
    if (size > limit_bytes && kept > 0) {
        size_t skip = partial_line_bytes(end, kept, &tail.cut_inside_line);
        memmove(end, end + skip, kept - skip);
        kept -= skip;
    }
    bp_buffer_commit(out, kept);
    tail.skipped_bytes = size - kept;
    *ret_tail = tail;
    return BUGPACK_OK;
}
