/*
 * The handler of fatal signals that a host asked for.
 */
#ifndef BP_PLATFORM_CRASH_HANDLER_H
#define BP_PLATFORM_CRASH_HANDLER_H

#include <stdbool.h>

#include <bugpack/error.h>

#include "platform/crash_page.h"

/*
 * Handles the fatal signals of this process: writes the page, then does what was there before. The
 * calling thread gets an alternate stack. The page is borrowed until the removal, in shared memory
 * that a forked child does not have. Errors: UNSUPPORTED, BUSY (it serves another page), NO_MEMORY,
 * IO. Any thread.
 */
bugpack_status bp_crash_handler_install(bp_crash_page *page, bugpack_error *error);

/*
 * Ends it, and restores what was there before; where another handler came later, ours stays and
 * only passes on. False when a thread is crashing: then the page must stay, and be recovered. Any
 * thread, also of a forked child.
 */
bool bp_crash_handler_remove(const bp_crash_page *page);

/* Forgets a crash that is over a second old where the host's own handler has jumped out of it and
 * the process goes on. The thread of the page's owner. */
void bp_crash_handler_check(bp_crash_page *page);

/* Gives the calling thread an alternate stack until it ends, unless it has one. UNSUPPORTED,
 * NO_MEMORY. */
bugpack_status bp_crash_thread_init(bugpack_error *error);

#endif
