/*
 * The log ring: the newest log records of the host, in bounded memory, written to logs.jsonl of
 * each report. When the ring is full the oldest records are dropped, and the manifest of a report
 * says how many.
 */
#ifndef BUGPACK_LOG_H
#define BUGPACK_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/* The severity of a record, least first. logs.jsonl has the lower-case words. */
typedef enum bugpack_level {
    BUGPACK_LEVEL_DEFAULT = 0, /* in options only: DEBUG. A record of this level is dropped. */
    BUGPACK_LEVEL_TRACE = 1,
    BUGPACK_LEVEL_DEBUG = 2,
    BUGPACK_LEVEL_INFO = 3,
    BUGPACK_LEVEL_WARN = 4,
    BUGPACK_LEVEL_ERROR = 5,
    BUGPACK_LEVEL_FATAL = 6, /* only a word: bugpack never ends the process */
    BUGPACK_LEVEL_OFF = 7    /* as a threshold: no record passes */
} bugpack_level;

/* A longer channel name or message is cut, and the record says so. One record takes at most a
 * quarter of the ring, so a ring under 20 KiB cuts messages earlier. */
#define BUGPACK_CHANNEL_MAX_BYTES 64
#define BUGPACK_LOG_MESSAGE_MAX_BYTES 4096

/*
 * Records a message: its level, channel (a short name for a part of the program; NULL for none),
 * formatted text, both clocks, and the calling thread's id and name. A thread that renames itself
 * shows its new name within 10 ms. The message may hold any bytes. Allocates nothing and never
 * fails: what cannot be recorded is dropped.
 *
 * Any thread. A NULL session is ignored.
 */
BUGPACK_API void bugpack_log(bugpack_session *session, bugpack_level level, const char *channel,
                             const char *format, ...) BUGPACK_PRINTF(4, 5);

/* bugpack_log with a va_list. */
BUGPACK_API void bugpack_logv(bugpack_session *session, bugpack_level level, const char *channel,
                              const char *format, va_list arguments) BUGPACK_PRINTF(4, 0);

/*
 * bugpack_log with bytes that are already formatted. NUL and invalid UTF-8 are recorded reversibly
 * (docs/REPORT_FORMAT.md). NULL is recorded as no bytes.
 */
BUGPACK_API void bugpack_log_bytes(bugpack_session *session, bugpack_level level,
                                   const char *channel, const void *message, size_t message_bytes);

/* Flags for a message that is a part of a line. */
#define BUGPACK_PART_CONTINUES 1u  /* goes on with the line of the message before */
#define BUGPACK_PART_UNFINISHED 2u /* the next message may go on with this line */

/*
 * bugpack_log_bytes for a part of a line, for a host that passes on output whose lines may be
 * longer than a message, or not finished yet. The parts of a line have the same channel and come
 * from one thread; between them may be messages of others. The record says what part it is, and
 * the redaction of a report searches the parts as one line. `part` is 0 or BUGPACK_PART_ flags;
 * others are ignored.
 */
BUGPACK_API void bugpack_log_part(bugpack_session *session, bugpack_level level,
                                  const char *channel, const void *message, size_t message_bytes,
                                  unsigned part);

/*
 * True if a record of this level would be recorded now. False below the session's level, without a
 * log ring, for a NULL session and in a forked child. The calls above check this themselves; use it
 * when building the message is expensive. Takes a few nanoseconds. Any thread.
 */
BUGPACK_API bool bugpack_log_wants(const bugpack_session *session, bugpack_level level);

/*
 * Changes the level that bugpack_options.log_level started with. Records below it are dropped at
 * the call from then on, on all threads; earlier records stay. BUGPACK_LEVEL_OFF drops all of them,
 * BUGPACK_LEVEL_DEFAULT restores the default. A value that is no level is ignored, and so is a NULL
 * or inert session. Any thread.
 */
BUGPACK_API void bugpack_log_set_level(bugpack_session *session, bugpack_level level);

/*
 * A stdio stream whose lines become records of `level` and `channel` (copied; NULL for none), on
 * the thread that finishes the line. An unfinished line waits for its newline, and becomes a record
 * when the stream is flushed or closed. A line over BUGPACK_LOG_MESSAGE_MAX_BYTES becomes several
 * records, cut between characters. A carriage return before the newline is removed. NUL and invalid
 * UTF-8 are recorded.
 *
 * The stream is line buffered; with setvbuf(…, _IONBF, …) each write becomes a record. It has no
 * descriptor, and writing never fails. It is as thread-safe as stdio. In a forked child its records
 * are dropped.
 *
 * The caller closes it with fclose, before or after bugpack_close. What is written to it after the
 * session was closed is dropped, however long ago that was, because exit() flushes all streams.
 *
 * NULL on failure: INVALID (session or level), INERT, CLOSED, NO_MEMORY, UNSUPPORTED (the C library
 * has no such streams). Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD FILE *bugpack_log_stream(bugpack_session *session,
                                                       bugpack_level level, const char *channel,
                                                       bugpack_error *error);

BUGPACK_END_DECLS

#endif
