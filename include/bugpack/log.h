/*
 * The log ring: the newest records that the host logged, kept in bounded memory until a report
 * writes them to logs.jsonl. Oldest records go first; the report's ledger says how many went.
 */
#ifndef BUGPACK_LOG_H
#define BUGPACK_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

/* How severe a record is, least first. The names in logs.jsonl are the lower-case words. */
typedef enum bugpack_level {
    BUGPACK_LEVEL_TRACE = 0,
    BUGPACK_LEVEL_DEBUG = 1,
    BUGPACK_LEVEL_INFO = 2,
    BUGPACK_LEVEL_WARN = 3,
    BUGPACK_LEVEL_ERROR = 4,
    BUGPACK_LEVEL_FATAL = 5 /* only a word: bugpack never ends the process */
} bugpack_level;

/*
 * A longer channel name or message is cut, and the record says so. So is a message that a log ring
 * of less than 20 KiB has no room for: a record takes at most a quarter of the ring.
 */
#define BUGPACK_CHANNEL_MAX_BYTES 64
#define BUGPACK_LOG_MESSAGE_MAX_BYTES 4096

/*
 * Keeps one record: level, channel (a short name of the part of the program; NULL means none), the
 * formatted message, both clocks, and the calling thread's id and name. A thread that logs often
 * and renames itself shows its new name after 10 ms at the latest. The message may hold any bytes.
 * Errors are dropped: a host never has to handle a failing log call. Allocates nothing.
 *
 * Any thread; not from a signal handler. A NULL session is ignored. Since 0.1.0.
 */
BUGPACK_API void bugpack_log(struct bugpack *session, bugpack_level level, const char *channel,
                             const char *format, ...) BUGPACK_PRINTF(4, 5);

/* The same with a va_list. Since 0.1.0. */
BUGPACK_API void bugpack_logv(struct bugpack *session, bugpack_level level, const char *channel,
                              const char *format, va_list arguments) BUGPACK_PRINTF(4, 0);

/*
 * The same with bytes that are formatted already: no format string is looked at, NUL and invalid
 * UTF-8 are kept (reversibly, see docs/REPORT_FORMAT.md). Since 0.1.0.
 */
BUGPACK_API void bugpack_log_bytes(struct bugpack *session, bugpack_level level,
                                   const char *channel, const void *message, size_t message_bytes);

/*
 * Whether a record of this level would be kept now: false below the session's level, without a log
 * ring, for a NULL session and in a forked child. For a host that has work to do before it can log;
 * the calls above ask by themselves. A few nanoseconds. Any thread. Since 0.1.0.
 */
BUGPACK_API bool bugpack_log_wants(const struct bugpack *session, bugpack_level level);

/*
 * Changes the level that bugpack_options.log_level began with, for all threads: a record less
 * severe is dropped at the call from then on. What was kept stays. BUGPACK_LOG_NOTHING drops all of
 * them. A number that is no level, and a NULL or inert session, change nothing. Any thread. Since
 * 0.1.0.
 */
#define BUGPACK_LOG_NOTHING 6
BUGPACK_API void bugpack_log_set_level(struct bugpack *session, bugpack_level level);

BUGPACK_END_DECLS

#endif
