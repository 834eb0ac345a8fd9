/*
 * The public calls that record: thin, so that they cost what the ring costs. The adapters for code
 * that logs in another way are at the end.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bugpack/log.h>
#include <bugpack/log_adapters.h>

#include "base/status.h"
#include "base/struct_size.h"
#include "platform/stream.h"
#include "recorder/line_splitter.h"
#include "recorder/recorder.h"
#include "session/session.h"

bool bugpack_log_wants(const bugpack *session, bugpack_level level) {
    if (bp_session_check(session) != BUGPACK_OK) {
        return false;
    }
    const bp_log_recorder *log = session->context.recorder->log;
    return log != NULL && bp_log_recorder_wants(log, level);
}

void bugpack_log_set_level(bugpack *session, bugpack_level level) {
    if (level == BUGPACK_LEVEL_DEFAULT) {
        level = BUGPACK_LEVEL_DEBUG;
    }
    if ((unsigned)level <= BUGPACK_LEVEL_OFF && bp_session_check(session) == BUGPACK_OK &&
        session->context.recorder->log != NULL) {
        bp_log_recorder_set_level(session->context.recorder->log, level);
    }
}

void bugpack_logv(bugpack *session, bugpack_level level, const char *channel, const char *format,
                  va_list arguments) {
    if (bp_session_check(session) == BUGPACK_OK) {
        bp_note_logv(session->context.recorder, level, channel, format, arguments);
    }
}

void bugpack_log(bugpack *session, bugpack_level level, const char *channel, const char *format,
                 ...) {
    va_list arguments;
    va_start(arguments, format);
    bugpack_logv(session, level, channel, format, arguments);
    va_end(arguments);
}

void bugpack_log_part(bugpack *session, bugpack_level level, const char *channel,
                      const void *message, size_t message_bytes, unsigned part) {
    if (bugpack_log_wants(session, level)) {
        bp_log_recorder_append(session->context.recorder->log, level, channel, message,
                               message != NULL ? message_bytes : 0,
                               part & (BUGPACK_PART_CONTINUES | BUGPACK_PART_UNFINISHED));
    }
}

void bugpack_log_bytes(bugpack *session, bugpack_level level, const char *channel,
                       const void *message, size_t message_bytes) {
    bugpack_log_part(session, level, channel, message, message_bytes, 0);
}

static bugpack_status read_channel_options(const bugpack_channel_options *given,
                                           bugpack_channel_options *options, bugpack_error *error) {
    static const bp_field fields[] = {
        BP_FIELD(bugpack_channel_options, weight, 4, BP_FIELD_NEVER_OFF),
        BP_FIELD(bugpack_channel_options, pin_bytes, 4096, 0),
        BP_FIELD(bugpack_channel_options, snap_bytes, 0, 0)};
    bugpack_status status =
        given == NULL ? BUGPACK_OK
                      : bp_struct_read(&bp_of_bugpack_channel_options, options, given, error);
    const uint64_t all = BUGPACK_CHANNEL_WITHOUT_PAYLOAD | BUGPACK_CHANNEL_EXACT;
    if (status == BUGPACK_OK && (options->flags & ~all) != 0) {
        status = bp_fail(error, BUGPACK_ERR_INVALID, "a channel has no such flag");
    }
    if (status == BUGPACK_OK && options->flags == all) {
        status = bp_fail(error, BUGPACK_ERR_INVALID,
                         "a channel cannot be exact and without payload at once");
    }
    return status != BUGPACK_OK
               ? status
               : bp_struct_fill(options, fields, sizeof fields / sizeof fields[0], error);
}

static bugpack_status open_channel(bugpack *session, const char *name,
                                   const bugpack_channel_options *options,
                                   bugpack_channel **ret_channel, bugpack_error *error) {
    bugpack_channel_options checked = BUGPACK_CHANNEL_OPTIONS_INIT;
    if (name == NULL || name[0] == '\0' ||
        strnlen(name, BUGPACK_CHANNEL_MAX_BYTES + 1) > BUGPACK_CHANNEL_MAX_BYTES) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a channel's name must have 1 to 64 bytes");
    }
    bugpack_status status = read_channel_options(options, &checked, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_recorder *recorder = session->context.recorder;
    char loss[256] = "";
    status = bp_channels_open(&recorder->channels, name, &checked, ret_channel, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_channels_note_loss(&recorder->channels, (*ret_channel)->traffic, loss, sizeof loss);
    if (loss[0] != '\0') {
        bp_note_diagnose(recorder, BUGPACK_LEVEL_WARN,
                         "the rings of channel \"%s\" are in memory and do not survive a crash: %s",
                         name, loss);
    }
    return BUGPACK_OK;
}

bugpack_status bugpack_channel_open(bugpack *session, const char *name,
                                    const bugpack_channel_options *options,
                                    bugpack_channel **ret_channel, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "open a channel", error)) {
        bp_thread_hold hold;
        bp_thread_hold_begin(&hold); /* it writes a ring's file */
        call.status = open_channel(session, name, options, ret_channel, error);
        bp_thread_hold_end(&hold);
    }
    return bp_session_leave(&call);
}

void bugpack_channel_close(bugpack_channel *channel) {
    bp_call call;
    if (bp_session_enter(&call, channel == NULL ? NULL : channel->session, NULL, NULL)) {
        bugpack *session = channel->session;
        bp_thread_hold hold;
        bp_thread_hold_begin(&hold); /* it removes files */
        bp_channels_close(&session->context.recorder->channels, channel);
        bp_thread_hold_end(&hold);
    }
    (void)bp_session_leave(&call);
}

void bugpack_traffic(bugpack_channel *channel, bugpack_direction direction, uint32_t type,
                     const char *type_name, const void *bytes, size_t byte_count) {
    if (channel != NULL && bp_session_check(channel->session) == BUGPACK_OK &&
        bp_channel_enter(channel)) {
        bp_traffic_append(channel->traffic, direction, type, type_name, bytes, byte_count);
        bp_channel_leave(channel);
    }
}

void bugpack_notify(bugpack *session, bugpack_level level, const char *source, const char *format,
                    ...) {
    if (bp_session_check(session) == BUGPACK_OK) {
        va_list arguments;
        va_start(arguments, format);
        bp_note_notifyv(session->context.recorder, level, source, format, arguments);
        va_end(arguments);
    }
}

void bugpack_notify_text(bugpack *session, bugpack_level level, const char *source,
                         const char *text) {
    bugpack_notify(session, level, source, "%s", text == NULL ? "" : text);
}

/* stdio's buffer holds as much as one record: it is only full in the middle of a line that is too
 * long for a record. */
enum { stream_buffer_bytes = BUGPACK_LOG_MESSAGE_MAX_BYTES };

typedef struct log_stream {
    bugpack *session;
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

static FILE *open_stream(bugpack *session, bugpack_level level, const char *channel,
                         bugpack_error *error) {
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
    /* Of a stream that has just been opened, with a buffer of the caller's, this does not fail. */
    (void)setvbuf(file, stream->buffer, _IOLBF, sizeof stream->buffer);
    return file;
}

FILE *bugpack_log_stream(bugpack *session, bugpack_level level, const char *channel,
                         bugpack_error *error) {
    bp_call call;
    FILE *file = NULL;
    if (level < BUGPACK_LEVEL_TRACE || level > BUGPACK_LEVEL_FATAL) {
        session = NULL; /* refused as INVALID */
    }
    if (bp_session_enter(&call, session, "open a log stream", error)) {
        file = open_stream(session, level, channel, error);
        if (file != NULL) {
            bp_session_retain(session); /* until its fclose, which may follow the close */
        }
    }
    (void)bp_session_leave(&call);
    return file;
}

/* GLogLevelFlags (glib/gmessages.h), from the most severe to the least. */
static bugpack_level level_of_glib(int level_flags) {
    static const struct {
        int flag;
        bugpack_level level;
    } levels[] = {{1 << 2, BUGPACK_LEVEL_FATAL}, {1 << 3, BUGPACK_LEVEL_ERROR},
                  {1 << 4, BUGPACK_LEVEL_WARN},  {1 << 5, BUGPACK_LEVEL_INFO},
                  {1 << 6, BUGPACK_LEVEL_INFO},  {1 << 7, BUGPACK_LEVEL_DEBUG}};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if ((level_flags & levels[i].flag) != 0) {
            return levels[i].level;
        }
    }
    return BUGPACK_LEVEL_INFO; /* a level that the program made up */
}

void bugpack_log_glib(const char *domain, int level_flags, const char *message, void *session) {
    if (message != NULL) {
        bugpack_log_bytes(session, level_of_glib(level_flags), domain, message, strlen(message));
    }
}

void bugpack_vsyslog(bugpack *session, int priority, const char *format, va_list arguments) {
    static const bugpack_level levels[8] = {
        BUGPACK_LEVEL_FATAL, BUGPACK_LEVEL_FATAL, BUGPACK_LEVEL_FATAL, BUGPACK_LEVEL_ERROR,
        BUGPACK_LEVEL_WARN,  BUGPACK_LEVEL_INFO,  BUGPACK_LEVEL_INFO,  BUGPACK_LEVEL_DEBUG};
    if (session == NULL) {
        return;
    }
    /* One byte more than is kept: the recorder cuts, and says so, where there was more. */
    char message[BUGPACK_LOG_MESSAGE_MAX_BYTES + 2];
    int caller_errno = errno;
    int length = vsnprintf(message, sizeof message, format, arguments);
    if (length >= 0) {
        size_t message_bytes =
            (size_t)length < sizeof message ? (size_t)length : sizeof message - 1;
        if ((size_t)length == message_bytes && length > 0 && message[message_bytes - 1] == '\n') {
            message_bytes--;
        }
        bugpack_log_bytes(session, levels[priority & 7], NULL, message, message_bytes);
    }
    errno = caller_errno;
}

void bugpack_syslog(bugpack *session, int priority, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bugpack_vsyslog(session, priority, format, arguments);
    va_end(arguments);
}
