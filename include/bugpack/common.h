/*
 * Conventions that all bugpack headers share.
 *
 * Structs. A struct that starts with `struct_size` can grow in later versions, at its end only.
 * Set `struct_size` to its sizeof and every other field to 0, then change what you need. 0 is the
 * default of every field, so these mean the same:
 *
 *     bugpack_options options = BUGPACK_OPTIONS_INIT;
 *     bugpack_options options = {.struct_size = sizeof(bugpack_options)};
 *
 * Language bindings need no copy of any default; they have functions that initialise
 * (bugpack/bindings.h). The library reads the fields that the host was
 * compiled with and takes the others as 0. A host that was compiled with newer headers may pass a
 * larger struct: the call fails with BUGPACK_ERR_INVALID only if a field that this library does not
 * know is not 0. A size that no struct has is refused. In structs that the library fills,
 * `struct_size` says how far it may write.
 *
 * Nor do they need calls with variable arguments: each has a form with a finished text there, or
 * with bytes, such as bugpack_log_bytes and bugpack_write. Each constant is
 * a literal or an enumeration (docs/EMBEDDING.md, Struct versions and bindings).
 *
 * Ownership. Strings and structs that a host passes are copied by the call, unless the function
 * says otherwise. Text that the library returns is freed with bugpack_free.
 *
 * Threads. Each declaration says which threads may call it. No call is async-signal-safe.
 */
#ifndef BUGPACK_COMMON_H
#define BUGPACK_COMMON_H

#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/* A session. Opaque; made by bugpack_open and ended by bugpack_close (bugpack/session.h). */
typedef struct bugpack_session bugpack_session;

/*
 * In a field of 64 bits, or a timeout: switch off what it configures (a ring, a limit, an
 * interval). Each field says whether it accepts it.
 */
#define BUGPACK_OFF 0xffffffffffffffffu

/* An initialiser with `struct_size` set and every other field 0, in C and in C++. */
#ifdef __cplusplus
#define BUGPACK_INIT(type)                                                                         \
    []() {                                                                                         \
        type fresh = type();                                                                       \
        fresh.struct_size = sizeof(type);                                                          \
        return fresh;                                                                              \
    }()
#else
#define BUGPACK_INIT(type)                                                                         \
    { .struct_size = sizeof(type) }
#endif

/* Frees text that the library returned. NULL is ignored. Any thread. */
BUGPACK_API void bugpack_free(void *pointer);

BUGPACK_END_DECLS

#endif
