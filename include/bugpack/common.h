/*
 * Conventions that all bugpack headers share.
 *
 * Structs. A struct that starts with `struct_size` can grow in later versions, at its end only.
 * Set `struct_size` to its sizeof and every other field to 0, then change what you need. 0 is the
 * default of every field, so these three mean the same:
 *
 *     bugpack_options options = BUGPACK_OPTIONS_INIT;
 *     bugpack_options options = {.struct_size = sizeof(bugpack_options)};
 *     bugpack_options options; bugpack_options_init(&options);
 *
 * Language bindings need no copy of any default. The library reads the fields that the host was
 * compiled with and takes the others as 0. A host that was compiled with newer headers may pass a
 * larger struct: the call fails with BUGPACK_ERR_INVALID only if a field that this library does not
 * know is not 0. In structs that the library fills, `struct_size` says how far it may write.
 *
 * Ownership. Strings and structs that a host passes are copied by the call, unless the function
 * says otherwise. Text that the library returns is freed with bugpack_free.
 *
 * Threads. Each declaration says which threads may call it. No call is async-signal-safe.
 */
#ifndef BUGPACK_COMMON_H
#define BUGPACK_COMMON_H

#include <string.h>

#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/*
 * In an integer field of a struct: switch off what the field configures (a ring, a limit, an
 * interval). Each field says whether it accepts it. The same value is used for fields of 32 and 64
 * bits and for size_t, so a 64-bit field cannot be set to exactly 4,294,967,295. Since 0.1.0.
 */
#define BUGPACK_OFF 0xffffffffu

/* An initialiser with `struct_size` set and every other field 0, in C and in C++. Since 0.1.0. */
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

/*
 * Defines `<type>_init(type *)`, the function form of BUGPACK_INIT. It is inline because only the
 * host's compiler knows the size of the host's struct: a function in a newer shared library would
 * write past the end of it.
 */
#define BUGPACK_DEFINE_INIT(type)                                                                  \
    static inline void type##_init(type *fresh) {                                                  \
        memset(fresh, 0, sizeof *fresh);                                                           \
        fresh->struct_size = sizeof *fresh;                                                        \
    }

/* Frees text that the library returned. NULL is ignored. Any thread. Since 0.1.0. */
BUGPACK_API void bugpack_free(void *pointer);

BUGPACK_END_DECLS

#endif
