/*
 * Staged files, streams and the ends of children, as Linux has them.
 */
#include <errno.h>
#include <linux/posix_types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitizer.h"
#include "base/status.h"
#include "platform/child_end.h"
#include "platform/linux/libc_calls.h"
#include "platform/staged_file.h"
#include "platform/stream.h"

/*
 * The form of open(2)'s O_TMPFILE that needs no capability; AT_EMPTY_PATH wants one. In a chroot or
 * a container /proc may not be mounted, or not lead to the very file.
 */
bool bp_staged_unnamed_path(int fd, char ret_path[BP_STAGED_PATH_BYTES]) {
    struct stat by_path;
    struct stat by_fd;
    (void)snprintf(ret_path, BP_STAGED_PATH_BYTES, "/proc/self/fd/%d", fd);
    return stat(ret_path, &by_path) == 0 && fstat(fd, &by_fd) == 0 &&
           by_path.st_dev == by_fd.st_dev && by_path.st_ino == by_fd.st_ino;
}

int bp_staged_sync(int fd) {
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

int bp_staged_rename_new(int dir_fd, const char *from, const char *to) {
    return renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE);
}

/* The lock of a stream is taken inside libc, where ThreadSanitizer does not see it. */
#if BP_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#define STREAM_IS_LOCKED(stream) __tsan_acquire(stream)
#define STREAM_IS_UNLOCKED(stream) __tsan_release(stream)
#else
#define STREAM_IS_LOCKED(stream) (void)(stream)
#define STREAM_IS_UNLOCKED(stream) (void)(stream)
#endif

/* fopencookie(3): libio in glibc, and musl has it too. */
typedef struct stream_cookie {
    bp_stream_calls calls;
    void *context;
} stream_cookie;

static ssize_t write_cookie(void *cookie, const char *bytes, size_t byte_count) {
    stream_cookie *stream = cookie;
    int caller_errno = errno;
    STREAM_IS_LOCKED(stream);
    stream->calls.write(stream->context, bytes, byte_count);
    STREAM_IS_UNLOCKED(stream);
    errno = caller_errno;
    return (ssize_t)byte_count;
}

static int close_cookie(void *cookie) {
    stream_cookie *stream = cookie;
    STREAM_IS_LOCKED(stream);
    stream->calls.close(stream->context);
    free(stream);
    return 0;
}

bugpack_status bp_stream_open(const bp_stream_calls *calls, void *context, FILE **ret_stream,
                              bugpack_error *error) {
    stream_cookie *stream = malloc(sizeof *stream);
    if (stream == NULL) {
        return bp_fail_memory(error, "open a stream");
    }
    stream->calls = *calls;
    stream->context = context;
    cookie_io_functions_t functions = {.write = write_cookie, .close = close_cookie};
    FILE *file = fopencookie(stream, "w", functions);
    if (file == NULL) {
        int open_errno = errno;
        free(stream);
        return bp_fail_errno(error, open_errno, "cannot open a stream");
    }
    *ret_stream = file;
    return BUGPACK_OK;
}

/* The system call has a fifth argument that waitid(2) of the C library lacks: struct rusage as the
 * kernel has it, whose times are of its long also where time_t is wider. */
uint64_t bp_child_cpu_ns(pid_t pid) {
    struct {
        struct {
            __kernel_long_t secs, us;
        } user, system;
        __kernel_long_t rest[14];
    } usage;
    memset(&usage, 0, sizeof usage);
    if (syscall(SYS_waitid, P_PID, pid, NULL, WEXITED | WNOHANG | WNOWAIT, &usage) != 0) {
        return 0;
    }
    uint64_t secs = (uint64_t)usage.user.secs + (uint64_t)usage.system.secs;
    return secs * BP_NS_PER_SEC + ((uint64_t)usage.user.us + (uint64_t)usage.system.us) * 1000;
}
