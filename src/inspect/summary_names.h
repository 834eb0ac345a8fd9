/* The names of threads in a summary: all of a process, and those in a deadlock. */
#ifndef BP_INSPECT_SUMMARY_NAMES_H
#define BP_INSPECT_SUMMARY_NAMES_H

#include "inspect/summary.h"

/* Adds a thread of runtime-metrics.json to those of its name. NO_MEMORY, and LIMIT for more than
 * BP_SUMMARY_NAME_MAX names. */
bugpack_status bp_summary_add_name(bp_summary_names *names, const bp_json_tree *thread,
                                   bugpack_error *error);
/* Once all are there, and how long the window was is known. */
void bp_summary_sort_names(bp_summary_names *names, double window_ms);
void bp_summary_release_names(bp_summary_names *names);

/* Adds the threads in one deadlock of threads.json; their names come with the threads. */
void bp_summary_add_deadlock(bp_summary_waiting *waiting, const bp_json_tree *deadlock);

/* Takes note of a thread of threads.json, and counts it. */
void bp_summary_see_thread(bp_summary *summary, const bp_json_tree *thread);

/* Adds those of a further process. */
void bp_summary_join_deadlocked(bp_summary *summary, const bp_summary *of_process);

#endif
