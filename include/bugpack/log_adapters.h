/*
 * Adapters for code that logs through stdio, GLib or syslog. The records follow the rules of
 * bugpack_log (bugpack/log.h).
 */
#ifndef BUGPACK_LOG_ADAPTERS_H
#define BUGPACK_LOG_ADAPTERS_H

#include <stdarg.h>
#include <stdio.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/log.h>

BUGPACK_BEGIN_DECLS

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

/*
 * A GLogFunc with the session as its user_data. Compiling it does not need GLib:
 *
 *     g_log_set_default_handler(bugpack_log_glib, session);
 *
 * (C++ needs a cast to GLogFunc.) Records the message and prints nothing; a host that wants both
 * calls it from its own handler. The domain becomes the channel. ERROR becomes fatal, CRITICAL
 * error, WARNING warn, MESSAGE, INFO and custom levels info, DEBUG debug. The flags for recursion
 * and fatality are ignored; GLib still ends the program where it would. Any thread. A NULL session
 * is ignored.
 */
BUGPACK_API void bugpack_log_glib(const char *domain, int level_flags, const char *message,
                                  void *session);

/*
 * syslog(3) and vsyslog(3) with a session as the first argument. Priorities 0 to 2 (emergency,
 * alert, critical) become fatal, 3 error, 4 warn, 5 and 6 (notice, info) info, 7 debug; facility
 * bits are ignored. One newline at the end is removed. There is no channel.
 *
 * "%m" gives the message of errno where the C library's printf supports it (glibc, musl). errno is
 * preserved. Any thread. A NULL session is ignored.
 */
BUGPACK_API void bugpack_syslog(bugpack_session *session, int priority, const char *format, ...)
    BUGPACK_PRINTF(3, 4);
BUGPACK_API void bugpack_vsyslog(bugpack_session *session, int priority, const char *format,
                                 va_list arguments) BUGPACK_PRINTF(3, 0);

BUGPACK_END_DECLS

#endif
