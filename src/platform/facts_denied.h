/*
 * The clause of process facts that says what could not be read. Pure, for every system's reader.
 */
#ifndef BP_PLATFORM_FACTS_DENIED_H
#define BP_PLATFORM_FACTS_DENIED_H

#include "platform/process_facts.h"

/*
 * Notes in `denied` that `what` could not be read. Things that fail for the same reason as the one
 * before share it: "open files, loaded objects: Permission denied". That a process or a file is not
 * there is no denial, and is not noted.
 */
void bp_facts_deny(bp_process_facts *facts, const char *what, int system_errno);

/* The same with a reason in words. */
void bp_facts_note(bp_process_facts *facts, const char *what, const char *reason);

#endif
