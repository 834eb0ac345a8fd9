#include "platform/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sanitizer.h"
#include "base/status.h"

/* The lock of a stream is taken inside libc, where ThreadSanitizer does not see it. */
#if BP_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#define STREAM_IS_LOCKED(stream) __tsan_acquire(stream)
#define STREAM_IS_UNLOCKED(stream) __tsan_release(stream)
#else
#define STREAM_IS_LOCKED(stream) (void)(stream)
#define STREAM_IS_UNLOCKED(stream) (void)(stream)
#endif

#ifdef __APPLE__ /* funopen(3) */
typedef int offered_count;
typedef int written_count;
#else /* fopencookie(3): libio in glibc, and musl has it too */
typedef size_t offered_count;
typedef ssize_t written_count;
#endif

typedef struct stream_cookie {
    bp_stream_calls calls;
    void *context;
} stream_cookie;

static written_count write_cookie(void *cookie, const char *bytes, offered_count byte_count) {
    stream_cookie *stream = cookie;
    int caller_errno = errno;
    STREAM_IS_LOCKED(stream);
    if (byte_count > 0) {
        stream->calls.write(stream->context, bytes, (size_t)byte_count);
    }
    STREAM_IS_UNLOCKED(stream);
    errno = caller_errno;
    return (written_count)byte_count;
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
#ifdef __APPLE__
    FILE *file = funopen(stream, NULL, write_cookie, NULL, close_cookie);
#else
    cookie_io_functions_t functions = {.write = write_cookie, .close = close_cookie};
    FILE *file = fopencookie(stream, "w", functions);
#endif
    if (file == NULL) {
        int open_errno = errno;
        free(stream);
        return bp_fail_errno(error, open_errno, "cannot open a stream");
    }
    *ret_stream = file;
    return BUGPACK_OK;
}
