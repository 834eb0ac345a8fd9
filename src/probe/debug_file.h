/*
 * A file with symbols or debug data, open for libdw: an executable or library, or the separate file
 * that its debug data were moved to. Linux only.
 */
#ifndef BP_PROBE_DEBUG_FILE_H
#define BP_PROBE_DEBUG_FILE_H

#include <stdbool.h>

#include "probe/libdw.h"

/* What libelf and libdw may take for one file: they read it into memory. */
#define BP_DEBUG_FILE_MAX_BYTES ((uint64_t)1 << 30)

/* A file under investigation; starts zeroed with descriptor -1. */
typedef struct bp_debug_file {
    int fd;
    Elf *elf;
    Dwarf *dwarf; /* NULL until debug data are looked for, and when there are none */
} bp_debug_file;

/* Takes over `fd`, also when it is false: then there is nothing in it to be read, or too much. The
 * caller closes it in any case. */
bool bp_debug_file_open(const bp_libdw *dw, int fd, bp_debug_file *file);
void bp_debug_file_close(const bp_libdw *dw, bp_debug_file *file);

/* Finds the separate file of what lies at `path`. Only one of the same build counts. */
bool bp_debug_file_open_separate(const bp_libdw *dw, Elf *elf, const char *path,
                                 bp_debug_file *ret_file);

#endif
