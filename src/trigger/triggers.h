/*
 * The triggers of a session together.
 */
#ifndef BP_TRIGGER_TRIGGERS_H
#define BP_TRIGGER_TRIGGERS_H

#include "trigger/trigger.h"

typedef struct bp_triggers bp_triggers;

/* Opens all of them. */
bugpack_status bp_triggers_open(const bp_trigger_context *context, bp_triggers **ret_triggers,
                                bugpack_error *error);

/* The three steps of an end, as bp_trigger has them. NULL is fine. */
void bp_triggers_stop(bp_triggers *triggers);
void bp_triggers_close(bp_triggers *triggers);
void bp_triggers_free(bp_triggers *triggers);

/* One trigger's own object; NULL when it is off. */
void *bp_triggers_get(const bp_triggers *triggers, const bp_trigger *trigger);

/* A bp_note_triggers; NULL has none. */
void bp_triggers_note(void *triggers, bp_trigger_note *ret_notes[BP_TRIGGER_NOTE_MAX]);

/* A bp_list_triggers. */
bugpack_status bp_triggers_list(void *triggers, const bp_job *job, bp_trigger_list *list,
                                bugpack_error *error);

/* A bp_monitor_task: calls each trigger's tick, and returns the earliest time that one wants. */
uint64_t bp_triggers_tick(void *triggers, uint64_t now_ns);

#endif
