/*
 * The log as a stream of stdio.
 */
#include <stdlib.h>
#include <string.h>

#include <bugpack/log.h>

#include "base/status.h"
#include "platform/stream.h"
#include "recorder/line_splitter.h"
#include "session/session.h"

/* stdio's buffer holds as much as one record: it is only full in the middle of a line that is too
 * long for a record. */
enum { stream_buffer_bytes = BUGPACK_LOG_MESSAGE_MAX_BYTES };

typedef struct log_stream {
    bugpack_session *session;
    bugpack_level level;
    char channel[BUGPACK_CHANNEL_MAX_BYTES + 2]; /* a longer one is recorded as cut */
    bp_line_splitter splitter;
    char buffer[stream_buffer_bytes];
} log_stream;

static void take_line(void *context, const char *line, size_t line_bytes, unsigned part) {
    const log_stream *stream = context;
    bugpack_log_part(stream->session, stream->level, stream->channel, line, line_bytes, part);
}

/*
 * stdio does not say why it writes. A line buffered stream hands out what ends with a newline, or a
 * full buffer (or several) in the middle of a long line; anything else is a flush. Where a C
 * library does it in another way, a line that is too long is cut at other places, and that is all.
 */
static void write_stream(void *context, const char *bytes, size_t byte_count) {
    log_stream *stream = context;
    bp_line_splitter_feed(&stream->splitter, bytes, byte_count);
    if (byte_count % stream_buffer_bytes != 0) {
        bp_line_splitter_flush(&stream->splitter);
    }
}

static void close_stream(void *context) {
    log_stream *stream = context;
    bp_line_splitter_flush(&stream->splitter);
    bp_session_drop(stream->session);
    free(stream);
}

static FILE *open_stream(bugpack_session *session, bugpack_level level, const char *channel,
                         bugpack_error *error) {
    if (level < BUGPACK_LEVEL_TRACE || level > BUGPACK_LEVEL_FATAL) {
        (void)bp_fail(error, BUGPACK_ERR_INVALID, "level: a record cannot have %d", (int)level);
        return NULL;
    }
    log_stream *stream = malloc(sizeof *stream);
    if (stream == NULL) {
        (void)bp_fail_memory(error, "open a log stream");
        return NULL;
    }
    stream->session = session;
    stream->level = level;
    size_t channel_bytes = channel == NULL ? 0 : strnlen(channel, sizeof stream->channel - 1);
    if (channel_bytes > 0) {
        memcpy(stream->channel, channel, channel_bytes);
    }
    stream->channel[channel_bytes] = '\0';
    bp_line_splitter_init(&stream->splitter, take_line, stream);
    static const bp_stream_calls calls = {.write = write_stream, .close = close_stream};
    FILE *file = NULL;
    if (bp_stream_open(&calls, stream, &file, error) != BUGPACK_OK) {
        free(stream);
        return NULL;
    }
    /* This does not fail for a stream that was just opened, with a buffer of the caller's. */
    (void)setvbuf(file, stream->buffer, _IOLBF, sizeof stream->buffer);
    return file;
}

FILE *bugpack_log_stream(bugpack_session *session, bugpack_level level, const char *channel,
                         bugpack_error *error) {
    bp_call call;
    FILE *file = NULL;
    if (bp_session_enter(&call, session, "open a log stream", error)) {
        file = open_stream(session, level, channel, error);
        if (file != NULL) {
            /* Until its fclose, which may follow the close. */
            (void)atomic_fetch_add_explicit(&session->reference_count, 1, memory_order_relaxed);
        }
    }
    (void)bp_session_leave(&call);
    return file;
}
