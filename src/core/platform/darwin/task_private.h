/*
 * Our own process as the darwin files hold it.
 */
#ifndef BP_PLATFORM_DARWIN_TASK_PRIVATE_H
#define BP_PLATFORM_DARWIN_TASK_PRIVATE_H

#include <libproc.h>

#include "platform/darwin/convert.h"
#include "platform/task.h"

struct bp_task {
    char name[64];              /* when it was opened */
    uint64_t started_wall_ns;   /* 0 where a sandbox hides it, as the uptime */
    bp_darwin_tick clock_tick;  /* of the clocks that we read ourselves */
    bp_darwin_tick kernel_tick; /* of the times that the kernel hands out */
    /* The age when it was opened, and when that was by a clock that runs in the machine's sleep.
     * Unlike the wall clock it cannot be set. */
    uint64_t age_ns, opened_ns;
    uint64_t reported_ns; /* the last uptime: it never goes back */
};

/*
 * Reads a structure of `bytes` about this process with proc_pidinfo. False with errno when that
 * fails; EBADMSG when the kernel gives less than that.
 */
bool bp_darwin_pidinfo(int flavor, void *ret_info, int bytes);

#endif
