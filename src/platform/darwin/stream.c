#include "platform/stream.h"

#include <errno.h>
#include <stdlib.h>

#include "base/status.h"

/* funopen(3). */
typedef struct stream_cookie {
    bp_stream_calls calls;
    void *context;
} stream_cookie;

static int write_cookie(void *cookie, const char *bytes, int byte_count) {
    stream_cookie *stream = cookie;
    int caller_errno = errno;
    if (byte_count > 0) {
        stream->calls.write(stream->context, bytes, (size_t)byte_count);
    }
    errno = caller_errno;
    return byte_count;
}

static int close_cookie(void *cookie) {
    stream_cookie *stream = cookie;
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
    FILE *file = funopen(stream, NULL, write_cookie, NULL, close_cookie);
    if (file == NULL) {
        int open_errno = errno;
        free(stream);
        return bp_fail_errno(error, open_errno, "cannot open a stream");
    }
    *ret_stream = file;
    return BUGPACK_OK;
}
