/*
 * A FILE whose output goes to a function.
 */
#ifndef BP_PLATFORM_STREAM_H
#define BP_PLATFORM_STREAM_H

#include <stddef.h>
#include <stdio.h>

#include <bugpack/error.h>

/*
 * Receives the output. Both are called with the stream locked, on the thread that writes, flushes
 * or closes it; fclose calls `close` once, after the last write, and it may free the context.
 */
typedef struct bp_stream_calls {
    void (*write)(void *context, const char *bytes, size_t byte_count);
    void (*close)(void *context);
} bp_stream_calls;

/*
 * Opens a stream for writing. `calls` is copied. Writing never fails. There is no descriptor:
 * fileno returns -1. UNSUPPORTED where the system has no such streams, NO_MEMORY. Any thread.
 */
bugpack_status bp_stream_open(const bp_stream_calls *calls, void *context, FILE **ret_stream,
                              bugpack_error *error);

#endif
