/*
 * A core file as the crash page that a handler would have left: whoever reads such a page reads a
 * core. Linux only, and cores of this processor.
 */
#ifndef BP_STACKS_CORE_FILE_H
#define BP_STACKS_CORE_FILE_H

#include <bugpack/error.h>

#include "platform/crash_page.h"

typedef struct bp_core_file {
    bp_crash_page *page;    /* its signal is 0 if none ended the process, as with gcore(1) */
    char name[17];          /* of the process */
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

/* Where glibc has the pointer to what it aborted for, of a page with mappings and build ids: by the
 * symbols of its file, if that is still there. 0: it is not known. */
uint64_t bp_core_file_abort_message(const bp_crash_page *page);

/* The rest may be all zero. */
void bp_core_file_release(bp_core_file *file);

#endif
