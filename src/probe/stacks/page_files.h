/*
 * What the files say that a crash page names, if they are still there: of a core, or of a process
 * that has stopped. Nothing in the page is trusted. Linux only.
 */
#ifndef BP_STACKS_PAGE_FILES_H
#define BP_STACKS_PAGE_FILES_H

#include "model/stacks.h"
#include "platform/crash_page.h"
#include "platform/linux/proc_text.h"
#include "process/remote_memory.h"

/* The file that has an address, which is not written to; its build id is that of the module that
 * begins with its first mapping. False for none. */
bool bp_page_file_find(const bp_crash_page *page, uint64_t address, bp_proc_map *ret_map,
                       const char **ret_build_id);

/* Where glibc has the pointer to what it aborted for; 0: it is not known. */
uint64_t bp_page_abort_message(const bp_crash_page *page);

/* The functions of Python of the thread that crashed: `python_frames` alone, none where they cannot
 * be had. The caller releases them, and has zeroed it. */
void bp_page_python(const bp_crash_page *page, bp_memory_reader *read, void *context,
                    bp_stacks *ret_python);

#endif
