/*
 * Log calls that are not compiled below a level, for messages too frequent for a release build:
 *
 *     #define BUGPACK_LOG_COMPILE_LEVEL BUGPACK_LEVEL_INFO      or -DBUGPACK_LOG_COMPILE_LEVEL=3
 *     #include <bugpack/bugpack.h>
 *
 *     BUGPACK_LOG_TRACE(session, "display", "tile %u took %f ms", tile, measure(tile));
 *
 * Each macro is an expression of type void. Below the compile level it costs nothing: its arguments
 * are not evaluated, but the compiler still checks them against the format. From that level on the
 * session's level decides at run time, and the arguments of a dropped call are not evaluated
 * either. `session` may be evaluated twice.
 */
#ifndef BUGPACK_LOG_MACROS_H
#define BUGPACK_LOG_MACROS_H

#include <bugpack/log.h>

/* The least severe level that is compiled: a bugpack_level or its number. BUGPACK_LEVEL_OFF
 * compiles none. The value counts where a macro is used, so it may be defined after this header. */
#ifndef BUGPACK_LOG_COMPILE_LEVEL
#define BUGPACK_LOG_COMPILE_LEVEL BUGPACK_LEVEL_TRACE
#endif

/* `...` is a format and its arguments, as for bugpack_log. */
#define BUGPACK_LOG_TRACE(session, channel, ...)                                                   \
    BUGPACK_LOG_IF(session, BUGPACK_LEVEL_TRACE, channel, __VA_ARGS__)
#define BUGPACK_LOG_DEBUG(session, channel, ...)                                                   \
    BUGPACK_LOG_IF(session, BUGPACK_LEVEL_DEBUG, channel, __VA_ARGS__)
#define BUGPACK_LOG_INFO(session, channel, ...)                                                    \
    BUGPACK_LOG_IF(session, BUGPACK_LEVEL_INFO, channel, __VA_ARGS__)
#define BUGPACK_LOG_WARN(session, channel, ...)                                                    \
    BUGPACK_LOG_IF(session, BUGPACK_LEVEL_WARN, channel, __VA_ARGS__)
#define BUGPACK_LOG_ERROR(session, channel, ...)                                                   \
    BUGPACK_LOG_IF(session, BUGPACK_LEVEL_ERROR, channel, __VA_ARGS__)
#define BUGPACK_LOG_FATAL(session, channel, ...)                                                   \
    BUGPACK_LOG_IF(session, BUGPACK_LEVEL_FATAL, channel, __VA_ARGS__)

/* The common part of the macros above. */
#define BUGPACK_LOG_IF(session, level, channel, ...)                                               \
    ((int)(BUGPACK_LOG_COMPILE_LEVEL) <= (int)(level) && bugpack_log_wants(session, level)         \
         ? bugpack_log(session, level, channel, __VA_ARGS__)                                       \
         : (void)0)

#endif
