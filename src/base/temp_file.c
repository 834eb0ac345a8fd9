#include "base/temp_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/id.h"
#include "base/status.h"

static const size_t pending_bytes = 64 * 1024;

/* The pattern of platform/staged_method.h, so that its sweep takes what a kill leaves here. */
#define NAME_FORMAT ".bugpack-%s.tmp"
#define NAME_BYTES (sizeof NAME_FORMAT + BP_ID_BYTES)

/* Linux alone has O_TMPFILE; there, a file system that lacks it says so (EOPNOTSUPP, EISDIR). */
static int open_unnamed(int dir_fd) {
#ifdef O_TMPFILE
    /* O_EXCL: nobody can give it a name later, through /proc either. */
    return openat(dir_fd, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
#else
    (void)dir_fd;
    return -1;
#endif
}

/*
 * Exactly 0600, whatever the umask or a default ACL made of it. A file system that cannot say so
 * (vfat) is fine as long as it keeps others out: they could hold the file open from before it lost
 * its name.
 */
static bool make_private(int fd) {
    struct stat info;
    if (fchmod(fd, 0600) == 0) {
        return true;
    }
    int mode_errno = errno;
    bool is_private = fstat(fd, &info) == 0 && (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    errno = mode_errno;
    return is_private;
}

/* -1 with errno. The name goes before the first byte comes. */
static int open_named(int dir_fd) {
    char id[BP_ID_BYTES];
    bp_id_new(id);
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, NAME_FORMAT, id);
    int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && unlinkat(dir_fd, name, 0) != 0) {
        int unlink_errno = errno;
        (void)close(fd);
        errno = unlink_errno;
        return -1;
    }
    return fd;
}

static bugpack_status open_temp_file(bp_temp_file *temp_file, int dir_fd, bool may_be_unnamed,
                                     uint64_t max_size, bugpack_error *error) {
    *temp_file = (bp_temp_file)BP_TEMP_FILE_INIT;
    int fd = may_be_unnamed ? open_unnamed(dir_fd) : -1;
    /* Why there is no unnamed file does not matter: what stops the named one as well is told. */
    if (fd < 0) {
        fd = open_named(dir_fd);
    }
    if (fd < 0 || !make_private(fd)) {
        int open_errno = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return bp_fail_errno(error, open_errno, "cannot make a temporary file for a report");
    }
    temp_file->fd = fd;
    temp_file->max_size = max_size;
    bp_buffer_init(&temp_file->pending, pending_bytes);
    return BUGPACK_OK;
}

bugpack_status bp_temp_file_open(bp_temp_file *temp_file, int dir_fd, uint64_t max_size,
                                 bugpack_error *error) {
    return open_temp_file(temp_file, dir_fd, true, max_size, error);
}

bugpack_status bp_temp_file_open_named(bp_temp_file *temp_file, int dir_fd, uint64_t max_size,
                                       bugpack_error *error) {
    return open_temp_file(temp_file, dir_fd, false, max_size, error);
}

void bp_temp_file_release(bp_temp_file *temp_file) {
    if (temp_file->fd >= 0) {
        (void)close(temp_file->fd);
    }
    bp_buffer_release(&temp_file->pending);
    *temp_file = (bp_temp_file)BP_TEMP_FILE_INIT;
}

bool bp_temp_file_is_open(const bp_temp_file *temp_file) {
    return temp_file->fd >= 0;
}

void bp_temp_file_move(bp_temp_file *to, bp_temp_file *from) {
    bp_temp_file_release(to);
    *to = *from;
    *from = (bp_temp_file)BP_TEMP_FILE_INIT;
}

/* All of it at `offset`, whatever signals arrive; a failure sticks. */
static bugpack_status write_at(bp_temp_file *temp_file, uint64_t offset, const char *bytes,
                               size_t byte_count) {
    bugpack_status halted = byte_count > 0 ? bp_cancel_check(temp_file->token, NULL) : BUGPACK_OK;
    if (halted != BUGPACK_OK) {
        return temp_file->status = halted;
    }
    while (byte_count > 0) {
        ssize_t count = pwrite(temp_file->fd, bytes, byte_count, (off_t)offset);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            temp_file->system_errno = count == 0 ? ENOSPC : errno;
            return temp_file->status = BUGPACK_ERR_IO;
        }
        bytes += count;
        byte_count -= (size_t)count;
        offset += (uint64_t)count;
    }
    return BUGPACK_OK;
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
        return temp_file->status = BUGPACK_ERR_NO_MEMORY;
    }
    if (byte_count > pending_bytes - temp_file->pending.size &&
        write_pending(temp_file) != BUGPACK_OK) {
        return temp_file->status;
    }
    /* What is large, and what finds no memory to wait in, is written at once. */
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
    case BUGPACK_ERR_NO_MEMORY:
        return bp_fail(error, BUGPACK_ERR_NO_MEMORY, "it is over the limit of %llu bytes",
                       (unsigned long long)temp_file->max_size);
    case BUGPACK_ERR_CANCELLED:
    case BUGPACK_ERR_TIMEOUT:
        return bp_cancel_check(temp_file->token, error);
    default:
        return bp_fail(error, temp_file->status, "there is no temporary file to write to");
    }
}

bugpack_status bp_temp_file_truncate(bp_temp_file *temp_file, uint64_t size) {
    uint64_t written = temp_file->size - temp_file->pending.size;
    if (temp_file->status != BUGPACK_OK) {
        return temp_file->status;
    }
    if (temp_file->fd < 0 || size > temp_file->size) {
        return temp_file->status = BUGPACK_ERR_INVALID;
    }
    if (size >= written) {
        temp_file->pending.size = (size_t)(size - written);
        temp_file->size = size;
        return BUGPACK_OK;
    }
    int result;
    do {
        result = ftruncate(temp_file->fd, (off_t)size);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        temp_file->system_errno = errno;
        return temp_file->status = BUGPACK_ERR_IO;
    }
    bp_buffer_clear(&temp_file->pending);
    temp_file->size = size;
    return BUGPACK_OK;
}

int64_t bp_temp_file_read(const bp_temp_file *temp_file, uint64_t offset, void *bytes,
                          size_t byte_count) {
    ssize_t count;
    do {
        count = pread(temp_file->fd, bytes, byte_count, (off_t)offset);
    } while (count < 0 && errno == EINTR);
    return count;
}
