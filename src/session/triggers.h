/*
 * What a session takes reports of by itself, and what the ledger says of it.
 */
#ifndef BP_SESSION_TRIGGERS_H
#define BP_SESSION_TRIGGERS_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "model/manifest.h"

struct bugpack;
struct bp_order;

/*
 * Makes what the triggers keep, and starts the timer where auto-snapshots are wanted: the worker
 * and the freezer must be there. The stop comes before theirs (no trigger of a timer's afterwards,
 * and it waits for the tick that runs), the free after both.
 */
bugpack_status bp_session_open_triggers(struct bugpack *session, bugpack_error *error);
void bp_session_stop_triggers(struct bugpack *session);
void bp_session_free_triggers(struct bugpack *session);

/* Entries for the ledger, while the sources are asked. Their strings are copies. */
typedef struct bp_trigger_list {
    bp_trigger_entry *entries;
    size_t count, capacity;
    bool is_failed; /* out of memory; sticks */
} bp_trigger_list;

/*
 * Appends a copy of `entry`, its key copied too; its reason must live as long as the program does.
 * A source may hold its lock meanwhile.
 */
void bp_trigger_list_add(bp_trigger_list *list, const bp_trigger_entry *entry);
void bp_trigger_list_release(bp_trigger_list *list);

/*
 * Asks every source what its triggers came to so far. The report of `order`, which the list is for,
 * counts as written: who reads it has it. NO_MEMORY, and then the list is empty. Worker only.
 */
bugpack_status bp_session_list_triggers(struct bugpack *session, const struct bp_order *order,
                                        bp_trigger_list *ret_list, bugpack_error *error);

#endif
