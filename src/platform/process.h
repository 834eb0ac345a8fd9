/*
 * A handle on a process: opened once, known to be the same process ever after. A task
 * (platform/task.h) samples one, or one with its descendants. Each system has its own struct.
 */
#ifndef BP_PLATFORM_PROCESS_H
#define BP_PLATFORM_PROCESS_H

#include "platform/process_tree.h"
#include "platform/task.h"

typedef struct bp_process bp_process;

/* 0 is our own. `for_tree` prepares it for bp_process_note and bp_process_read_member. Errors as
 * bp_task_open. */
bugpack_status bp_process_open(pid_t pid, bool for_tree, bp_process **ret_process,
                               bugpack_error *error);

/* The same process once more; closed like any other. Errors as bp_task_clone. */
bugpack_status bp_process_clone(const bp_process *process, bp_process **ret_clone,
                                bugpack_error *error);
void bp_process_close(bp_process *process);

pid_t bp_process_pid(const bp_process *process);
const char *bp_process_name(const bp_process *process);

/* How long ago the process began, suspended time included; also after its end. False: not known. */
bool bp_process_program(const bp_process *process, bp_task_program *ret_program);
bool bp_process_uptime(bp_process *process, uint64_t *ret_uptime_ns);

/* Reads the counters of this one process. */
bugpack_status bp_process_snapshot(bp_process *process, bool with_names,
                                   bp_task_snapshot *ret_snapshot, bugpack_error *error);

/* As bp_task_reread_names. */
void bp_process_reread_names(bp_process *process);

/* As bp_task_read_switches. */
bugpack_status bp_process_read_switches(const bp_process *process, bp_task_snapshot *snapshot,
                                        bugpack_error *error);

/* The same of a process that has ended since it was opened, and that its parent has not waited for:
 * its CPU time and that of its first thread. NO_PROCESS where it is gone. */
bugpack_status bp_process_snapshot_ended(bp_process *process, bool with_names,
                                         bp_task_snapshot *ret_snapshot, bugpack_error *error);

/* What a tree has to know of its first process, whose snapshot was just read and may be refined:
 * its counters, and the ids of its children, which are appended. */
bugpack_status bp_process_note(bp_process *process, bp_task_snapshot *snapshot,
                               bp_tree_member *ret_member, bp_pid_list *children,
                               bugpack_error *error);

/* The `read` of a bp_tree_reader; the context is the tree's first process. */
bugpack_status bp_process_read_member(void *first, pid_t pid, bool with_names,
                                      bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                      bp_pid_list *children);

/* A task of an open process, which it closes; on failure the caller still has it. NO_MEMORY. */
bugpack_status bp_task_new(bp_process *process, bool with_descendants, bp_task **ret_task,
                           bugpack_error *error);

/* The process of a task, borrowed. */
bp_process *bp_task_process(bp_task *task);

#endif
