#include "platform/stream.h"

#include "base/status.h"

/* The BSDs and macOS have funopen(3) for this. */
bugpack_status bp_stream_open(const bp_stream_calls *calls, void *context, FILE **ret_stream,
                              bugpack_error *error) {
    (void)calls;
    (void)context;
    (void)ret_stream;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this system has no streams of our own making");
}
