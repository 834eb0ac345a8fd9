/*
 * Log calls that are not compiled below a level, for what is too frequent to be logged in a
 * release:
 *
 *     #define BUGPACK_LOG_COMPILE_LEVEL BUGPACK_LEVEL_INFO      or -DBUGPACK_LOG_COMPILE_LEVEL=2
 *     #include <bugpack/bugpack.h>
 *
 *     BUGPACK_LOG_TRACE(session, "display", "tile %u took %f ms", tile, measure(tile));
 *
 * Each of them is an expression of type void. Below the level it costs nothing: the arguments are
 * not evaluated, but the compiler still checks them against the format, and a variable that is only
 * logged does not become an unused one. Above it the session's level decides at run time, and the
 * arguments of a call that it drops are not evaluated either. `session` may be evaluated twice.
 */
#ifndef BUGPACK_LOG_MACROS_H
#define BUGPACK_LOG_MACROS_H

#include <bugpack/log.h>

/* The least severe level that is compiled: a bugpack_level or its number; BUGPACK_LOG_NOTHING (of
 * log.h) for none at all. It counts where a macro is used, so it may also be defined after this
 * header. */
#ifndef BUGPACK_LOG_COMPILE_LEVEL
#define BUGPACK_LOG_COMPILE_LEVEL BUGPACK_LEVEL_TRACE
#endif

/* `...` is a format and its arguments, as of bugpack_log. Since 0.1.0. */
#define BUGPACK_LOG_TRACE(session, channel, ...)                                                   \
    BUGPACK_LOG_IF(BUGPACK_LOG_COMPILE_LEVEL < 1, session, BUGPACK_LEVEL_TRACE, channel,           \
                   __VA_ARGS__)
#define BUGPACK_LOG_DEBUG(session, channel, ...)                                                   \
    BUGPACK_LOG_IF(BUGPACK_LOG_COMPILE_LEVEL < 2, session, BUGPACK_LEVEL_DEBUG, channel,           \
                   __VA_ARGS__)
#define BUGPACK_LOG_INFO(session, channel, ...)                                                    \
    BUGPACK_LOG_IF(BUGPACK_LOG_COMPILE_LEVEL < 3, session, BUGPACK_LEVEL_INFO, channel, __VA_ARGS__)
#define BUGPACK_LOG_WARN(session, channel, ...)                                                    \
    BUGPACK_LOG_IF(BUGPACK_LOG_COMPILE_LEVEL < 4, session, BUGPACK_LEVEL_WARN, channel, __VA_ARGS__)
#define BUGPACK_LOG_ERROR(session, channel, ...)                                                   \
    BUGPACK_LOG_IF(BUGPACK_LOG_COMPILE_LEVEL < 5, session, BUGPACK_LEVEL_ERROR, channel,           \
                   __VA_ARGS__)
#define BUGPACK_LOG_FATAL(session, channel, ...)                                                   \
    BUGPACK_LOG_IF(BUGPACK_LOG_COMPILE_LEVEL < 6, session, BUGPACK_LEVEL_FATAL, channel,           \
                   __VA_ARGS__)

/* What the others are made of. */
#define BUGPACK_LOG_IF(is_compiled, session, level, channel, ...)                                  \
    ((is_compiled) && bugpack_log_wants(session, level)                                            \
         ? bugpack_log(session, level, channel, __VA_ARGS__)                                       \
         : (void)0)

#endif
