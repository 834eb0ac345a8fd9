/*
 * A process as the darwin files hold it.
 */
#ifndef BP_PLATFORM_DARWIN_PROCESS_PRIVATE_H
#define BP_PLATFORM_DARWIN_PROCESS_PRIVATE_H

#include <libproc.h>

#include "platform/darwin/convert.h"
#include "platform/process.h"

/* When a process began, by the wall clock of that moment. With the pid it identifies a process. */
typedef struct bp_darwin_start {
    uint64_t seconds, microseconds;
} bp_darwin_start;

/*
 * The age of a process when it was opened, and when that was by a clock that runs in the machine's
 * sleep. Unlike the wall clock it cannot be set.
 */
typedef struct bp_darwin_uptime {
    bool is_known;
    uint64_t age_ns, opened_ns;
    uint64_t reported_ns; /* the last one reported: it never goes back */
} bp_darwin_uptime;

struct bp_process {
    pid_t pid;
    bool is_own;
    bool lists_handles; /* the kernel does not list thread ids for libproc: see list_threads_once */
    char name[64];      /* when it was opened */
    bool has_start;     /* always, but for our own where a sandbox hides even that */
    bp_darwin_start start;
    bp_darwin_tick clock_tick;  /* of the clocks that we read ourselves */
    bp_darwin_tick kernel_tick; /* of the times that the kernel hands out */
    bp_darwin_uptime uptime;
};

/*
 * Reads a structure of `bytes` about the process with proc_pidinfo. False with errno when that
 * fails; EBADMSG when the kernel gives less than that.
 */
bool bp_darwin_pidinfo(pid_t pid, int flavor, uint64_t argument, void *ret_info, int bytes);

/* The same for lists: the bytes that were filled in, or -1 with errno. */
int bp_darwin_pidlist(pid_t pid, int flavor, void *list, int bytes);

/* Fails with errno for a call about the process, and names the call. */
bugpack_status bp_darwin_fail_call(const bp_process *process, const char *call,
                                   bugpack_error *error);

/* Reads what BSD knows, and checks that it is still the process that was opened. */
bugpack_status bp_darwin_check_same(const bp_process *process, struct proc_bsdinfo *ret_info,
                                    bugpack_error *error);

/* A snapshot of our own process, through Mach. Without uptime. */
bugpack_status bp_darwin_snapshot_own(const bp_process *process, bool with_names,
                                      bp_task_snapshot *ret_snapshot, bugpack_error *error);

#endif
