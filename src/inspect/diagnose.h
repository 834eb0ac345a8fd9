/*
 * What the threads and files of a process say together: who holds what others wait for, which peer
 * does not answer, what runs out. Fed while the documents of a report are read.
 */
#ifndef BP_INSPECT_DIAGNOSE_H
#define BP_INSPECT_DIAGNOSE_H

#include "inspect/summary.h"

/* A thread of runtime-metrics.json, then the same one of threads.json. NO_MEMORY; of more threads
 * than BP_DIAGNOSE_THREAD_MAX the rest is passed over. */
bugpack_status bp_diagnose_measured(bp_summary *summary, const bp_json_tree *thread,
                                    bugpack_error *error);
bugpack_status bp_diagnose_thread(bp_summary *summary, const bp_json_tree *thread,
                                  bugpack_error *error);
/* After the last of each list. */
void bp_diagnose_end_measured(bp_summary *summary);
void bp_diagnose_end_threads(bp_summary *summary);

/* The stack of a thread, if it is one that others wait for. */
void bp_diagnose_stack(bp_summary *summary, uint64_t tid, const bp_json_tree *stack);

/* A descriptor of files.json, and process.json. */
void bp_diagnose_file(bp_summary *summary, const bp_json_tree *file);
void bp_diagnose_process(bp_summary *summary, const bp_json_tree *process);

/* Whether the output of the process is of interest, as it failed; then a line of it. */
bool bp_diagnose_wants_output(const bp_summary *summary);
bugpack_status bp_diagnose_output(bp_summary *summary, const char *channel, const char *text);

/* Adds what was found. Of each process. */
void bp_diagnose_find(bp_summary *summary);

void bp_diagnose_release(bp_summary *summary);

#endif
