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

/* The first rows of a trigger as of the instant at which a job was triggered. More may follow. */
typedef struct bp_trigger_note {
    size_t count;
    bp_trigger_tally rows[];
} bp_trigger_note;

/* So many triggers may have one. */
enum { BP_TRIGGER_NOTE_MAX = 16 };

/* Makes a note of that many rows, all 0; free() frees it. NULL without memory. */
bp_trigger_note *bp_trigger_note_new(size_t count);

/* Sets an entry to what it was at the instant of a note, where it is that row. False: it was not
 * there yet. With NULL, which is a note without memory, the entry stays. */
bool bp_trigger_note_apply(const bp_trigger_note *note, size_t row, bp_trigger_entry *entry);

/* Appends a copy of `entry` and its key; its reason is borrowed for as long as the session. The
 * caller may hold its lock. */
void bp_trigger_list_add(bp_trigger_list *list, const bp_trigger_entry *entry);

/* Counts the report of `kind` and `key` (NULL for none) as written: its own manifest lists it. */
void bp_trigger_list_count_written(bp_trigger_list *list, bp_report_kind kind, const char *key);

void bp_trigger_list_release(bp_trigger_list *list);

struct bp_job;

/* Notes what each trigger has come to, for the job that is being made. In microseconds; without
 * memory a note stays NULL. Any thread. */
typedef void bp_note_triggers(void *triggers, bp_trigger_note *ret_notes[BP_TRIGGER_NOTE_MAX]);

/* Fills an empty list for the manifest of `job`, whose report counts as written. NO_MEMORY leaves
 * the list empty. Worker. */
typedef bugpack_status bp_list_triggers(void *triggers, const struct bp_job *job,
                                        bp_trigger_list *list, bugpack_error *error);

#endif
