/*
 * A handle on a process: opened once, known to be the same process ever after. A task
 * (platform/task.h) samples one, or one with its descendants.
 */
#ifndef BP_PLATFORM_LINUX_PROCESS_H
#define BP_PLATFORM_LINUX_PROCESS_H

#include "platform/task.h"

/* Times are in the unit of the system's snapshots. */
typedef struct bp_tree_member {
    pid_t pid;
    uint64_t start;  /* with the pid it identifies a process */
    uint64_t cpu;    /* its own and its waited-for children's */
    uint64_t waited; /* the latter alone */
} bp_tree_member;

typedef struct bp_tree_members {
    bp_tree_member *items;
    size_t count, capacity;
} bp_tree_members;

/* Process ids; the caller frees `pids`. */
typedef struct bp_pid_list {
    pid_t *pids;
    size_t count, capacity;
} bp_pid_list;

typedef struct bp_process bp_process;

/* 0 is our own. `for_tree` prepares it for bp_process_note and bp_process_read_member. Errors as
 * bp_task_open. */
bugpack_status bp_process_open(pid_t pid, bool for_tree, bp_process **ret_process,
                               bugpack_error *error);

/* The same process once more; closed like any other. Errors as bp_task_clone. */
bugpack_status bp_process_clone(const bp_process *process, bp_process **ret_clone,
                                bugpack_error *error);
void bp_process_close(bp_process *process);

/* As bp_task_uptime. */
bool bp_process_uptime(bp_process *process, uint64_t *ret_uptime_ns);

/* Reads the counters of this one process. */
bugpack_status bp_process_snapshot(bp_process *process, bool with_names,
                                   bp_task_snapshot *ret_snapshot, bugpack_error *error);

/* The same of a process that has ended since it was opened, and that its parent has not waited for:
 * its CPU time and that of its first thread. NO_PROCESS where it is gone. */
bugpack_status bp_process_snapshot_ended(bp_process *process, bool with_names,
                                         bp_task_snapshot *ret_snapshot, bugpack_error *error);

/* What a tree has to know of its first process, whose snapshot was just read and may be refined:
 * its counters, and the ids of its children, which are appended. */
bugpack_status bp_process_note(bp_process *process, bp_task_snapshot *snapshot,
                               bp_tree_member *ret_member, bp_pid_list *children,
                               bugpack_error *error);

/*
 * Reads one process of the tree of `first`: its counters, its threads and memory (none of a
 * zombie), and appends its children, best effort. The caller releases `ret_snapshot`. After
 * NO_MEMORY nothing more is read; after any other failure but NO_PROCESS a known process keeps its
 * last counters.
 */
bugpack_status bp_process_read_member(const bp_process *first, pid_t pid, bool with_names,
                                      bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                      bp_pid_list *children);

/*
 * A process, or with its descendants: then the members, and one sum of CPU time that only grows.
 *
 * A parent that waits for a child takes over its time (getrusage(2), RUSAGE_CHILDREN). Otherwise,
 * as with an ignored SIGCHLD, the last time of the child is remembered and counted as lost. A
 * parent is read before its children, so an ended child is first pending, and lost only after a
 * round in which no process ended. A zombie is still a member: its time would count twice once its
 * parent waits.
 */
struct bp_task {
    bp_process *process;
    bool has_tree;
    bp_tree_members known; /* of the last snapshot */
    uint64_t pending, lost;
};

/* A task of an open process, which it closes; on failure the caller still has it. NO_MEMORY. */
bugpack_status bp_task_new(bp_process *process, bool with_descendants, bp_task **ret_task,
                           bugpack_error *error);

#endif
