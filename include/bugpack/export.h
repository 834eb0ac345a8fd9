/*
 * What every public header needs of the compiler: visibility, argument checks and C linkage.
 */
#ifndef BUGPACK_EXPORT_H
#define BUGPACK_EXPORT_H

#if defined(__GNUC__)
#define BUGPACK_API __attribute__((visibility("default")))
/* Lets the compiler check a printf-style call; both positions count from 1. */
#define BUGPACK_PRINTF(format_position, first_argument)                                            \
    __attribute__((format(printf, format_position, first_argument)))
/* A status that is thrown away is a failure that nobody sees. */
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
