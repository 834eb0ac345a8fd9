#include "base/temp_file.h"

#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "base/private_file.h"
#include "base/status.h"

static const size_t pending_bytes = 64 * 1024;

/* Without a name from before its first byte comes. -1 with errno. */
static int open_nameless(int dir_fd) {
    char name[BP_PRIVATE_FILE_NAME_BYTES];
    int fd = bp_private_file_open_unnamed(dir_fd, false);
    if (fd >= 0) {
        return fd;
    }
    /* Why there is no unnamed file does not matter: what stops this one as well is reported. */
    fd = bp_private_file_open_named(dir_fd, name);
    if (fd >= 0 && unlinkat(dir_fd, name, 0) != 0) {
        bp_file_close(fd);
        return -1;
    }
    return fd;
}

bugpack_status bp_temp_file_open(bp_temp_file *temp_file, int dir_fd, uint64_t max_size,
                                 bugpack_error *error) {
    *temp_file = (bp_temp_file)BP_TEMP_FILE_INIT;
    int fd = open_nameless(dir_fd);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot make a temporary file for a report");
    }
    temp_file->fd = fd;
    temp_file->mark = bp_fd_mark_of(fd);
    temp_file->max_size = max_size;
    bp_buffer_init(&temp_file->pending, pending_bytes);
    return BUGPACK_OK;
}

void bp_temp_file_release(bp_temp_file *temp_file) {
    bp_fd_close_ours(temp_file->fd, temp_file->mark);
    bp_buffer_release(&temp_file->pending);
    *temp_file = (bp_temp_file)BP_TEMP_FILE_INIT;
}

bool bp_temp_file_is_open(const bp_temp_file *temp_file) {
    return temp_file->fd >= 0;
}

bool bp_temp_file_is_lost(const bp_temp_file *temp_file) {
    return temp_file->fd >= 0 && !bp_fd_is_ours(temp_file->fd, temp_file->mark);
}

/* All of it at `offset`, whatever signals arrive; a failure sticks. */
static bugpack_status write_at(bp_temp_file *temp_file, uint64_t offset, const char *bytes,
                               size_t byte_count) {
    if (byte_count == 0) {
        return BUGPACK_OK;
    }
    temp_file->status = bp_cancel_check(temp_file->token, NULL);
    if (temp_file->status != BUGPACK_OK) {
        return temp_file->status;
    }
    int result = EBADF;
    if (bp_fd_is_ours(temp_file->fd, temp_file->mark)) {
        result = bp_file_write_range(temp_file->fd, bytes, byte_count, offset);
    }
    if (result != 0) {
        temp_file->system_errno = result;
        temp_file->status = BUGPACK_ERR_IO;
    }
    return temp_file->status;
}

static bugpack_status write_pending(bp_temp_file *temp_file) {
    size_t byte_count = temp_file->pending.size;
    bugpack_status status = write_at(temp_file, temp_file->size - byte_count,
                                     bp_buffer_text(&temp_file->pending), byte_count);
    bp_buffer_clear(&temp_file->pending);
    return status;
}

bugpack_status bp_temp_file_write(bp_temp_file *temp_file, const void *bytes, size_t byte_count) {
    if (temp_file->status != BUGPACK_OK) {
        return temp_file->status;
    }
    if (temp_file->fd < 0) {
        return temp_file->status = BUGPACK_ERR_INVALID;
    }
    if (byte_count > temp_file->max_size - temp_file->size) {
        return temp_file->status = BUGPACK_ERR_LIMIT;
    }
    if (byte_count > pending_bytes - temp_file->pending.size &&
        write_pending(temp_file) != BUGPACK_OK) {
        return temp_file->status;
    }
    /* Large pieces, and those that find no memory to wait in, are written at once. */
    bool is_pending = byte_count < pending_bytes &&
                      bp_buffer_append(&temp_file->pending, bytes, byte_count) == BUGPACK_OK;
    if (!is_pending && (write_pending(temp_file) != BUGPACK_OK ||
                        write_at(temp_file, temp_file->size, bytes, byte_count) != BUGPACK_OK)) {
        return temp_file->status;
    }
    temp_file->size += byte_count;
    return BUGPACK_OK;
}

bugpack_status bp_temp_file_sink(void *temp_file, const void *bytes, size_t byte_count) {
    return bp_temp_file_write(temp_file, bytes, byte_count);
}

bugpack_status bp_temp_file_flush(bp_temp_file *temp_file, bugpack_error *error) {
    if (temp_file->status == BUGPACK_OK && temp_file->fd < 0) {
        temp_file->status = BUGPACK_ERR_INVALID;
    }
    if (temp_file->status == BUGPACK_OK) {
        (void)write_pending(temp_file);
    }
    bp_buffer_release(&temp_file->pending);
    switch (temp_file->status) {
    case BUGPACK_OK:
        return BUGPACK_OK;
    case BUGPACK_ERR_IO:
        return bp_fail_errno(error, temp_file->system_errno,
                             "cannot write a temporary file for a report");
    case BUGPACK_ERR_LIMIT:
        return bp_fail(error, BUGPACK_ERR_LIMIT, "it is over the limit of %llu bytes",
                       (unsigned long long)temp_file->max_size);
    case BUGPACK_ERR_CANCELLED:
    case BUGPACK_ERR_TIMEOUT:
        return bp_cancel_check(temp_file->token, error);
    default:
        return bp_fail(error, temp_file->status, "there is no temporary file to write to");
    }
}

void bp_temp_file_cut(bp_temp_file *temp_file, uint64_t size) {
    bp_buffer_clear(&temp_file->pending);
    /* For the space alone: what stays behind `size` is written over, and never read. */
    if (bp_fd_is_ours(temp_file->fd, temp_file->mark)) {
        (void)ftruncate(temp_file->fd, (off_t)size);
    }
    temp_file->size = size;
    temp_file->status = BUGPACK_OK;
    temp_file->system_errno = 0;
}

int64_t bp_temp_file_read(const bp_temp_file *temp_file, uint64_t offset, void *bytes,
                          size_t byte_count) {
    if (!bp_fd_is_ours(temp_file->fd, temp_file->mark)) {
        errno = EBADF;
        return -1;
    }
    return bp_file_read_range(temp_file->fd, bytes, byte_count, offset);
}
