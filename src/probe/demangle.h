/*
 * C++ and Rust names as they are written, through the C++ runtime where there is one. Linux only.
 */
#ifndef BP_PROBE_DEMANGLE_H
#define BP_PROBE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* __cxa_demangle of the Itanium C++ ABI. */
typedef char *bp_demangler(const char *name, char *out, size_t *out_bytes, int *ret_status);

/*
 * That of libstdc++, or NULL. With `is_host`, only where the host has loaded it already: a runtime
 * is not loaded into somebody else's process, whose C++ names need none that is not there.
 */
bp_demangler *bp_demangler_get(bool is_host);

/* Whether it is a mangled name whose plain form cannot be large: a short one can refer to its own
 * parts again and again, and double with each. Pure. */
bool bp_demangle_is_bounded(const char *name);

/*
 * Rust's older names are also C++ names, which end in a hash and have escapes for what those cannot
 * hold. Writes "r::Reader<T>::fetch_all" in place of
 * "r::Reader$LT$T$GT$::fetch_all::h80c93f7a454da753", and leaves any other name as it is. Pure.
 */
void bp_demangle_rust(char *name);

/* The plain name, to be freed; NULL without one, or without a demangler. */
char *bp_demangle(bp_demangler *demangle, const char *name);

#endif
