/*
 * The crash handler of a session, and what is kept beside it for the report about a crash.
 */
#ifndef BP_TRIGGER_CRASH_H
#define BP_TRIGGER_CRASH_H

#include "trigger/trigger.h"

typedef struct bp_crash_trigger bp_crash_trigger;

/*
 * Makes the page and installs the handler; once is enough. Errors: UNSUPPORTED (another system, a
 * session without a directory), INVALID (about another process), BUSY (another session has the
 * handler), IO, NO_MEMORY. Any thread.
 */
bugpack_status bp_crash_trigger_install(bp_crash_trigger *trigger, bugpack_error *error);

/* The tags or the providers have changed: what is kept is stored now, or a second after the last
 * time. Any thread. */
void bp_crash_trigger_note_change(bp_crash_trigger *trigger);

#endif
