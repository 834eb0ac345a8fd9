/*
 * A process as the darwin files hold it, and what they share.
 */
#ifndef BP_PLATFORM_DARWIN_TASK_PRIVATE_H
#define BP_PLATFORM_DARWIN_TASK_PRIVATE_H

#include <stdatomic.h>

#include <libproc.h>

#include "platform/darwin/convert.h"
#include "platform/process_tree.h"

/* When a process began, by the wall clock of that moment: with the id it tells two processes apart.
 */
typedef struct bp_darwin_start {
    uint64_t seconds, microseconds;
} bp_darwin_start;

/*
 * How long a process lives: its age when it was opened, and what a clock that goes on in the
 * machine's sleep has counted since. Unlike the wall clock nobody can set that one.
 */
typedef struct bp_darwin_uptime {
    bool is_known;
    uint64_t age_ns, opened_ns;
    uint64_t reported_ns; /* the last one that was given out: it never goes back */
} bp_darwin_uptime;

struct bp_task {
    atomic_uint reference_count;
    pid_t pid;
    bool is_own;
    bool lists_handles; /* the kernel does not list thread ids for libproc: see task_other.c */
    char name[64];      /* when it was opened */
    bool has_start;     /* always, but for our own where a sandbox hides even that */
    bp_darwin_start start;
    bp_darwin_tick clock_tick;  /* of the clocks that we read ourselves */
    bp_darwin_tick kernel_tick; /* of the times that the kernel hands out */
    bp_darwin_uptime uptime;
    bp_process_tree *tree; /* NULL without descendants */
};

/* Fills both ticks. */
bugpack_status bp_darwin_read_ticks(bp_task *task, bugpack_error *error);

/* Begins to count the uptime of the task, whose start is known. */
void bp_darwin_uptime_begin(bp_task *task);

/* Puts the uptime into a snapshot, where it is known. */
void bp_darwin_uptime_read(bp_task *task, bp_task_snapshot *snapshot);

/*
 * Reads a structure of `bytes` about the process with proc_pidinfo. False with errno when that
 * fails; EBADMSG when the kernel gives less than that.
 */
bool bp_darwin_pidinfo(pid_t pid, int flavor, uint64_t argument, void *ret_info, int bytes);

/* The same for lists: the bytes that were filled in, or -1 with errno. */
int bp_darwin_pidlist(pid_t pid, int flavor, void *list, int bytes);

/* "process 7 has ended". */
bugpack_status bp_darwin_fail_ended(const bp_task *task, bugpack_error *error);

/* Fails with errno for a call about the task, and names the call. */
bugpack_status bp_darwin_fail_call(const bp_task *task, const char *call, bugpack_error *error);

/* Reads what BSD knows, and makes sure that it is still the process that was opened. */
bugpack_status bp_darwin_check_same(const bp_task *task, struct proc_bsdinfo *ret_info,
                                    bugpack_error *error);

/* A snapshot of our own process, through Mach; of another, through libproc. Without uptime. */
bugpack_status bp_darwin_snapshot_own(const bp_task *task, bool with_names,
                                      bp_task_snapshot *ret_snapshot, bugpack_error *error);
bugpack_status bp_darwin_snapshot_other(bp_task *task, bool with_names,
                                        bp_task_snapshot *ret_snapshot, bugpack_error *error);

/* Adds what all descendants have to a snapshot of the first process. */
bugpack_status bp_darwin_tree_add(bp_task *task, bool with_names, bp_task_snapshot *snapshot,
                                  bugpack_error *error);

#endif
