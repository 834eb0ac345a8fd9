/*
 * The log ring for code that logs in another way: through stdio, GLib or syslog. Each is one call
 * to drop in; docs for bugpack_log (log.h) hold for the records that come of it.
 */
#ifndef BUGPACK_LOG_ADAPTERS_H
#define BUGPACK_LOG_ADAPTERS_H

#include <stdarg.h>
#include <stdio.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/log.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

/*
 * A stream for code that only knows stdio: each line that is written to it becomes a record of
 * `level` and `channel` (copied; NULL for none), on the thread that finishes the line. A line that
 * is not finished is kept until its newline comes, or becomes a record when the stream is flushed
 * or closed. A line over BUGPACK_LOG_MESSAGE_MAX_BYTES becomes several records, cut between
 * characters. A carriage return before a newline goes; NUL and invalid UTF-8 are kept.
 *
 * The stream is line buffered; with setvbuf(…, _IONBF, …) every piece that is written becomes a
 * record of its own. It has no descriptor. Writing to it never fails. It is as safe among threads
 * as stdio is, and in the child of a fork its records go nowhere.
 *
 * The caller closes it with fclose, before or after bugpack_close, whichever is easier: what is
 * written to it when the session is closed goes nowhere, however long ago that was. (exit flushes
 * every stream that has bytes pending.)
 *
 * NULL on failure: INVALID (session, or level), INERT, CLOSED, NO_MEMORY, UNSUPPORTED where the C
 * library cannot make such a stream. Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD FILE *bugpack_log_stream(struct bugpack *session, bugpack_level level,
                                                       const char *channel, bugpack_error *error);

/*
 * A GLogFunc, with the session as its user_data; GLib is not needed to compile it:
 *
 *     g_log_set_default_handler(bugpack_log_glib, session);
 *
 * (C++ needs a cast to GLogFunc.) Keeps the message and prints nothing; a host that wants both
 * calls it from a handler of its own. The domain becomes the channel; ERROR becomes fatal, CRITICAL
 * error, WARNING warn, MESSAGE, INFO and levels of the program's own info, DEBUG debug. The flags
 * for recursion and fatality are not looked at, and GLib still ends the program where it is to.
 * Any thread; not from a signal handler. A NULL session is ignored. Since 0.1.0.
 */
BUGPACK_API void bugpack_log_glib(const char *domain, int level_flags, const char *message,
                                  void *session);

/*
 * The shape of syslog(3) and vsyslog(3), with a session in front. Priorities 0 to 2 (emergency,
 * alert, critical) become fatal, 3 error, 4 warn, 5 and 6 (notice, info) info, 7 debug; the bits of
 * a facility are not looked at. One newline at the end goes, as it does there.
 *
 * "%m" gives the message of errno where the C library's printf knows it, as glibc's and musl's do;
 * elsewhere it is whatever that printf makes of it. errno is the same afterwards. There is no
 * channel. Any thread; not from a signal handler. A NULL session is ignored. Since 0.1.0.
 */
BUGPACK_API void bugpack_syslog(struct bugpack *session, int priority, const char *format, ...)
    BUGPACK_PRINTF(3, 4);
BUGPACK_API void bugpack_vsyslog(struct bugpack *session, int priority, const char *format,
                                 va_list arguments) BUGPACK_PRINTF(3, 0);

BUGPACK_END_DECLS

#endif
