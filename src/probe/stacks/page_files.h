/*
 * What the files say that a crash page names, if they are still there: of a core, or of a process
 * that has stopped. Nothing in the page is trusted. Linux only.
 */
#ifndef BP_STACKS_PAGE_FILES_H
#define BP_STACKS_PAGE_FILES_H

#include "model/stacks.h"
#include "platform/crash_page.h"
#include "platform/linux/proc_text.h"
#include "process/python_frames.h"
#include "process/remote_memory.h"

/* The file that has an address, which is not written to; its build id is that of the module that
 * begins with its first mapping. False for none. */
bool bp_page_file_find(const bp_crash_page *page, uint64_t address, bp_proc_map *ret_map,
                       const char **ret_build_id);

/* Addresses in the process; 0: not found. */
typedef struct bp_page_symbols {
    uint64_t abort_message;  /* the pointer of glibc to its words, of a SIGABRT */
    bp_python_layout python; /* its addresses alone */
} bp_page_symbols;

/* Opens the C library and Python. `ret_symbols` is zeroed. */
void bp_page_find_symbols(const bp_crash_page *page, bp_page_symbols *ret_symbols);

/* The functions of Python of the thread that crashed: `python_frames`, and in `python_reason` why
 * some are missing. No file is opened. The caller releases them, and has zeroed it. */
void bp_page_python(const bp_crash_page *page, const bp_page_symbols *symbols,
                    bp_memory_reader *read, void *context, bp_stacks *ret_python);

#endif
