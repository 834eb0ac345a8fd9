/*
 * The newest lines of a file that may be growing, rotated or made up by the kernel.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/status.h"

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
                   "cannot read \"%s\": it tells no size, and has over %llu bytes", name,
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

/* Where the first line after `at` begins; `size` where none does before the end. -1 with errno. */
static int64_t find_next_line(int fd, uint64_t at, uint64_t size) {
    char bytes[piece_bytes];
    while (at < size) {
        size_t wanted = size - at < sizeof bytes ? (size_t)(size - at) : sizeof bytes;
        int64_t count = bp_file_read_range(fd, bytes, wanted, at);
        if (count < 0) {
            return -1;
        }
        const char *newline = memchr(bytes, '\n', (size_t)count);
        if (newline != NULL) {
            return (int64_t)(at + (uint64_t)(newline + 1 - bytes));
        }
        at = count > 0 ? at + (uint64_t)count : size;
    }
    return (int64_t)size;
}

/* How many bytes after a cut inside a line are dropped, so that no character is cut. -1 with errno.
 */
static int64_t count_cut_character(int fd, uint64_t at, uint64_t size) {
    char bytes[4]; /* the one before the cut, and at most three of a character that began there */
    int64_t count = bp_file_read_range(fd, bytes, sizeof bytes, at);
    int64_t skip = 1;
    while (skip < count && ((unsigned char)bytes[skip] & 0xC0) == 0x80) {
        skip++;
    }
    return count < 0 ? -1 : (uint64_t)skip < size - at ? skip : 1;
}

/*
 * Moves `*at`, which is one byte before the first that may be kept, to the first line that begins
 * after it; where there is none, inside the one line that is over the limit.
 */
static bugpack_status skip_partial_line(int fd, const char *name, uint64_t size, uint64_t *at,
                                        bool *ret_inside_line, bugpack_error *error) {
    int64_t line = find_next_line(fd, *at, size);
    int64_t skip = 0;
    if (line == (int64_t)size) {
        skip = count_cut_character(fd, *at, size);
    }
    if (line < 0 || skip < 0) {
        return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
    }
    *ret_inside_line = skip > 0;
    *at = skip > 0 ? *at + (uint64_t)skip : (uint64_t)line;
    return BUGPACK_OK;
}

bugpack_status bp_file_read_tail(int fd, const char *name, uint64_t limit_bytes, bp_sink *sink,
                                 void *context, bp_file_tail *ret_tail, bugpack_error *error) {
    char bytes[piece_bytes];
    bp_file_tail tail = {.original_bytes = 0};
    uint64_t at = 0;
    if (limit_bytes == 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "cannot read \"%s\": a limit of 0 bytes", name);
    }
    bugpack_status status = find_size(fd, name, &tail.original_bytes, error);
    if (status == BUGPACK_OK && tail.original_bytes > limit_bytes) {
        /* One byte more, so that a cut which falls on a line's start loses nothing. */
        at = tail.original_bytes - limit_bytes - 1;
        status =
            skip_partial_line(fd, name, tail.original_bytes, &at, &tail.cut_inside_line, error);
    }
    tail.skipped_bytes = at;
    while (status == BUGPACK_OK && at < tail.original_bytes) {
        uint64_t left = tail.original_bytes - at;
        int64_t count =
            bp_file_read_range(fd, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes, at);
        if (count < 0) {
            return bp_fail_errno(error, errno, "cannot read \"%s\"", name);
        }
        if (count == 0) {
            tail.original_bytes = at; /* it shrank meanwhile */
            break;
        }
        status = sink(context, bytes, (size_t)count);
        if (status != BUGPACK_OK) {
            return bp_fail(error, status, "cannot keep \"%s\": %s", name,
                           bugpack_status_name(status));
        }
        at += (uint64_t)count;
    }
    if (status == BUGPACK_OK) {
        *ret_tail = tail;
    }
    return status;
}
