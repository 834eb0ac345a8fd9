#include "platform/stream.h"

#include "base/status.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* The BSDs and macOS have funopen(3) for this. */
bugpack_status bp_stream_open(const bp_stream_calls *calls, void *context, FILE **ret_stream,
                              bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this system has no streams of our own making");
}
