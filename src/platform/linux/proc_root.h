/*
 * Where processes are read from: /proc, or a recording of it with the clocks of its time.
 */
#ifndef BP_PLATFORM_LINUX_PROC_ROOT_H
#define BP_PLATFORM_LINUX_PROC_ROOT_H

#include "platform/task.h"

typedef struct bp_proc_root {
    int fd; /* borrowed */
    /* The ids in it are those that system calls take: not so in a recording, nor where /proc
     * belongs to another pid namespace than ours. Then the kernel is not asked about a number. */
    bool has_our_ids;
    /* A recording: the clocks show the values below, and no file outside it is looked for. */
    bool is_recording;
    uint64_t monotonic_ns, boottime_ns, wall_ns;
    uint64_t ticks_per_sec;
    uint64_t page_bytes;
} bp_proc_root;

/*
 * Opens the process `pid` below `root`, with or without its descendants; 0 is our own. `root` is
 * copied. Errors as bp_task_open.
 */
bugpack_status bp_task_open_below(const bp_proc_root *root, pid_t pid, bool with_descendants,
                                  bp_task **ret_task, bugpack_error *error);

#endif
