/*
 * A process together with its descendants: who belongs to it, and one sum of CPU time that only
 * grows. Pure: how a process is read is the system's.
 *
 * The time of a process that ended is in its parent's time of waited-for children (getrusage(2),
 * RUSAGE_CHILDREN), so a sum over all that live, with that time, normally loses nothing. It does
 * when nobody waited: SIGCHLD was ignored, or the parent ended first and a stranger waited. So each
 * process's last sum is remembered, and what ended without turning up elsewhere is kept as lost.
 *
 * A parent is read before its children, so one of those may end in between: it is gone, and its
 * parent's counters do not say so yet. What ended is therefore counted as pending, for some parent
 * to take it over, and as lost only after a round in which nothing ended. A child that has ended
 * and was not waited for yet (a zombie) is still a member, or its time would count twice once it
 * is.
 */
#ifndef BP_PLATFORM_PROCESS_TREE_H
#define BP_PLATFORM_PROCESS_TREE_H

#include "platform/task.h"

/* A process that belongs to the tree. All times are in the system's unit of the snapshots. */
typedef struct bp_tree_member {
    pid_t pid;
    uint64_t start;  /* with the id it tells two processes apart */
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

/* What is remembered between two snapshots; begins as zeroes. Not for two threads at once. */
typedef struct bp_process_tree {
    bp_tree_members known; /* of the last snapshot */
    uint64_t pending, lost;
} bp_process_tree;

void bp_process_tree_release(bp_process_tree *tree);

/* A copy in `ret_copy`, released like any other. Errors: NO_MEMORY. */
bugpack_status bp_process_tree_copy(const bp_process_tree *tree, bp_process_tree *ret_copy,
                                    bugpack_error *error);

/*
 * Reads one process: its counters, its threads and memory (none of a zombie), and appends the ids
 * of its children, as far as they can be had. `ret_snapshot` is the caller's to release.
 * NO_PROCESS when it is not there any more; NO_MEMORY ends the walk; with any other failure a known
 * process keeps the counters that it had, and an unknown one is left out.
 */
typedef struct bp_tree_reader {
    bugpack_status (*read)(void *context, pid_t pid, bool with_names, bp_tree_member *ret_member,
                           bp_task_snapshot *ret_snapshot, bp_pid_list *children);
    void *context;
} bp_tree_reader;

/*
 * Adds all descendants to the snapshot of the first process, whose counters are `first` and whose
 * children are `children`, which is used up: their threads and memory, and process_cpu becomes the
 * sum. A failure leaves the tree as it was. Errors: NO_MEMORY.
 */
bugpack_status bp_process_tree_add(bp_process_tree *tree, const bp_tree_reader *reader,
                                   bool with_names, const bp_tree_member *first,
                                   bp_pid_list *children, bp_task_snapshot *snapshot,
                                   bugpack_error *error);

#endif
