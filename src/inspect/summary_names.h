/* The names of threads in a summary: all of a process, and those in a deadlock. */
#ifndef BP_INSPECT_SUMMARY_NAMES_H
#define BP_INSPECT_SUMMARY_NAMES_H

#include "inspect/summary.h"

/* Adds up the threads of runtime-metrics.json by name. NO_MEMORY. */
bugpack_status bp_summary_add_names(bp_summary *summary, const bp_json_tree *threads);

/*
 * Whether threads.json would name a deadlock: a thread could be looked at. A running one waits for
 * nobody, one that has ended may have, and any other one that could be looked at has a system call.
 */
bool bp_summary_looked_for_deadlocks(const bp_json_tree *threads);

/* Adds the names of the threads in one deadlock of threads.json. */
void bp_summary_add_deadlocked(bp_summary *summary, const bp_json_tree *deadlock,
                               const bp_json_tree *threads);

/* Adds those of a further process. */
void bp_summary_join_deadlocked(bp_summary *summary, const bp_summary *of_process);

#endif
