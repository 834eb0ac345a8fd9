/*
 * Compiler attributes for the other headers: visibility, argument checks, C linkage.
 *
 * With BUGPACK_NO_ATTRIBUTES there are none: for parsers of bindings that know plain C alone.
 */
#ifndef BUGPACK_EXPORT_H
#define BUGPACK_EXPORT_H

#if defined(__GNUC__) && !defined(BUGPACK_NO_ATTRIBUTES)
#define BUGPACK_API __attribute__((visibility("default")))
/* Lets the compiler check a printf-style call; both positions count from 1. */
#define BUGPACK_PRINTF(format_position, first_argument)                                            \
    __attribute__((format(printf, format_position, first_argument)))
/* Warns when a status is ignored. Only on calls whose result the host cannot do without: opening,
 * and whatever returns something. Triggers and registrations may be ignored. */
#define BUGPACK_NODISCARD __attribute__((warn_unused_result))
#else
#define BUGPACK_API
#define BUGPACK_PRINTF(format_position, first_argument)
#define BUGPACK_NODISCARD
#endif

#ifdef __cplusplus
#define BUGPACK_BEGIN_DECLS extern "C" {
#define BUGPACK_END_DECLS }
#else
#define BUGPACK_BEGIN_DECLS
#define BUGPACK_END_DECLS
#endif

#endif
