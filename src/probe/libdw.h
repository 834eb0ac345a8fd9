/*
 * The functions of libdw and libelf that we call, found at run time.
 */
#ifndef BP_PROBE_LIBDW_H
#define BP_PROBE_LIBDW_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdbool.h>

/* X(name) for each function; the member has the function's own name. */
#define BP_LIBDW_FUNCTIONS(X)                                                                      \
    X(elf_begin)                                                                                   \
    X(elf_end)                                                                                     \
    X(elf_getdata)                                                                                 \
    X(elf_nextscn)                                                                                 \
    X(elf_strptr)                                                                                  \
    X(elf_version)                                                                                 \
    X(gelf_getshdr)                                                                                \
    X(gelf_getsym)                                                                                 \
    X(dwarf_attr)                                                                                  \
    X(dwarf_begin_elf)                                                                             \
    X(dwarf_child)                                                                                 \
    X(dwarf_diename)                                                                               \
    X(dwarf_end)                                                                                   \
    X(dwarf_formudata)                                                                             \
    X(dwarf_hasattr)                                                                               \
    X(dwarf_nextcu)                                                                                \
    X(dwarf_offdie)                                                                                \
    X(dwarf_siblingof)                                                                             \
    X(dwarf_tag)                                                                                   \
    X(dwelf_elf_gnu_build_id)                                                                      \
    X(dwelf_elf_gnu_debuglink)

typedef struct bp_libdw {
#define BP_LIBDW_MEMBER(name) __typeof__(&(name)) name;
    BP_LIBDW_FUNCTIONS(BP_LIBDW_MEMBER)
#undef BP_LIBDW_MEMBER
} bp_libdw;

/* The functions, loaded once and kept; NULL when the library is not there. Any thread. */
const bp_libdw *bp_libdw_get(void);

#endif
