/*
 * The triggers of a session and their outcome, for the manifest.
 */
#ifndef BP_REPORT_TRIGGER_LIST_H
#define BP_REPORT_TRIGGER_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "model/manifest.h"

typedef struct bp_trigger_list {
    bp_trigger_entry *entries; /* their keys are copies */
    size_t count, capacity;
    bool is_failed; /* out of memory; sticks */
} bp_trigger_list;

/* Appends a copy of `entry` and its key; its reason is borrowed for as long as the session. The
 * caller may hold its lock. */
void bp_trigger_list_add(bp_trigger_list *list, const bp_trigger_entry *entry);

/* Counts the report of `kind` and `key` (NULL for none) as written: its own manifest lists it. */
void bp_trigger_list_count_written(bp_trigger_list *list, bp_report_kind kind, const char *key);

void bp_trigger_list_release(bp_trigger_list *list);

struct bp_job;

/* Fills an empty list for the manifest of `job`, whose report counts as written. NO_MEMORY leaves
 * the list empty. Worker. */
typedef bugpack_status bp_list_triggers(void *triggers, const struct bp_job *job,
                                        bp_trigger_list *list, bugpack_error *error);

#endif
