#include "base/spool.h"

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

static bugpack_status open_spool(bp_spool *spool, int dir_fd, bool may_be_unnamed,
                                 uint64_t max_size, bugpack_error *error) {
    *spool = (bp_spool)BP_SPOOL_INIT;
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
    spool->fd = fd;
    spool->max_size = max_size;
    bp_buffer_init(&spool->pending, pending_bytes);
    return BUGPACK_OK;
}

bugpack_status bp_spool_open(bp_spool *spool, int dir_fd, uint64_t max_size, bugpack_error *error) {
    return open_spool(spool, dir_fd, true, max_size, error);
}

bugpack_status bp_spool_open_named(bp_spool *spool, int dir_fd, uint64_t max_size,
                                   bugpack_error *error) {
    return open_spool(spool, dir_fd, false, max_size, error);
}

void bp_spool_release(bp_spool *spool) {
    if (spool->fd >= 0) {
        (void)close(spool->fd);
    }
    bp_buffer_release(&spool->pending);
    *spool = (bp_spool)BP_SPOOL_INIT;
}

bool bp_spool_is_open(const bp_spool *spool) {
    return spool->fd >= 0;
}

void bp_spool_move(bp_spool *to, bp_spool *from) {
    bp_spool_release(to);
    *to = *from;
    *from = (bp_spool)BP_SPOOL_INIT;
}

/* All of it at `offset`, whatever signals arrive; a failure sticks. */
static bugpack_status write_at(bp_spool *spool, uint64_t offset, const char *bytes,
                               size_t byte_count) {
    bugpack_status halted = byte_count > 0 ? bp_halt_check(spool->halt, NULL) : BUGPACK_OK;
    if (halted != BUGPACK_OK) {
        return spool->status = halted;
    }
    while (byte_count > 0) {
        ssize_t count = pwrite(spool->fd, bytes, byte_count, (off_t)offset);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            spool->system_errno = count == 0 ? ENOSPC : errno;
            return spool->status = BUGPACK_ERR_IO;
        }
        bytes += count;
        byte_count -= (size_t)count;
        offset += (uint64_t)count;
    }
    return BUGPACK_OK;
}

static bugpack_status write_pending(bp_spool *spool) {
    size_t byte_count = spool->pending.size;
    bugpack_status status =
        write_at(spool, spool->size - byte_count, bp_buffer_text(&spool->pending), byte_count);
    bp_buffer_clear(&spool->pending);
    return status;
}

bugpack_status bp_spool_write(bp_spool *spool, const void *bytes, size_t byte_count) {
    if (spool->status != BUGPACK_OK) {
        return spool->status;
    }
    if (spool->fd < 0) {
        return spool->status = BUGPACK_ERR_INVALID;
    }
    if (byte_count > spool->max_size - spool->size) {
        return spool->status = BUGPACK_ERR_NO_MEMORY;
    }
    if (byte_count > pending_bytes - spool->pending.size && write_pending(spool) != BUGPACK_OK) {
        return spool->status;
    }
    /* What is large, and what finds no memory to wait in, is written at once. */
    bool is_pending = byte_count < pending_bytes &&
                      bp_buffer_append(&spool->pending, bytes, byte_count) == BUGPACK_OK;
    if (!is_pending && (write_pending(spool) != BUGPACK_OK ||
                        write_at(spool, spool->size, bytes, byte_count) != BUGPACK_OK)) {
        return spool->status;
    }
    spool->size += byte_count;
    return BUGPACK_OK;
}

bugpack_status bp_spool_sink(void *spool, const void *bytes, size_t byte_count) {
    return bp_spool_write(spool, bytes, byte_count);
}

bugpack_status bp_spool_flush(bp_spool *spool, bugpack_error *error) {
    if (spool->status == BUGPACK_OK && spool->fd < 0) {
        spool->status = BUGPACK_ERR_INVALID;
    }
    if (spool->status == BUGPACK_OK) {
        (void)write_pending(spool);
    }
    bp_buffer_release(&spool->pending);
    switch (spool->status) {
    case BUGPACK_OK:
        return BUGPACK_OK;
    case BUGPACK_ERR_IO:
        return bp_fail_errno(error, spool->system_errno,
                             "cannot write a temporary file for a report");
    case BUGPACK_ERR_NO_MEMORY:
        return bp_fail(error, BUGPACK_ERR_NO_MEMORY, "it is over the limit of %llu bytes",
                       (unsigned long long)spool->max_size);
    case BUGPACK_ERR_CANCELLED:
    case BUGPACK_ERR_TIMEOUT:
        return bp_halt_check(spool->halt, error);
    default:
        return bp_fail(error, spool->status, "there is no temporary file to write to");
    }
}

bugpack_status bp_spool_truncate(bp_spool *spool, uint64_t size) {
    uint64_t written = spool->size - spool->pending.size;
    if (spool->status != BUGPACK_OK) {
        return spool->status;
    }
    if (spool->fd < 0 || size > spool->size) {
        return spool->status = BUGPACK_ERR_INVALID;
    }
    if (size >= written) {
        spool->pending.size = (size_t)(size - written);
        spool->size = size;
        return BUGPACK_OK;
    }
    int result;
    do {
        result = ftruncate(spool->fd, (off_t)size);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        spool->system_errno = errno;
        return spool->status = BUGPACK_ERR_IO;
    }
    bp_buffer_clear(&spool->pending);
    spool->size = size;
    return BUGPACK_OK;
}

int64_t bp_spool_read(const bp_spool *spool, uint64_t offset, void *bytes, size_t byte_count) {
    ssize_t count;
    do {
        count = pread(spool->fd, bytes, byte_count, (off_t)offset);
    } while (count < 0 && errno == EINTR);
    return count;
}
