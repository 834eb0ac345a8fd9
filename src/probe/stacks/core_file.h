/*
 * A core file as the crash page that a handler would have left: whoever reads such a page reads a
 * core. Linux only, and cores of this processor.
 */
#ifndef BP_STACKS_CORE_FILE_H
#define BP_STACKS_CORE_FILE_H

#include <bugpack/error.h>

#include "model/stacks.h"
#include "platform/crash_page.h"

typedef struct bp_core_file {
    bp_crash_page *page;    /* its signal is 0 if none ended the process, as with gcore(1) */
    char name[17];          /* of the process */
    bp_stacks python;       /* the functions of Python of the thread that crashed, alone */
    uint64_t missing_bytes; /* of a core that was cut short: its memory has so many more */
} bp_core_file;

/*
 * Reads a core: the signal, the registers of each thread, the top of its stack, the mappings and
 * their build ids. `exe`: where the program is now; NULL: where it was. Nothing in the file is
 * trusted.
 *
 * Errors: INVALID (no core, one that is cut before its memory, or of another program than `exe`),
 * UNSUPPORTED (of another processor, or another system), NO_MEMORY, IO.
 */
bugpack_status bp_core_file_read(const char *path, const char *exe, bp_core_file *ret_core,
                                 bugpack_error *error);

/* The rest may be all zero. */
void bp_core_file_release(bp_core_file *file);

#endif
