/*
 * A process and its descendants: the members, and one sum of CPU time that only grows. Pure: each
 * system reads its own processes.
 *
 * A parent that waits for a child takes over its time (getrusage(2), RUSAGE_CHILDREN). Otherwise,
 * as with an ignored SIGCHLD, the last time of the child is remembered and counted as lost. A
 * parent is read before its children, so an ended child is first pending, and lost only after a
 * round in which no process ended. A zombie is still a member: its time would count twice once its
 * parent waits.
 */
#ifndef BP_PLATFORM_PROCESS_TREE_H
#define BP_PLATFORM_PROCESS_TREE_H

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

/* False when memory is short, or when there are more than any system has. */
bool bp_pid_list_add(bp_pid_list *list, pid_t pid);

/* State between two snapshots; starts as zeroes. One thread at a time. */
typedef struct bp_process_tree {
    bp_tree_members known; /* of the last snapshot */
    uint64_t pending, lost;
} bp_process_tree;

void bp_process_tree_release(bp_process_tree *tree);

/* A copy in `ret_copy`, released like any other. Errors: NO_MEMORY. */
bugpack_status bp_process_tree_copy(const bp_process_tree *tree, bp_process_tree *ret_copy,
                                    bugpack_error *error);

/*
 * Reads one process: its counters, its threads and memory (none of a zombie), and appends its
 * children, best effort. The caller releases `ret_snapshot`. NO_MEMORY ends the walk; after any
 * other failure but NO_PROCESS a known process keeps its last counters.
 */
typedef struct bp_tree_reader {
    bugpack_status (*read)(void *context, pid_t pid, bool with_names, bp_tree_member *ret_member,
                           bp_task_snapshot *ret_snapshot, bp_pid_list *children);
    void *context;
} bp_tree_reader;

/*
 * Adds all descendants to the snapshot of the first process, whose counters are `first` and whose
 * children are `children`, which is used up. process_cpu becomes the sum. A failure leaves the tree
 * as it was. Errors: NO_MEMORY.
 */
bugpack_status bp_process_tree_add(bp_process_tree *tree, const bp_tree_reader *reader,
                                   bool with_names, const bp_tree_member *first,
                                   bp_pid_list *children, bp_task_snapshot *snapshot,
                                   bugpack_error *error);

#endif
