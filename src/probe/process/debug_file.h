/*
 * A file with symbols or debug data, opened with libdw: an executable or library, or the separate
 * file with its debug data. Linux only.
 */
#ifndef BP_PROCESS_DEBUG_FILE_H
#define BP_PROCESS_DEBUG_FILE_H

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <stdbool.h>

#include <bugpack/error.h>

/* The functions of libdw and libelf that we call, found at run time. X(name) for each. */
#define BP_LIBDW_FUNCTIONS(X)                                                                      \
    X(elf_begin)                                                                                   \
    X(elf_end)                                                                                     \
    X(elf_getdata)                                                                                 \
    X(elf_getshdrstrndx)                                                                           \
    X(elf_nextscn)                                                                                 \
    X(elf_strptr)                                                                                  \
    X(elf_version)                                                                                 \
    X(gelf_getshdr)                                                                                \
    X(gelf_getsym)                                                                                 \
    X(dwarf_attr)                                                                                  \
    X(dwarf_attr_integrate)                                                                        \
    X(dwarf_begin_elf)                                                                             \
    X(dwarf_cfi_addrframe)                                                                         \
    X(dwarf_child)                                                                                 \
    X(dwarf_diename)                                                                               \
    X(dwarf_end)                                                                                   \
    X(dwarf_filesrc)                                                                               \
    X(dwarf_formstring)                                                                            \
    X(dwarf_formudata)                                                                             \
    X(dwarf_frame_info)                                                                            \
    X(dwarf_frame_register)                                                                        \
    X(dwarf_getsrc_die)                                                                            \
    X(dwarf_getsrcfiles)                                                                           \
    X(dwarf_hasattr)                                                                               \
    X(dwarf_haspc)                                                                                 \
    X(dwarf_lineno)                                                                                \
    X(dwarf_linesrc)                                                                               \
    X(dwarf_nextcu)                                                                                \
    X(dwarf_offdie)                                                                                \
    X(dwarf_siblingof)                                                                             \
    X(dwarf_tag)                                                                                   \
    X(dwelf_elf_gnu_build_id)                                                                      \
    X(dwelf_elf_gnu_debuglink)                                                                     \
    X(dwfl_attach_state)                                                                           \
    X(dwfl_begin)                                                                                  \
    X(dwfl_end)                                                                                    \
    X(dwfl_errmsg)                                                                                 \
    X(dwfl_frame_pc)                                                                               \
    X(dwfl_getthread_frames)                                                                       \
    X(dwfl_module_addrdie)                                                                         \
    X(dwfl_module_addrinfo)                                                                        \
    X(dwfl_module_dwarf_cfi)                                                                       \
    X(dwfl_module_eh_cfi)                                                                          \
    X(dwfl_module_info)                                                                            \
    X(dwfl_module_nextcu)                                                                          \
    X(dwfl_report_begin)                                                                           \
    X(dwfl_report_begin_add)                                                                       \
    X(dwfl_report_end)                                                                             \
    X(dwfl_report_module)                                                                          \
    X(dwfl_thread_state_register_pc)                                                               \
    X(dwfl_thread_state_registers)

typedef struct bp_libdw {
#define BP_LIBDW_MEMBER(name) __typeof__(&(name)) name;
    BP_LIBDW_FUNCTIONS(BP_LIBDW_MEMBER)
#undef BP_LIBDW_MEMBER
} bp_libdw;

/* The functions, loaded once. NULL with UNSUPPORTED when the library is missing, and in a program
 * that is linked statically or of 32 bits. Any thread. */
const bp_libdw *bp_libdw_get(bugpack_error *error);

/* The limit for one file, which libelf and libdw read into memory. */
#define BP_DEBUG_FILE_MAX_BYTES ((uint64_t)1 << 30)

/* Starts zeroed with descriptor -1. */
typedef struct bp_debug_file {
    int fd;
    Elf *elf;
    Dwarf *dwarf; /* NULL until debug data are looked for, and when there are none */
} bp_debug_file;

/* Takes ownership of `fd`, also when it returns false: then the file is unreadable or too large.
 * The caller closes `file` in either case. */
bool bp_debug_file_open(const bp_libdw *dw, int fd, bp_debug_file *file);
void bp_debug_file_close(const bp_libdw *dw, bp_debug_file *file);

/* Where packages install the debug file of a build id, given in lower-case hexadecimals. */
enum { BP_DEBUG_FILE_PATH_BYTES = 128 };
void bp_debug_file_path(const char *build_id, char out[BP_DEBUG_FILE_PATH_BYTES]);

/* Finds the separate debug file of the file at `path`. Its build id must be the same. When it
 * returns false, an errno in `ret_errno` says why one may be there all the same, and 0 that there
 * is none. */
bool bp_debug_file_open_separate(const bp_libdw *dw, Elf *elf, const char *path,
                                 bp_debug_file *ret_file, int *ret_errno);

#endif
